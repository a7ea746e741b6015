"""Orthogonal matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import random
from ..base import error
from ..ndarray import NDArray
from .base import Initializer


class Orthogonal(Initializer):
    """Fill with a random matrix of orthogonal rows or columns, whichever are fewer.

    Parameters
    ----------
    scale : float
        Length of these rows or columns.
    rand_type : {'uniform', 'normal'}
        Noise to orthogonalize.

    Raises
    ------
    MXNetError
        (also ValueError) if `rand_type` is unknown.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.Orthogonal``; Saxe, McClelland and Ganguli, "Exact solutions to
    the nonlinear dynamics of learning in deep linear neural networks" (2013). Axes after the first count as
    one.

    Examples
    --------
    >>> import mxcore as mx
    >>> a = mx.nd.zeros((2, 3))
    >>> Orthogonal(scale=1)(mx.init.InitDesc("fc_weight"), a)
    >>> (a.asnumpy() @ a.asnumpy().T).round(4) + 0.0
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform") -> None:
        super().__init__(scale=scale, rand_type=rand_type)
        if rand_type not in ("uniform", "normal"):
            raise error(ValueError, f"rand_type must be 'uniform' or 'normal', not {rand_type!r}")
        self.scale = scale
        self.rand_type = rand_type

    def _init_weight(self, _: Any, arr: NDArray) -> None:
        shape = (arr.shape[0], math.prod(arr.shape[1:]))
        if self.rand_type == "uniform":
            noise = random.uniform(-1.0, 1.0, shape=shape)
        else:
            noise = random.normal(0.0, 1.0, shape=shape)
        u, _, v = np.linalg.svd(noise.asnumpy(), full_matrices=False)
        arr[:] = self.scale * (u if u.shape == shape else v).reshape(arr.shape)
