"""The namespace ``mx.sym.random`` of operators over symbols."""
from . import symbol_function
from .._views import namespace

__getattr__, __dir__ = namespace(globals(), "random", symbol_function)
