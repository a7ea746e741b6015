"""The namespace ``mx.sym.linalg`` of operators over symbols."""
from . import symbol_function
from .._core.frontend import namespace

__getattr__, __dir__ = namespace(globals(), "linalg", symbol_function)
