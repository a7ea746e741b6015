"""The namespace ``mx.sym._internal`` of operators over symbols."""
from . import symbol_function
from .._views import namespace

__getattr__, __dir__ = namespace(globals(), "_internal", symbol_function)
