"""The namespace ``mx.sym.linalg`` of operators over symbols."""

from .._op_functions import namespace
from .function import symbol_function

__getattr__, __dir__ = namespace(globals(), "linalg", symbol_function)
