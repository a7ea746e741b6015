"""Which kernel computes which operator on a GPU: a few lines each, a module per kind of operator.

Where none fits (another layout, a dtype that it is not made for) the operator's reference body over CuPy runs instead.
"""

# ruff: noqa: F401 - importing them is what binds

from . import (
    attention,
    convolution,
    elementwise,
    indexing,
    losses,
    matrices,
    normalization,
    optimizers,
    pooling,
    random,
    recurrent,
    reductions,
    regions,
    sequences,
    softmax,
    sparse,
)
from .common import gpu

__all__ = ["gpu"]
