"""Nesterov's accelerated gradient."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray
from ._steps import move_one, state_and_master
from .base import Optimizer, zeros_like


class NAG(Optimizer):
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

    def __init__(self, momentum: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight) if self.momentum != 0.0 else None

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        return state_and_master(self, index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._move(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._move(index, weight, grad, state, self._has_master(weight))

    def _move(self, index: Any, weight: Any, grad: Any, state: Any, master: bool) -> None:
        lr, wd, _ = self._begin(index)
        common = self._common()
        if self.momentum > 0:
            common["momentum"] = self.momentum
        move_one(weight, grad, state, master, "nag_mom_update", lr=lr, wd=wd, **common)
