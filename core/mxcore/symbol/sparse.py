"""The namespace ``mx.sym.sparse`` of operators over symbols."""
from . import symbol_function
from .._views import namespace

__getattr__, __dir__ = namespace(globals(), "sparse", symbol_function)
