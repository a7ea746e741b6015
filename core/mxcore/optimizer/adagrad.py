"""Rates adapted to the gradients so far."""

from __future__ import annotations

from typing import Any

from .. import ndarray as nd
from ..ndarray import NDArray
from .base import Optimizer, zeros_like


class AdaGrad(Optimizer):
    """AdaGrad: steps over the root of the sum of squares of all gradients.

    ::

        grad    = clip(rescale_grad * grad)
        history = history + grad**2
        weight  = weight - lr * (grad / sqrt(history + eps) + wd * weight)

    Parameters
    ----------
    eps : float
        Added to the denominator.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.AdaGrad``; Duchi, Hazan and Singer, JMLR 12 (2011),
    2121-2159. With a row_sparse gradient only its rows move.

    Examples
    --------
    >>> import mxcore as mx
    >>> rule, weight = AdaGrad(learning_rate=0.1), mx.nd.array([1.0])
    >>> rule.update(0, weight, mx.nd.array([2.0]), rule.create_state(0, weight))
    >>> weight.asnumpy()
    array([0.9], dtype=float32)
    """

    def __init__(self, eps: float = 1e-7, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight, weight.stype)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        if grad.stype == "row_sparse":
            nd.sparse.adagrad_update(
                weight, grad, state, out=weight, lr=lr, wd=wd, epsilon=self.float_stable_eps, **self._common()
            )
            return
        grad = self._prepared(grad)
        state += grad.square()
        weight -= (grad / (state + self.float_stable_eps).sqrt() + weight * wd) * lr
