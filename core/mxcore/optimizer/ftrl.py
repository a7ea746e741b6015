"""Follow the regularized leader."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray
from ._fused import FusedOptimizer
from .base import zeros_like


class Ftrl(FusedOptimizer):
    """Follow the regularized leader: sparse weights by an L1 penalty.

    ::

        grad   = clip(rescale_grad * grad)
        z      = z + grad - (sqrt(n + grad**2) - sqrt(n)) * weight / lr
        n      = n + grad**2
        weight = (sign(z) * lamda1 - z) / ((beta + sqrt(n)) / lr + wd) where |z| > lamda1, else 0

    Parameters
    ----------
    lamda1 : float
        The L1 penalty.
    learning_rate : float
        The learning rate.
    beta : float
        Added to the root of `n`.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.Ftrl``; McMahan et al., "Ad click prediction: a view from
    the trenches" (KDD 2013).

    Examples
    --------
    >>> Ftrl().lamda1
    0.01
    """

    def __init__(self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lr = learning_rate  # a scheduler keeps its own base rate here
        self.lamda1 = lamda1
        self.beta = beta

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight, weight.stype), zeros_like(weight, weight.stype)

    def _operator(self, state: Any) -> Any:
        return "ftrl_update", state

    def _numbers(self, name: str, t: int) -> dict[str, Any]:
        return {"lamda1": self.lamda1, "beta": self.beta, **self._common()}
