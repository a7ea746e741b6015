"""Root mean squared error."""

from ._regression import RegressionMetric


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
    >>> import numpy as np
    >>> m = RMSE()
    >>> m.update([np.array([3.0, 0.0])], [np.array([2.0, 1.0])])
    >>> m.get()
    ('rmse', 1.0)
    """

    def __init__(self, name="rmse", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def reduce(self, difference):
        return (difference**2).mean() ** 0.5
