"""The namespace ``mx.sym.sparse`` of operators over symbols."""

from .._op_functions import namespace
from .function import symbol_function

__getattr__, __dir__ = namespace(globals(), "sparse", symbol_function)
