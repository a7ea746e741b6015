"""What NumPy does not have, for arrays of ``mx.np``: layers, devices, switches; ``mxnet.numpy_extension``, ``mx.npx``."""

from __future__ import annotations

from .._reexports import reexports
from ..ndarray import waitall
from ..util import is_np_array, is_np_shape, reset_np, set_np, use_np, use_np_array, use_np_shape

__all__ = ["is_np_array", "is_np_shape", "reset_np", "set_np", "use_np", "use_np_array", "use_np_shape", "waitall"]

__getattr__ = reexports(__name__)
