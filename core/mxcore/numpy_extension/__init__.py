"""What NumPy does not have, for arrays of ``mx.np``: layers, devices, switches; as ``mxnet.numpy_extension``, ``mx.npx``.

The functions are those of :mod:`mxcore.np_functions.extension`, bound to arrays.
"""

from __future__ import annotations

from typing import Any

from .._reexports import reexports
from ..context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
from ..ndarray import waitall
from ..ndarray.numpy import arrays
from ..util import (
    get_cuda_compute_capability,
    is_np_array,
    is_np_shape,
    reset_np,
    set_np,
    use_np,
    use_np_array,
    use_np_shape,
)
from . import image, random
from .files import load, save

__all__ = [
    "Context",
    "cpu",
    "cpu_pinned",
    "current_context",
    "get_cuda_compute_capability",
    "gpu",
    "gpu_memory_info",
    "image",
    "is_np_array",
    "is_np_shape",
    "load",
    "num_gpus",
    "random",
    "reset_np",
    "save",
    "set_np",
    "use_np",
    "use_np_array",
    "use_np_shape",
    "waitall",
]

_functions = frozenset(dir(arrays.npx))
_others = reexports(__name__)


def __getattr__(name: str) -> Any:
    if name in _functions:
        found = globals()[name] = getattr(arrays.npx, name)
        return found
    return _others(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_functions})
