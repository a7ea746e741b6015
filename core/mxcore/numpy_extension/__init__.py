"""What NumPy does not have, for arrays of ``mx.np``: layers, devices, switches; ``mxnet.numpy_extension``.

The functions are those of :mod:`mxcore.np_functions.extension`, bound to arrays.
"""

from __future__ import annotations

from ..context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
from ..ndarray import waitall
from ..ndarray.numpy import arrays
from ..np_functions import shown
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

__getattr__, __dir__ = shown(globals(), arrays.npx, keep=True)
