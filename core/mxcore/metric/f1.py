"""F1 score."""

from .._signatures import with_defaults
from ._binary import BinaryMetric, Counts


@with_defaults(name="f1")
class F1(BinaryMetric):
    """The F1 score of two classes: ``2 * precision * recall / (precision + recall)``, of class 1.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.
    average : {'macro', 'micro'}
        Mean of the scores of the batches, or the score of everything.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.F1``.

    Examples
    --------
    >>> import numpy as np
    >>> m = F1()
    >>> m.update([np.array([0, 1, 1])], [np.array([[0.3, 0.7], [0.0, 1.0], [0.4, 0.6]])])
    >>> m.get()
    ('f1', 0.8)
    """

    def score(self, counts: Counts) -> float:
        return counts.f1
