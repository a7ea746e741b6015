"""Adam with the maximum norm."""

from __future__ import annotations

from typing import Any

from .. import ndarray as nd
from ..ndarray import NDArray
from .base import Optimizer, zeros_like


class Adamax(Optimizer):
    """Adam with the maximum norm in the place of the root mean square.

    ::

        grad   = clip(rescale_grad * grad + wd * weight)
        mean   = beta1 * mean + (1 - beta1) * grad
        bound  = max(beta2 * bound, |grad|)
        weight = weight - lr / (1 - beta1**t) * mean / bound

    Parameters
    ----------
    learning_rate : float
        The learning rate.
    beta1, beta2 : float
        Decays.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.Adamax``; Kingma and Ba, "Adam: a method for stochastic
    optimization" (ICLR 2015), section 7.1. Elements whose gradients
    were all 0 stay, where MXNet divides 0 by 0.

    Examples
    --------
    >>> import mxcore as mx
    >>> rule, weight = Adamax(learning_rate=0.5), mx.nd.array([1.0])
    >>> rule.update(0, weight, mx.nd.array([2.0]), rule.create_state(0, weight))
    >>> weight.asnumpy().round(4)
    array([0.5], dtype=float32)
    """

    def __init__(self, learning_rate: float = 0.002, beta1: float = 0.9, beta2: float = 0.999, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight), zeros_like(weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, t = self._begin(index)
        mean, bound = state
        grad = self._clipped(grad * self.rescale_grad + weight * wd)
        mean *= self.beta1
        mean += grad * (1.0 - self.beta1)
        bound[:] = nd.maximum(bound * self.beta2, grad.abs())
        weight -= mean / (bound + (bound == 0)) * (lr / (1.0 - self.beta1**t))
