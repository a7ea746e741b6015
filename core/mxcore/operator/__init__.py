"""Operators written in Python, and facts about all operators, as ``mxnet.operator``."""

from .._reexports import reexports
from .custom import CustomOp, CustomOpProp, register
from .inspection import OperatorArguments, get_all_registered_operators, get_operator_arguments
from .python_op import NDArrayOp, NumpyOp, PythonOp

__all__ = [
    "CustomOp",
    "CustomOpProp",
    "NDArrayOp",
    "NumpyOp",
    "OperatorArguments",
    "PythonOp",
    "get_all_registered_operators",
    "get_operator_arguments",
    "register",
]

__getattr__ = reexports(__name__)
