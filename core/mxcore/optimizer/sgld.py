"""Stochastic gradient Langevin dynamics."""

from __future__ import annotations

import math
from typing import Any

from .. import random
from ..ndarray import NDArray
from .base import Optimizer


class SGLD(Optimizer):
    """Stochastic gradient Langevin dynamics: noisy descent that samples from a posterior.

    ::

        weight = weight - lr / 2 * (clip(rescale_grad * grad) + wd * weight) + normal(0, sqrt(lr))

    Parameters
    ----------
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.SGLD``; Welling and Teh, "Bayesian learning via stochastic
    gradient Langevin dynamics" (ICML 2011).

    Examples
    --------
    >>> SGLD(learning_rate=0.1).lr
    0.1
    """

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        noise = random.normal(0, math.sqrt(lr), shape=weight.shape, dtype=weight.dtype, ctx=weight.context)
        weight += noise - (self._prepared(grad) + weight * wd) * (lr / 2)
