"""Pearson correlation."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._signatures import with_defaults
from ._averaged import AveragedMetric
from .base import Array, check_label_shapes, host


@with_defaults(name="pearsonr")
class PearsonCorrelation(AveragedMetric):
    """The Pearson correlation of labels and predictions.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.
    average : {'macro', 'micro'}
        Mean of the correlations of the batches, or the correlation of everything.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.PearsonCorrelation``. 'micro' merges the moments of batches
    (Chan, Golub and LeVeque, 1979) since the last `reset`; `reset_local` leaves them.

    Examples
    --------
    >>> m = PearsonCorrelation()
    >>> m.update([np.array([1.0, 2.0, 3.0])], [np.array([2.0, 4.0, 6.0])])
    >>> round(m.get()[1], 6)
    1.0
    """

    def reset_micro(self) -> None:
        """Empty the moments that 'micro' keeps."""
        self._label = self._pred = (0, 0.0, 0.0)
        self._co_moment = 0.0

    def reset(self) -> None:
        super().reset()
        self.reset_micro()

    def update_variance(self, new_values: Array, *aggregate: Any) -> tuple[int, float, float]:
        """Merge values into a (count, mean, sum of squared deviations).

        Parameters
        ----------
        new_values : numpy.ndarray
            The values to take in.
        *aggregate : int, float, float
            Count, mean and sum of squared deviations so far.

        Returns
        -------
        count : int
        mean, squares : float
        """
        count, mean, squares = aggregate
        if not new_values.size:
            return count, mean, squares
        n, new_mean = new_values.size, float(new_values.mean())
        total, shift = count + n, new_mean - mean
        squares += float(((new_values - new_mean) ** 2).sum()) + shift**2 * count * n / total
        return total, mean + shift * n / total, squares

    def update_cov(self, label: Array, pred: Array) -> None:
        """Merge a batch into the sum of products of deviations; call it before the two `update_variance`.

        Parameters
        ----------
        label, pred : numpy.ndarray
            The true and the predicted values.
        """
        count, n = self._label[0], label.size
        if not n:
            return
        label_mean, pred_mean = float(label.mean()), float(pred.mean())
        shift = (label_mean - self._label[1]) * (pred_mean - self._pred[1]) * count * n / (count + n)
        self._co_moment += float(((label - label_mean) * (pred - pred_mean)).sum()) + shift

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds):
            label, pred = host(label, "float64"), host(pred, "float64")
            check_label_shapes(label, pred, False, True)
            label, pred = label.ravel(), pred.ravel()
            if self.average == "macro":
                self._tally(float(np.corrcoef(pred, label)[0, 1]), 1)
            else:
                self.update_cov(label, pred)
                self._label = self.update_variance(label, *self._label)
                self._pred = self.update_variance(pred, *self._pred)
                self._tally(0.0, 1)

    def _value(self, total: float, count: int) -> float:
        if self.average == "macro":
            return total / count
        spread = self._label[2] * self._pred[2]
        return self._co_moment / spread**0.5 if spread else float("nan")
