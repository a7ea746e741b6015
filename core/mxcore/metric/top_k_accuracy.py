"""The share of labels among the k best guesses."""

import numpy as np

from ..base import asserted, plain
from .base import Array, PairMetric, check_label_shapes


class TopKAccuracy(PairMetric):
    """The share of labels among the `top_k` classes of highest score.

    Parameters
    ----------
    top_k : int
        How many classes count, at least 2 (for 1, use `Accuracy`); all, if there are fewer.
    name : str
        Name, to which ``_k`` is appended.
    output_names, label_names
        As for `EvalMetric`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.TopKAccuracy``.

    Examples
    --------
    >>> m = TopKAccuracy(top_k=2)
    >>> m.update([np.array([2, 0])], [np.array([[0.1, 0.5, 0.4], [0.1, 0.5, 0.4]])])
    >>> m.get()
    ('top_k_accuracy_2', 0.5)
    """

    def __init__(
        self,
        top_k: int = 1,
        name: str = "top_k_accuracy",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        top_k = self.top_k = plain(top_k)
        super().__init__(name, output_names, label_names, top_k=top_k)
        if top_k <= 1:
            raise asserted(ValueError, f"top_k must be at least 2, not {top_k}; for 1 use Accuracy")
        self.name += f"_{top_k}"

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        if pred.ndim > 2:
            raise asserted(ValueError, f"predictions must have at most 2 dimensions, not shape {pred.shape}")
        label = label.astype("int32").ravel()
        check_label_shapes(label, pred)
        if pred.ndim == 1:
            return int((pred.astype("int32") == label).sum()), len(pred)
        k = min(self.top_k, pred.shape[1])
        best = np.argpartition(pred.astype("float32"), -k, axis=1)[:, -k:]
        return int((best == label[:, None]).sum()), len(pred)
