"""Perplexity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base import asserted, error
from .base import EvalMetric, as_it_is, host


class Perplexity(EvalMetric):
    """The perplexity of predicted probabilities: ``exp(-mean(log p(label)))``.

    Parameters
    ----------
    ignore_label : int or None
        Label that does not count, such as padding.
    axis : int
        Axis of the classes.
    name, output_names, label_names
        As for `EvalMetric`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.Perplexity``. Probabilities below 1e-10 count as that.

    Examples
    --------
    >>> m = Perplexity(ignore_label=None)
    >>> m.update([np.array([0, 1])], [np.array([[0.5, 0.5], [0.5, 0.5]])])
    >>> round(m.get()[1], 6)
    2.0
    """

    def __init__(
        self,
        ignore_label: int | None,
        axis: int = -1,
        name: str = "perplexity",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True, ignore_label=ignore_label, axis=axis)
        self.ignore_label = ignore_label
        self.axis = axis

    def update(self, labels: Any, preds: Any) -> None:
        if len(labels) != len(preds):
            raise error(ValueError, f"{len(labels)} labels, but {len(preds)} predictions")
        loss, count = 0.0, 0
        for label, pred in zip(labels, preds):
            given, pred = as_it_is(label).ravel(), host(pred)
            label = given.astype("int32")
            if not -pred.ndim <= self.axis < pred.ndim:
                raise error(ValueError, f"predictions with axes {pred.shape} have no axis {self.axis}")
            pred = np.moveaxis(pred, self.axis, -1)
            if label.size * pred.shape[-1] != pred.size or (label.size and not pred.size):
                raise asserted(ValueError, f"{label.size} labels do not fit predictions with axes {pred.shape}")
            classes = pred.shape[-1]
            # Labels out of range take the nearest class, as the operator pick does.
            chosen = pred.reshape(label.size, classes)[np.arange(label.size), label.clip(0, classes - 1)]
            if self.ignore_label is not None:
                given = label if given.dtype.kind == "b" else given
                # The label that does not count is compared in the dtype of the labels, which may have fractions.
                chosen = chosen[given != np.asarray(self.ignore_label).astype(given.dtype)]
            loss -= float(np.log(np.maximum(chosen, 1e-10)).sum(dtype="float64"))
            count += chosen.size
        self._tally(loss, count)

    def _value(self, total: float, count: int) -> float:
        return math.exp(total / count)
