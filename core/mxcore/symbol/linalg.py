"""The namespace ``mx.sym.linalg`` of operators over symbols."""
from . import symbol_function
from .._views import namespace

__getattr__, __dir__ = namespace(globals(), "linalg", symbol_function)
