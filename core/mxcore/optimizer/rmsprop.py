"""Steps over the root of the mean square."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray
from ._fused import FusedOptimizer
from .base import zeros_like


class RMSProp(FusedOptimizer):
    """RMSProp: steps over the root of the mean square of recent gradients.

    ::

        grad   = clip(rescale_grad * grad) + wd * weight
        n      = gamma1 * n + (1 - gamma1) * grad**2
        weight = weight - lr * grad / sqrt(n + epsilon)

    and, centered::

        g      = gamma1 * g + (1 - gamma1) * grad
        delta  = gamma2 * delta - lr * grad / sqrt(n - g**2 + epsilon)
        weight = weight + delta

    Parameters
    ----------
    learning_rate : float
        The learning rate.
    gamma1 : float
        Decay of the moments.
    gamma2 : float
        Momentum, if centered.
    epsilon : float
        Added to the denominator.
    centered : bool
        Use Graves's variant.
    clip_weights : float, optional
        Bound on the absolute value of each weight.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.RMSProp``; Tieleman and Hinton, lecture 6.5 of "Neural
    networks for machine learning" (2012); Graves, "Generating sequences with recurrent neural networks"
    (2013), equations 38-45.

    Examples
    --------
    >>> import mxcore as mx
    >>> rule, weight = RMSProp(learning_rate=0.1, gamma1=0.75), mx.nd.array([1.0])
    >>> rule.update(0, weight, mx.nd.array([2.0]), rule.create_state(0, weight))
    >>> weight.asnumpy()
    array([0.8], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        gamma1: float = 0.9,
        gamma2: float = 0.9,
        epsilon: float = 1e-8,
        centered: bool = False,
        clip_weights: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.centered = centered
        self.epsilon = epsilon
        self.clip_weights = clip_weights

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return tuple(zeros_like(weight, weight.stype) for _ in range(3 if self.centered else 1))

    def _operator(self, state: Any) -> Any:
        return ("rmspropalex_update" if self.centered else "rmsprop_update"), state

    def _numbers(self, name: str, t: int) -> dict[str, Any]:
        numbers = {"gamma1": self.gamma1, "epsilon": self.epsilon, **self._common()}
        if self.clip_weights:
            numbers["clip_weights"] = self.clip_weights
        return {**numbers, "gamma2": self.gamma2} if name == "rmspropalex_update" else numbers
