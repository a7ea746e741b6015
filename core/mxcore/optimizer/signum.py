"""Descent by signs."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray
from ._fused import FusedOptimizer
from .base import zeros_like


class Signum(FusedOptimizer):
    """Steps of one size along the sign of the momentum, or of the gradient.

    ::

        state  = momentum * state - (1 - momentum) * (clip(rescale_grad * grad) + wd * weight)
        weight = (1 - lr * wd_lh) * weight + lr * sign(state)

    Parameters
    ----------
    learning_rate : float
        Size of the steps.
    momentum : float
        Share of the last direction in the next; 0 follows the gradient alone.
    wd_lh : float
        Weight decay apart from the gradient (Loshchilov and Hutter), with momentum only.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.Signum``; Bernstein, Wang, Azizzadenesheli and Anandkumar,
    "signSGD: compressed optimisation for non-convex problems" (ICML 2018).

    Examples
    --------
    >>> import mxcore as mx
    >>> weight = mx.nd.array([1.0, 1.0])
    >>> Signum(momentum=0.0, learning_rate=0.1).update(0, weight, mx.nd.array([2.0, -3.0]), None)
    >>> weight.asnumpy()
    array([0.9, 1.1], dtype=float32)
    """

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight, weight.stype) if self.momentum != 0.0 else None

    def _operator(self, state: Any) -> Any:
        return ("signsgd_update", ()) if state is None else ("signum_update", (state,))

    def _numbers(self, name: str, t: int) -> dict[str, Any]:
        more = {"momentum": self.momentum, "wd_lh": self.wd_lh} if name == "signum_update" else {}
        return {**self._common(), **more}
