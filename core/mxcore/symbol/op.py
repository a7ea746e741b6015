"""The namespace ``mx.sym.op`` of operators over symbols."""
from . import symbol_function
from .._views import namespace

__getattr__, __dir__ = namespace(globals(), "op", symbol_function)
