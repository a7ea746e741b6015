"""The namespace ``mx.sym.op`` of operators over symbols."""

from .._views import namespace
from .function import symbol_function

__getattr__, __dir__ = namespace(globals(), "op", symbol_function)
