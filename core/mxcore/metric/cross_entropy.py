"""Cross entropy."""

import numpy as np

from .base import Array, PairMetric, same_length


class CrossEntropy(PairMetric):
    """The mean of ``-log(p(label) + eps)`` over all labels.

    Parameters
    ----------
    eps : float
        Added to the probabilities, against log(0).
    name, output_names, label_names
        As for `EvalMetric`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.CrossEntropy``. Predictions are (n, classes) probabilities.

    Examples
    --------
    >>> m = CrossEntropy()
    >>> m.update([np.array([0, 1])], [np.array([[0.5, 0.5], [0.5, 0.5]])])
    >>> round(m.get()[1], 4)
    0.6931
    """

    def __init__(
        self,
        eps: float = 1e-12,
        name: str = "cross-entropy",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, eps=eps)
        self.eps = eps

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        label = label.ravel()
        same_length(label, pred)
        chosen = pred[np.arange(len(label)), label.astype("int64")]
        return float((-np.log(chosen + self.eps)).sum()), len(label)
