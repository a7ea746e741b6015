"""Uniform noise."""

from __future__ import annotations

from typing import Any

from .. import random
from ..ndarray import NDArray
from .base import Initializer


class Uniform(Initializer):
    """Fill with uniform noise in [-scale, scale).

    Parameters
    ----------
    scale : float
        Bound of the noise.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.Uniform``.

    Examples
    --------
    >>> Uniform(0.1).dumps()
    '["uniform", {"scale": 0.1}]'
    """

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, _: Any, arr: NDArray) -> None:
        random.uniform(-self.scale, self.scale, out=arr)
