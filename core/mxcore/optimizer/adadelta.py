"""Rates without units."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray
from .base import Optimizer, zeros_like


class AdaDelta(Optimizer):
    """AdaDelta: steps scaled by the ratio of recent steps to recent gradients, without a learning rate.

    ::

        grad      = clip(rescale_grad * grad)
        acc_g     = rho * acc_g + (1 - rho) * grad**2
        delta     = sqrt(acc_delta + epsilon) / sqrt(acc_g + epsilon) * grad
        acc_delta = rho * acc_delta + (1 - rho) * delta**2
        weight    = weight - delta - wd * weight

    Parameters
    ----------
    rho : float
        Decay of both accumulators.
    epsilon : float
        Added to both.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.AdaDelta``; Zeiler, "ADADELTA: an adaptive learning rate
    method" (2012).

    Examples
    --------
    >>> AdaDelta().rho
    0.9
    """

    def __init__(self, rho: float = 0.90, epsilon: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rho = rho
        self.epsilon = epsilon

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight), zeros_like(weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        _, wd, _ = self._begin(index)
        acc_g, acc_delta = state
        grad = self._prepared(grad)
        acc_g *= self.rho
        acc_g += grad.square() * (1.0 - self.rho)
        delta = (acc_delta + self.epsilon).sqrt() / (acc_g + self.epsilon).sqrt() * grad
        acc_delta *= self.rho
        acc_delta += delta.square() * (1.0 - self.rho)
        weight -= delta + weight * wd
