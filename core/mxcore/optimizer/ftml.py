"""Follow the moving leader."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray
from ._fused import FusedOptimizer
from .base import zeros_like


class FTML(FusedOptimizer):
    """Follow the moving leader.

    ::

        grad   = clip(rescale_grad * grad + wd * weight)
        v      = beta2 * v + (1 - beta2) * grad**2
        d_new  = (1 - beta1**t) / lr * (sqrt(v / (1 - beta2**t)) + epsilon)
        z      = beta1 * z + (1 - beta1) * grad - (d_new - beta1 * d) * weight
        weight = -z / d_new

    Parameters
    ----------
    beta1, beta2 : float
        Decays, 0 < beta1 < 1 and 0 < beta2 < 1.
    epsilon : float
        Added to the denominator.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.FTML``; Zheng and Kwok, "Follow the moving leader in deep
    learning" (ICML 2017).

    Examples
    --------
    >>> FTML().beta1
    0.6
    """

    def __init__(self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return tuple(zeros_like(weight) for _ in range(3))

    def _operator(self, state: Any) -> Any:
        return "ftml_update", state

    def _numbers(self, name: str, t: int) -> dict[str, Any]:
        clip = {"clip_grad": self.clip_gradient} if self.clip_gradient else {}
        numbers = {"t": t, "rescale_grad": self.rescale_grad, **clip}
        return {**numbers, "beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon}
