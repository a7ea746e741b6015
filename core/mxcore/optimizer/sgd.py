"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray
from ._fused import FusedOptimizer
from ._steps import aggregation_size, move_all, move_one
from .base import zeros_like

#: Elements of a weight from which threads share its update: a call for many starts them once.
_SHARED = 1 << 15


class SGD(FusedOptimizer):
    """Stochastic gradient descent with momentum and weight decay.

    ::

        state  = momentum * state - lr * (clip(rescale_grad * grad) + wd * weight)
        weight = weight + state

    Parameters
    ----------
    momentum : float
        Share of the last step in the next; 0 keeps no state.
    lazy_update : bool
        With row_sparse gradients, move only the rows that have one.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.SGD``. One call moves up to
    ``MXNET_OPTIMIZER_AGGREGATION_SIZE`` (4) weights.

    Examples
    --------
    >>> import mxcore as mx
    >>> weight = mx.nd.array([1.0])
    >>> mx.optimizer.SGD(learning_rate=0.1).update(0, weight, mx.nd.array([2.0]), None)
    >>> weight.asnumpy()
    array([0.8], dtype=float32)
    """

    _master_last = True

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.lazy_update = lazy_update
        self.aggregate_num = aggregation_size(4)

    def create_state(self, index: Any, weight: NDArray) -> Any:
        if self.momentum == 0.0:
            return None
        return zeros_like(weight, weight.stype if self.lazy_update else "default")

    def _operator(self, state: Any) -> Any:
        return ("sgd_update", ()) if state is None else ("sgd_mom_update", (state,))

    def _numbers(self, name: str, t: int) -> dict[str, Any]:
        common = {"lazy_update": self.lazy_update, **self._common()}
        if self.momentum > 0:
            common["momentum"] = self.momentum
        return common

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._move(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        several = isinstance(index, (list, tuple))
        self._move(index, weight, grad, state, self._has_master(weight[0] if several else weight))

    def _move(self, index: Any, weight: Any, grad: Any, state: Any, master: bool) -> None:
        if not isinstance(index, (list, tuple)):
            index, weight, grad, state = [index], [weight], [grad], [state]
        self._update_count(index)
        lrs, wds = self._get_lrs(index), self._get_wds(index)
        common = self._numbers("sgd_mom_update", 0)
        lazy = common.pop("lazy_update")
        # One call for many weights saves launches; where kernels run in the caller, lists of small ones cost more than
        # calls.
        if (
            len(weight) > 1
            and (weight[0].context.device.async_ or all(w.size >= _SHARED for w in weight))
            and all(a.stype == "default" for a in (*weight, *grad))
        ):
            move_all(weight, grad, state, self.momentum > 0, master, lrs=lrs, wds=wds, **common)
            return
        for w, g, s, lr, wd in zip(weight, grad, state, lrs, wds):
            move_one(w, g, s, master, lr=lr, wd=wd, lazy_update=lazy, **common)
