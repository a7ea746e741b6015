"""Normal noise."""

from __future__ import annotations

from typing import Any

from .. import random
from ..ndarray import NDArray
from .base import Initializer


class Normal(Initializer):
    """Fill with normal noise of mean 0.

    Parameters
    ----------
    sigma : float
        Standard deviation.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.Normal``.

    Examples
    --------
    >>> Normal(0.1).dumps()
    '["normal", {"sigma": 0.1}]'
    """

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, _: Any, arr: NDArray) -> None:
        random.normal(0, self.sigma, out=arr)
