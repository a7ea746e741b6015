"""Metrics from functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base import error
from .base import Array, EvalMetric, as_it_is, check_label_shapes


class CustomMetric(EvalMetric):
    """A metric from a function of NumPy arrays.

    Parameters
    ----------
    feval : callable
        ``feval(label, pred)``; returns the figure of the batch, or (sum, number of things summed).
    name : str, optional
        The function's name by default, ``custom(...)`` around it if that is no plain name.
    allow_extra_outputs : bool
        Ignore predictions beyond the number of labels instead of refusing them.
    output_names, label_names
        As for `EvalMetric`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.CustomMetric``.

    Examples
    --------
    >>> import numpy
    >>> m = CustomMetric(lambda label, pred: abs(label - pred).max(), name="worst")
    >>> m.update([numpy.array([1.0, 2.0])], [numpy.array([1.0, 5.0])])
    >>> float(m.get()[1])
    3.0
    """

    def __init__(
        self,
        feval: Callable[[Array, Array], Any],
        name: str | None = None,
        allow_extra_outputs: bool = False,
        output_names: list[str] | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        if name is None:
            name = getattr(feval, "__name__", type(feval).__name__)
            if "<" in name:
                name = f"custom({name})"
        super().__init__(name, output_names, label_names, has_global_stats=True)
        self._feval = feval
        self._allow_extra_outputs = allow_extra_outputs

    def update(self, labels: Any, preds: Any) -> None:
        if not self._allow_extra_outputs:
            labels, preds = check_label_shapes(labels, preds, True)
        for pred, label in zip(preds, labels):
            found = self._feval(as_it_is(label), as_it_is(pred))
            self._tally(*(found if isinstance(found, tuple) else (found, 1)))

    def get_config(self) -> dict[str, Any]:
        raise error(NotImplementedError, f"metric {self.name!r} is a function; it has no configuration")


def np(
    numpy_feval: Callable[[Array, Array], Any], name: str | None = None, allow_extra_outputs: bool = False
) -> CustomMetric:
    """Make a metric from a function of NumPy arrays.

    Parameters
    ----------
    numpy_feval : callable
        ``numpy_feval(label, pred)``; returns the figure of the batch, or (sum, number of things summed).
    name : str, optional
        The function's name by default.
    allow_extra_outputs : bool
        Ignore predictions beyond the number of labels.

    Returns
    -------
    CustomMetric

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.np``.

    Examples
    --------
    >>> np(lambda label, pred: (label == pred).mean(), name="hits").name
    'hits'
    """
    return CustomMetric(numpy_feval, name, allow_extra_outputs)
