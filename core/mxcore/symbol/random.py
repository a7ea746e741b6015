"""The namespace ``mx.sym.random`` of operators over symbols."""
from .._views import namespace
from . import symbol_function

__getattr__, __dir__ = namespace(globals(), "random", symbol_function)
