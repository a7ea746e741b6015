"""SGD for large batches."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np

from ..base import error
from ..halves import wide
from ..ndarray import NDArray
from ._steps import move_one
from .base import Optimizer, zeros_like

#: warmup_strategy -> share of the warm-up done (0 to 1) -> share of the full learning rate gained.
STRATEGIES: dict[str, Any] = {"linear": lambda t: t, "power2": lambda t: t * t, "sqrt": math.sqrt, "lars": None}


class LBSGD(Optimizer):
    """SGD that adds up gradients to batches `batch_scale` times as large and warms its learning rate up.

    Every `batch_scale` calls, the mean of the gradients is applied with a learning rate that grows, during
    the warm-up, from `learning_rate` to ``batch_scale * learning_rate``; or, with 'lars', is scaled for
    each weight by ``|weight| / sqrt(|grad|**2 + wd * |weight|**2)``, kept within 0.01 and 100.

    Parameters
    ----------
    momentum : float
        Share of the last step in the next.
    multi_precision : bool
        Keep a float32 master copy of each weight of half precision, float16 or bfloat16.
    warmup_strategy : {'linear', 'power2', 'sqrt', 'lars'}
        How the learning rate grows.
    warmup_epochs : int
        Length of the warm-up.
    batch_scale : int
        Number of batches that make a large one.
    updates_per_epoch : int
        Number of batches in an epoch.
    begin_epoch : int
        Number of epochs done before.
    num_epochs : int
        Number of epochs in all; not used.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.LBSGD``, except that gradients are added up from copies.
    Goyal et al., "Accurate, large minibatch SGD" (2017); You, Gitman and Ginsburg, "Large batch training of
    convolutional networks" (2017).

    Examples
    --------
    >>> import mxcore as mx
    >>> rule, weight = LBSGD(batch_scale=2, learning_rate=0.1, warmup_epochs=0), mx.nd.array([1.0])
    >>> for g in (1.0, 3.0):
    ...     rule.update(0, weight, mx.nd.array([g]), None)
    >>> weight.asnumpy()
    array([0.6], dtype=float32)
    """

    reads_whole = True

    def __init__(
        self,
        momentum: float = 0.0,
        multi_precision: bool = False,
        warmup_strategy: str = "linear",
        warmup_epochs: int = 5,
        batch_scale: int = 1,
        updates_per_epoch: int = 32,
        begin_epoch: int = 0,
        num_epochs: int = 60,
        **kwargs: Any,
    ) -> None:
        super().__init__(multi_precision=multi_precision, **kwargs)
        if warmup_strategy not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise error(ValueError, f"warmup_strategy must be one of {known}, not {warmup_strategy!r}")
        logging.info(
            "LBSGD: batch_scale=%s, warmup_epochs=%d, warmup_strategy=%s, updates_per_epoch=%d",
            batch_scale,
            warmup_epochs,
            warmup_strategy,
            updates_per_epoch,
        )
        self.momentum = momentum
        self.warmup_strategy = warmup_strategy
        self.warmup_epochs = warmup_epochs
        self.batch_scale = batch_scale
        self.updates_per_epoch = updates_per_epoch
        self.init_updates = begin_epoch * updates_per_epoch
        self.num_epochs = num_epochs
        # Index -> {"cum_grad": sum of gradients, "num_cums": number of calls}.
        self.cumgrads: dict[Any, dict[str, Any]] = {}

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight, weight.stype) if self.momentum != 0.0 else None

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd = self._get_lr(index), self._get_wd(index)
        self._update_count(index)
        sums = self.cumgrads.setdefault(index, {"cum_grad": 0, "num_cums": self.init_updates})
        sums["num_cums"] += 1
        sums["cum_grad"] = grad.copy() if isinstance(sums["cum_grad"], int) else grad + sums["cum_grad"]
        if sums["num_cums"] % self.batch_scale:
            return
        grad, sums["cum_grad"] = sums["cum_grad"] / self.batch_scale, 0
        if self.warmup_strategy == "lars":
            lr *= self._layer_scale(weight, grad, wd)
        else:
            lr *= self._warm(sums["num_cums"])
        common = self._common()
        if self.momentum > 0:
            common["momentum"] = self.momentum
        move_one(weight, grad, state, False, lr=lr, wd=wd, **common)

    def _warm(self, updates: int) -> float:
        """Factor on the learning rate after a number of updates."""
        whole = self.warmup_epochs * self.updates_per_epoch
        if updates >= whole:
            return float(self.batch_scale)
        if whole <= 1:
            return 1.0
        return 1.0 + (self.batch_scale - 1.0) * float(STRATEGIES[self.warmup_strategy](updates / whole))

    @staticmethod
    def _layer_scale(weight: NDArray, grad: NDArray, wd: float) -> float:
        weight2, grad2 = (float(np.square(wide(a.asnumpy())).sum()) for a in (weight, grad))
        return min(max(math.sqrt(weight2 / (grad2 + wd * weight2 + 1e-18)), 0.01), 100)
