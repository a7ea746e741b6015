"""Which kernel computes which operator on the CPU, and when: a row or a few lines each, a module per kind of operator.

All but a few kernels write into given arrays. Where one does not fit (another layout, a dtype that Numba does not know,
an array too small to pay) the operator's reference body over NumPy runs instead.
"""

from . import (  # noqa: F401 - importing them is what binds
    detection,
    elementwise,
    indexing,
    matrices,
    neural,
    normalization,
    optimizers,
    ordering,
    quantization,
    random,
    reductions,
    sequences,
    softmax,
    sparse,
    spatial,
)
from .common import cpu

__all__ = ["cpu"]
