"""Optimizers that MXNet has under ``mx.optimizer.contrib``."""

from __future__ import annotations

from typing import Any

from .. import ndarray as nd
from ..base import asserted, error
from ..ndarray import NDArray
from .base import Optimizer


class GroupAdaGrad(Optimizer):
    """AdaGrad with one rate for each row, for embeddings.

    ::

        grad    = clip(rescale_grad * grad)
        history = history + mean(grad**2, axis=1)
        weight  = weight - lr * grad / sqrt(history + eps)

    Parameters
    ----------
    eps : float
        Added to the denominator.
    **kwargs
        As for `Optimizer`; weight decay is refused.

    Raises
    ------
    MXNetError
        (also ValueError) if a weight has not 2 dimensions, or has weight decay.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.contrib.GroupAdaGrad``. With a row_sparse gradient only
    its rows move.

    Examples
    --------
    >>> GroupAdaGrad().float_stable_eps
    1e-05
    """

    def __init__(self, eps: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> Any:
        if len(weight.shape) != 2:
            raise error(ValueError, f"GroupAdaGrad needs matrices; parameter {index} is of {weight.shape}")
        return nd.zeros((weight.shape[0], 1), weight.context, dtype=weight.dtype, stype=weight.stype)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        if wd:
            raise asserted(ValueError, f"GroupAdaGrad has no weight decay, but wd is {wd} for parameter {index}")
        if grad.stype == "row_sparse":
            nd.contrib.group_adagrad_update(
                weight, grad, state, out=weight, lr=lr, epsilon=self.float_stable_eps, **self._common()
            )
            return
        grad = self._prepared(grad)
        state += grad.square().mean(axis=1, keepdims=True)
        weight -= grad * lr / (state + self.float_stable_eps).sqrt()
