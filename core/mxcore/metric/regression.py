"""Metrics of real-valued predictions: mean absolute, mean squared and root mean squared error."""

import numpy as np

from .._signatures import with_defaults
from ..base import error
from .base import PairMetric


class RegressionMetric(PairMetric):
    """A mean over batches of a figure of ``label - prediction``; vectors count as columns."""

    def __init__(self, name, output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def measure(self, label, pred):
        label, pred = (a.reshape(-1, 1) if a.ndim == 1 else a for a in (label, pred))
        return float(self.reduce(label - pred)), 1

    def reduce(self, difference):
        """Return the figure of one batch from its differences."""
        raise error(NotImplementedError, f"metric {type(self).__name__} does not define reduce(difference)")


class MAE(RegressionMetric):
    """The mean absolute error: ``mean(|y - p|)``, averaged over batches.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.MAE``.

    Examples
    --------
    >>> m = MAE()
    >>> m.update([np.array([3.0, 0.0])], [np.array([2.0, 3.0])])
    >>> m.get()
    ('mae', 2.0)
    """

    __init__ = with_defaults(RegressionMetric.__init__, name="mae")

    def reduce(self, difference):
        return np.abs(difference).mean()


class MSE(RegressionMetric):
    """The mean squared error: ``mean((y - p)**2)``, averaged over batches.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.MSE``.

    Examples
    --------
    >>> m = MSE()
    >>> m.update([np.array([3.0, 0.0])], [np.array([2.0, 3.0])])
    >>> m.get()
    ('mse', 5.0)
    """

    __init__ = with_defaults(RegressionMetric.__init__, name="mse")

    def reduce(self, difference):
        return (difference**2).mean()


class RMSE(RegressionMetric):
    """The root of the mean squared error: ``sqrt(mean((y - p)**2))``, averaged over batches.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.RMSE``.

    Examples
    --------
    >>> m = RMSE()
    >>> m.update([np.array([3.0, 0.0])], [np.array([2.0, 1.0])])
    >>> m.get()
    ('rmse', 1.0)
    """

    __init__ = with_defaults(RegressionMetric.__init__, name="rmse")

    def reduce(self, difference):
        return (difference**2).mean() ** 0.5
