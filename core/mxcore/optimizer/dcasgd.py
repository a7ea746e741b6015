"""Descent with compensation of delays."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray
from .base import Optimizer, zeros_like


class DCASGD(Optimizer):
    """Asynchronous SGD that compensates for the delay of gradients.

    ::

        step     = lr * (grad + wd * weight + lamda * grad**2 * (weight - previous))
        mom      = momentum * mom - step
        previous = weight
        weight   = weight + mom

    Parameters
    ----------
    momentum : float
        Share of the last step in the next.
    lamda : float
        Weight of the compensation.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.DCASGD``; Zheng et al., "Asynchronous stochastic gradient
    descent with delay compensation" (ICML 2017).

    Examples
    --------
    >>> import mxcore as mx
    >>> rule, weight = DCASGD(learning_rate=0.1), mx.nd.array([1.0])
    >>> rule.update(0, weight, mx.nd.array([2.0]), rule.create_state(0, weight))
    >>> weight.asnumpy()
    array([0.8], dtype=float32)
    """

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.weight_previous: dict[Any, NDArray] = {}
        self.lamda = lamda

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return (zeros_like(weight) if self.momentum != 0.0 else None), weight.copy()

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        mom, previous = state
        grad = self._prepared(grad)
        step = (grad + weight * wd + grad * grad * (weight - previous) * self.lamda) * lr
        previous[:] = weight
        if mom is None:
            weight -= step
            return
        mom *= self.momentum
        mom -= step
        weight += mom
