"""Means of what a network outputs as its loss."""

from .._signatures import with_defaults
from .base import EvalMetric, host


class Loss(EvalMetric):
    """The mean of all predictions: for networks whose outputs are losses.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.Loss``.

    Examples
    --------
    >>> import numpy as np
    >>> m = Loss()
    >>> m.update(None, [np.array([1.0, 3.0])])
    >>> m.get()
    ('loss', 2.0)
    """

    def __init__(self, name="loss", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, _, preds):
        for pred in preds if isinstance(preds, (list, tuple)) else [preds]:
            pred = host(pred)
            self._tally(float(pred.sum()), pred.size)


class Torch(Loss):
    """`Loss` under another name, kept for old scripts.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.

    Examples
    --------
    >>> Torch().name
    'torch'
    """

    __init__ = with_defaults(Loss.__init__, name="torch")


class Caffe(Loss):
    """`Loss` under another name, kept for old scripts.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.

    Examples
    --------
    >>> Caffe().name
    'caffe'
    """

    __init__ = with_defaults(Loss.__init__, name="caffe")
