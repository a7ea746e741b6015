"""Layer-wise adaptive rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import ndarray as nd
from ..ndarray import NDArray
from ._steps import aggregation_size, move_all, move_one, state_and_master
from .base import Optimizer, zeros_like


class LARS(Optimizer):
    """SGD whose learning rate is adapted to each layer.

    ::

        lr = lr * eta * |weight| / (|rescale_grad * grad| + wd * |weight| + eps)

    for each weight, where both norms are positive; gammas, betas and biases keep the plain learning rate.
    Then as `SGD`.

    Parameters
    ----------
    momentum : float
        Share of the last step in the next.
    lazy_update : bool
        With row_sparse gradients, move only the rows that have one.
    eta : float
        The trust coefficient.
    eps : float
        Added to the denominator.
    momentum_correction : bool
        Scale the momentum by the change of the learning rate since the last update.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.LARS``; You, Gitman and Ginsburg, "Large batch training of
    convolutional networks" (2017). Norms and rates stay on the device.

    Examples
    --------
    >>> LARS(momentum=0.9).eta
    0.001
    """

    #: Only weights decay here.
    _decaying = ("_weight",)

    reads_whole = True

    def __init__(
        self,
        momentum: float = 0.0,
        lazy_update: bool = True,
        eta: float = 0.001,
        eps: float = 0,
        momentum_correction: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.momentum_correction = momentum_correction
        self.lazy_update = lazy_update
        self.aggregate_num = aggregation_size(4)
        self.eta = eta
        self.eps = eps
        self.skip = 0
        self.last_lr: float | None = None
        self.cur_lr: float | None = None

    def create_state(self, index: Any, weight: NDArray) -> Any:
        if self.momentum == 0.0:
            return None
        return zeros_like(weight, weight.stype if self.lazy_update else "default")

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        return state_and_master(self, index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._move(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        several = isinstance(index, (list, tuple))
        self._move(index, weight, grad, state, self._has_master(weight[0] if several else weight))

    def _get_lrs(self, indices: Sequence[Any]) -> list[float]:
        lr = self.learning_rate
        self.last_lr = lr if self.cur_lr is None else self.cur_lr
        self.cur_lr = lr
        return self._scaled(lr, indices, "lr_mult")

    def _is_adapted(self, index: Any) -> bool:
        return not str(self.idx2name.get(index, index)).endswith(("gamma", "beta", "bias"))

    def _move(self, index: Any, weight: Any, grad: Any, state: Any, master: bool) -> None:
        if not isinstance(index, (list, tuple)):
            index, weight, grad, state = [index], [weight], [grad], [state]
        self._update_count(index)
        lrs, wds = self._get_lrs(index), self._get_wds(index)
        common = self._common()
        if self.momentum > 0:
            last, now = self.last_lr, self.cur_lr
            common["momentum"] = self.momentum * (
                now / last if self.momentum_correction and now is not None and last else 1
            )
        if all(a.stype == "default" for a in (*weight, *grad)):
            self._move_dense(index, weight, grad, state, master, lrs, wds, common)
            return
        for i, w, g, s, lr, wd in zip(index, weight, grad, state, lrs, wds):
            lr = self._adapted(w, g, lr, wd) if self._is_adapted(i) else lr
            move_one(w, g, s, master, lr=lr, wd=wd, lazy_update=self.lazy_update, **common)

    def _adapted(self, weight: NDArray, grad: NDArray, lr: float, wd: float) -> float:
        w_norm = float(weight.astype("float32").norm().asscalar())
        g_norm = float(grad.astype("float32").norm().asscalar()) * self.rescale_grad
        if w_norm > 0 and g_norm > 0:
            lr *= self.eta * w_norm / (g_norm + wd * w_norm + self.eps)
        return lr

    def _move_dense(
        self,
        index: list[Any],
        weight: list[NDArray],
        grad: list[NDArray],
        state: list[Any],
        master: bool,
        lrs: list[float],
        wds: list[float],
        common: dict[str, Any],
    ) -> None:
        """Adapt all rates in one operator, then move the weights in groups."""
        order = sorted(range(len(index)), key=lambda k: not self._is_adapted(index[k]))  # they come first
        weight, grad, state = ([part[k] for k in order] for part in (weight, grad, state))
        rates, decays = (
            nd.array([part[k] for k in order], ctx=weight[0].context, dtype="float32") for part in (lrs, wds)
        )
        n = sum(self._is_adapted(i) for i in index)
        if n:
            w_squares, g_squares = (nd.multi_sum_sq(*part[:n], num_arrays=n) for part in (weight, grad))
            numbers = {"eta": self.eta, "eps": self.eps, "rescale_grad": self.rescale_grad}
            nd.multi_lars(rates[:n], w_squares, g_squares, decays[:n], **numbers, out=rates[:n])
        for start in range(0, len(weight), max(self.aggregate_num, 1)):
            part = slice(start, start + max(self.aggregate_num, 1))
            move_all(
                weight[part],
                grad[part],
                state[part],
                self.momentum > 0,
                master,
                preloaded=(rates[part], decays[part]),
                **common,
            )
