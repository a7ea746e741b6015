"""Nesterov's accelerated gradient."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray
from ._fused import FusedOptimizer
from .base import zeros_like


class NAG(FusedOptimizer):
    """Nesterov's accelerated gradient.

    ::

        grad   = clip(rescale_grad * grad)
        ahead  = momentum * state - lr * (grad + wd * weight)
        weight = weight + momentum * ahead - lr * (grad + wd * weight)
        state  = momentum * state - lr * (grad + wd * weight)           (of the new weight)

    Parameters
    ----------
    momentum : float
        Share of the last step in the next; 0 is plain SGD.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.NAG``; Sutskever, Martens, Dahl and Hinton, "On the
    importance of initialization and momentum in deep learning" (ICML 2013).

    Examples
    --------
    >>> import mxcore as mx
    >>> rule, weight = NAG(momentum=0.5, learning_rate=0.1), mx.nd.array([1.0])
    >>> rule.update(0, weight, mx.nd.array([2.0]), rule.create_state(0, weight))
    >>> weight.asnumpy()
    array([0.7], dtype=float32)
    """

    _master_last = True

    def __init__(self, momentum: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight) if self.momentum != 0.0 else None

    def _operator(self, state: Any) -> Any:
        return ("sgd_update", ()) if state is None else ("nag_mom_update", (state,))

    def _numbers(self, name: str, t: int) -> dict[str, Any]:
        return {**self._common(), **({"momentum": self.momentum} if self.momentum > 0 else {})}
