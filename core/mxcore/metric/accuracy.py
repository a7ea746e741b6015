"""The share of right answers."""

from .base import Array, PairMetric, check_label_shapes


class Accuracy(PairMetric):
    """The share of labels that were predicted: ``#(y == argmax p) / n``.

    Parameters
    ----------
    axis : int
        Axis of the classes. Predictions of the labels' own shape are taken as classes already.
    name, output_names, label_names
        As for `EvalMetric`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.Accuracy``. Labels count as integers, cut towards zero.

    Examples
    --------
    >>> import numpy as np
    >>> m = Accuracy()
    >>> m.update([np.array([0, 1, 1])], [np.array([[0.3, 0.7], [0.0, 1.0], [0.4, 0.6]])])
    >>> round(m.get()[1], 3)
    0.667
    """

    def __init__(
        self,
        axis: int = 1,
        name: str = "accuracy",
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, axis=axis)
        self.axis = axis

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        if pred.shape != label.shape:
            pred = pred.argmax(axis=self.axis)
        label, pred = label.astype("int32").ravel(), pred.astype("int32").ravel()
        check_label_shapes(label, pred)
        return int((pred == label).sum()), len(pred)
