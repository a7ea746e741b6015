"""Metrics of real-valued predictions: mean absolute, mean squared and root mean squared error."""

import numpy as np

from .._signatures import with_defaults
from ..base import error
from .base import Array, PairMetric


class RegressionMetric(PairMetric):
    """A mean over batches of a figure of ``label - prediction``; vectors count as columns."""

    def __init__(
        self, name: str = "regression", output_names: list[str] | None = None, label_names: list[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names)

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        # Differences of unsigned numbers may be below 0, and squares of whole ones beyond what their dtype holds.
        label, pred = (a.astype(np.float64) if a.dtype.kind in "biu" else a for a in (label, pred))
        label, pred = (a.reshape(-1, 1) if a.ndim == 1 else a for a in (label, pred))
        return self.reduce(label - pred), 1

    def reduce(self, difference: Array) -> float:
        """Return the figure of one batch from its differences."""
        raise error(NotImplementedError, f"metric {type(self).__name__} does not define reduce(difference)")


@with_defaults(name="mae")
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

    def reduce(self, difference: Array) -> float:
        return float(np.abs(difference).mean())


@with_defaults(name="mse")
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

    def reduce(self, difference: Array) -> float:
        return float((difference**2).mean())


@with_defaults(name="rmse")
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

    def reduce(self, difference: Array) -> float:
        return float((difference**2).mean() ** 0.5)
