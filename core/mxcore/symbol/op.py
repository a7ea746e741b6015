"""The namespace ``mx.sym.op`` of operators over symbols."""

from .._op_functions import namespace
from .function import symbol_function

__getattr__, __dir__ = namespace(globals(), "op", symbol_function)
