"""`Loss`: what all losses share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import error
from ..block import HybridBlock

__all__ = ["Loss", "numeric_types"]

#: What counts as a number.
numeric_types = (float, int, np.generic)


class Loss(HybridBlock):
    """Base of all losses.

    Most losses give one number a sample: the mean over all axes but the batch axis.

    Parameters
    ----------
    weight : float or None
        Factor on the loss.
    batch_axis : int
        The axis of the samples.
    **kwargs
        prefix, params.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.loss.Loss``. A `sample_weight` given to a loss is an array that
    broadcasts to it, e.g. of shape ``(batch, 1)``.
    """

    def __init__(self, weight: float | None, batch_axis: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if weight is not None and not isinstance(weight, numeric_types):
            raise error(AssertionError, f"{type(self).__name__}: weight must be a number, got {weight!r}")
        self._weight = weight
        self._batch_axis = batch_axis

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def _weighted(self, F: Any, loss: Any, sample_weight: Any, factor: float = 1.0) -> Any:
        """The loss times the samples' weights and the loss's own, which is first multiplied by `factor`."""
        if sample_weight is not None:
            loss = F.broadcast_mul(loss, sample_weight)
        return loss if self._weight is None else loss * (self._weight * factor)

    def _sample_mean(self, F: Any, loss: Any) -> Any:
        return F.mean(loss, axis=self._batch_axis, exclude=True)
