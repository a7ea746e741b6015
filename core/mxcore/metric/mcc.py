"""Matthews correlation coefficient."""

from .._signatures import with_defaults
from ._binary import BinaryMetric, Counts


@with_defaults(name="mcc")
class MCC(BinaryMetric):
    """The Matthews correlation coefficient of two classes, from -1 to 1.

    Parameters
    ----------
    name, output_names, label_names
        As for `EvalMetric`.
    average : {'macro', 'micro'}
        Mean of the scores of the batches, or the score of everything.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.MCC``; B. W. Matthews, Biochim. Biophys. Acta 405 (1975),
    442-451.

    Examples
    --------
    >>> import numpy as np
    >>> m = MCC()
    >>> m.update([np.array([0, 1, 1])], [np.array([[0.7, 0.3], [0.0, 1.0], [0.4, 0.6]])])
    >>> m.get()
    ('mcc', 1.0)
    """

    def score(self, counts: Counts) -> float:
        return counts.mcc
