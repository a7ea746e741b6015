"""Negative log-likelihood."""

from .._signatures import with_defaults
from .cross_entropy import CrossEntropy


@with_defaults(name="nll-loss")
class NegativeLogLikelihood(CrossEntropy):
    """The mean negative log-likelihood of the labels: `CrossEntropy` under its statistical name.

    Parameters
    ----------
    eps : float
        Added to the probabilities, against log(0).
    name, output_names, label_names
        As for `EvalMetric`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.NegativeLogLikelihood``.

    Examples
    --------
    >>> import numpy as np
    >>> m = NegativeLogLikelihood()
    >>> m.update([np.array([0])], [np.array([[0.5, 0.5]])])
    >>> round(m.get()[1], 4)
    0.6931
    """
