"""Operators whose names begin with an underscore, over arrays."""

from .._op_functions import eager_function, namespace
from .legacy import _cvimread, _imdecode, _onehot_encode, _set_value

__all__ = ["_cvimread", "_imdecode", "_onehot_encode", "_set_value"]

__getattr__, __dir__ = namespace(globals(), "_internal", eager_function)
