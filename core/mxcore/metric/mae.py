"""Mean absolute error."""

import numpy as np

from ._regression import RegressionMetric


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

    def __init__(self, name="mae", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def reduce(self, difference):
        return np.abs(difference).mean()
