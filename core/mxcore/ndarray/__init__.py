"""Arrays and operators over them, as ``mxnet.ndarray`` and ``mx.nd``.

Every registered operator is a function here; one that a plugin brings later appears at once.
"""

import warnings
from typing import Any

from .. import _importing
from .._op_functions import eager_function, namespace
from . import _internal, contrib, image, linalg, op, random, sparse
from .arithmetic import (
    add,
    divide,
    equal,
    greater,
    greater_equal,
    lesser,
    lesser_equal,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    modulo,
    multiply,
    not_equal,
    power,
    subtract,
    true_divide,
)
from .creation import (
    arange,
    array,
    concatenate,
    empty,
    eye,
    from_dlpack,
    from_numpy,
    full,
    histogram,
    linspace,
    moveaxis,
    onehot_encode,
    ones,
    split_v2,
    to_dlpack_for_read,
    to_dlpack_for_write,
    waitall,
    zeros,
)
from .files import load, load_frombuffer, save
from .legacy import imdecode
from .ndarray import NDArray

__all__ = [
    "NDArray",
    "_internal",
    "add",
    "arange",
    "array",
    "concatenate",
    "contrib",
    "divide",
    "empty",
    "equal",
    "eye",
    "from_dlpack",
    "from_numpy",
    "full",
    "greater",
    "greater_equal",
    "histogram",
    "image",
    "imdecode",
    "lesser",
    "lesser_equal",
    "linalg",
    "linspace",
    "load",
    "load_frombuffer",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "modulo",
    "moveaxis",
    "multiply",
    "not_equal",
    "onehot_encode",
    "ones",
    "op",
    "power",
    "random",
    "save",
    "sparse",
    "split_v2",
    "subtract",
    "to_dlpack_for_read",
    "to_dlpack_for_write",
    "true_divide",
    "waitall",
    "zeros",
]

# Overflow, division by zero and NaN give inf and nan silently, as in MXNet; only what our own modules compute is meant.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"mxcore(\.|_cpu)")

_operators, __dir__ = namespace(globals(), "op", eager_function)
#: The faces of ``mx.np`` and ``mx.npx``, imported when they are asked for.
_NUMPY = {"np": "numpy", "numpy": "numpy", "npx": "numpy_extension", "numpy_extension": "numpy_extension"}


def __getattr__(name: str) -> Any:
    if name in _NUMPY:
        found = globals()[name] = _importing.load(f"{__name__}.{_NUMPY[name]}")
        return found
    return _operators(name)
