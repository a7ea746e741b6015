"""Mean squared error."""

from ._regression import RegressionMetric


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
    >>> import numpy as np
    >>> m = MSE()
    >>> m.update([np.array([3.0, 0.0])], [np.array([2.0, 3.0])])
    >>> m.get()
    ('mse', 5.0)
    """

    def __init__(self, name="mse", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def reduce(self, difference):
        return (difference**2).mean()
