"""The namespace ``mx.sym.image`` of operators over symbols."""

from .._op_functions import namespace
from .function import symbol_function

__getattr__, __dir__ = namespace(globals(), "image", symbol_function)
