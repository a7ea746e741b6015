"""Adaptive moments."""

from __future__ import annotations

import math
from typing import Any

from ..ndarray import NDArray
from ._fused import FusedOptimizer
from .base import zeros_like


class Adam(FusedOptimizer):
    """Adam: steps along the mean gradient over the root of its mean square.

    ::

        grad   = clip(rescale_grad * grad) + wd * weight
        mean   = beta1 * mean + (1 - beta1) * grad
        var    = beta2 * var  + (1 - beta2) * grad**2
        weight = weight - lr * sqrt(1 - beta2**t) / (1 - beta1**t) * mean / (sqrt(var) + epsilon)

    Parameters
    ----------
    learning_rate : float
        The learning rate.
    beta1, beta2 : float
        Decay of the moments.
    epsilon : float
        Added to the denominator.
    lazy_update : bool
        With row_sparse gradients, move only the rows that have one.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.Adam``; Kingma and Ba, "Adam: a method for stochastic
    optimization" (ICLR 2015).

    Examples
    --------
    >>> import mxcore as mx
    >>> rule, weight = Adam(learning_rate=0.1), mx.nd.array([1.0])
    >>> rule.update(0, weight, mx.nd.array([2.0]), rule.create_state(0, weight))
    >>> weight.asnumpy().round(4)
    array([0.9], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        lazy_update: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lazy_update = lazy_update

    def create_state(self, index: Any, weight: NDArray) -> Any:
        stype = weight.stype if self.lazy_update else "default"
        return zeros_like(weight, stype), zeros_like(weight, stype)

    def _fused_step(self, index: Any, state: Any) -> Any:
        lr, wd, t = self._begin(index)
        lr *= math.sqrt(1.0 - self.beta2**t) / (1.0 - self.beta1**t)
        numbers = self._common()
        numbers.update(lr=lr, wd=wd, beta1=self.beta1, beta2=self.beta2, epsilon=self.epsilon)
        numbers["lazy_update"] = self.lazy_update
        return "adam_update", state, numbers
