"""Losses of numbers against numbers."""

from __future__ import annotations

import math
from typing import Any

from .base import Loss

__all__ = ["HuberLoss", "L1Loss", "L2Loss", "PoissonNLLLoss"]


class L2Loss(Loss):
    """Half the squared difference: ``weight / 2 * (label - pred)²``.

    Parameters
    ----------
    weight : float, default 1.0
        Factor on the loss.
    batch_axis : int, default 0
        The axis of the samples.
    **kwargs
        prefix, params.

    Notes
    -----
    Called as ``loss(pred, label, sample_weight=None)``. Behaviour matched: MXNet 1.9.1 ``gluon.loss.L2Loss``.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.gluon.loss.L2Loss()(mx.nd.array([1, 2]), mx.nd.array([1, 4])).asnumpy().tolist()
    [0.0, 2.0]
    """

    def __init__(self, weight: float = 1.0, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        loss = F.square(F.reshape_like(label, pred) - pred)
        return self._sample_mean(F, self._weighted(F, loss, sample_weight, 0.5))


class L1Loss(Loss):
    """The absolute difference ``|label - pred|``.

    Parameters
    ----------
    weight, batch_axis, **kwargs
        See `Loss`.

    Notes
    -----
    Called as ``loss(pred, label, sample_weight=None)``.
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        loss = F.abs(F.reshape_like(label, pred) - pred)
        return self._sample_mean(F, self._weighted(F, loss, sample_weight))


class HuberLoss(Loss):
    """Squared for small differences, linear for those above `rho` (Huber, 1964).

    Parameters
    ----------
    rho : float, default 1
        Where the loss becomes linear.
    weight, batch_axis, **kwargs
        See `Loss`.

    Notes
    -----
    Called as ``loss(pred, label, sample_weight=None)``.
    """

    def __init__(self, rho: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = rho

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        distance = F.abs(F.reshape_like(label, pred) - pred)
        loss = F.where(distance > self._rho, distance - 0.5 * self._rho, (0.5 / self._rho) * F.square(distance))
        return self._sample_mean(F, self._weighted(F, loss, sample_weight))


class PoissonNLLLoss(Loss):
    """Negative log likelihood of counts under a Poisson distribution.

    Parameters
    ----------
    weight : float, optional
    from_logits : bool, default True
        Whether `pred` is the logarithm of the expected count, or the count itself.
    batch_axis : int, default 0
    compute_full : bool, default False
        Add Stirling's approximation of the part that does not depend on `pred`.
    **kwargs
        prefix, params.

    Notes
    -----
    Called as ``loss(pred, target, sample_weight=None, epsilon=1e-8)``. Unlike other losses it gives one
    number for the whole batch. Behaviour matched: MXNet 1.9.1 ``gluon.loss.PoissonNLLLoss``.
    """

    def __init__(
        self,
        weight: float | None = None,
        from_logits: bool = True,
        batch_axis: int = 0,
        compute_full: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._compute_full = compute_full

    def hybrid_forward(self, F: Any, pred: Any, target: Any, sample_weight: Any = None, epsilon: Any = 1e-08) -> Any:
        target = F.reshape_like(target, pred)
        if self._from_logits:
            loss = F.exp(pred) - target * pred
        else:
            loss = pred - target * F.log(pred + epsilon)
        if self._compute_full:
            # Of counts up to 1 the logarithm of the factorial is 0, and log(0) would spoil the sum.
            large = target > 1
            safe = F.where(large, target, F.ones_like(target))
            loss = loss + large * (safe * F.log(safe) - safe + 0.5 * F.log(2 * math.pi * safe))
        return F.mean(self._weighted(F, loss, sample_weight))
