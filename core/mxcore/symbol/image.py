"""The namespace ``mx.sym.image`` of operators over symbols."""
from . import symbol_function
from .._views import namespace

__getattr__, __dir__ = namespace(globals(), "image", symbol_function)
