"""Parameters: the arrays that a network learns, with their gradients, on any number of contexts."""

from __future__ import annotations

from ... import ndarray as _nd
from ...base import MXNetError
from ...context import Context, cpu
from ..utils import is_np_array, is_np_shape, shape_is_known
from .constant import Constant
from .errors import DeferredInitializationError
from .parameter import Parameter
from .parameter_dict import ParameterDict

#: What `isinstance` tests to tell an array.
tensor_types = (_nd.NDArray,)

__all__ = [
    "Constant",
    "Context",
    "DeferredInitializationError",
    "MXNetError",
    "Parameter",
    "ParameterDict",
    "cpu",
    "is_np_array",
    "is_np_shape",
    "shape_is_known",
    "tensor_types",
]
