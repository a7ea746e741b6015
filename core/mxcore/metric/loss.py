"""Means of what a network outputs as its loss."""

from __future__ import annotations

from typing import Any

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

    def __init__(
        self, name: str = "loss", output_names: list[str] | None = None, label_names: list[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, _: Any, preds: Any) -> None:
        for pred in preds if isinstance(preds, (list, tuple)) else [preds]:
            pred = host(pred)
            self._tally(float(pred.sum()), pred.size)


@with_defaults(name="torch")
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


@with_defaults(name="caffe")
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
