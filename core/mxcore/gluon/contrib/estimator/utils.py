"""What estimator and handlers ask about metrics."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .... import metric as metrics_
from ....base import MXNetError, error
from ....metric import Accuracy, CompositeEvalMetric, EvalMetric
from ...loss import Loss, SoftmaxCrossEntropyLoss

if TYPE_CHECKING:
    from .event_handler import EventHandler

__all__ = ["direction"]

#: Metrics of which a smaller value is the better one.
_FALLING = (metrics_.Loss, metrics_.MAE, metrics_.MSE, metrics_.RMSE, metrics_.CrossEntropy, metrics_.Perplexity)


def _check_metrics(metrics: EvalMetric | Sequence[EvalMetric] | None) -> list[EvalMetric]:
    """A flat list of one metric, several, or none."""
    if metrics is None:
        return []
    if isinstance(metrics, CompositeEvalMetric):
        metrics = metrics.metrics
    elif isinstance(metrics, EvalMetric):
        return [metrics]
    if not isinstance(metrics, (list, tuple)):
        raise _no_metric(metrics)
    found: list[EvalMetric] = []
    for metric in metrics:
        if not isinstance(metric, EvalMetric):
            raise _no_metric(metric)
        found += _check_metrics(metric)
    return found


def _no_metric(given: object) -> MXNetError:
    return error(
        ValueError,
        "metrics must be an mx.metric.EvalMetric or a list of them, "
        f"got {given!r}; mx.metric.create makes one of a name",
    )


def _check_handler_metric_ref(handler: EventHandler, known_metrics: set[EvalMetric]) -> None:
    """Raise if a handler has a metric, in an attribute that says so, that nobody would update."""
    for name in dir(handler):
        if "metric" not in name:
            continue
        found = getattr(handler, name)
        for metric in found if isinstance(found, list) else [found]:
            if isinstance(metric, EvalMetric):
                _check_metric_known(handler, metric, known_metrics)


def _check_metric_known(handler: EventHandler, metric: EvalMetric, known_metrics: set[EvalMetric]) -> None:
    if metric not in known_metrics:
        raise error(
            ValueError,
            f"the event handler {type(handler).__name__} has the metric {metric.name!r}, which the estimator does not "
            f"update; take one of estimator.train_metrics and estimator.val_metrics: "
            f"{', '.join(sorted(repr(m.name) for m in known_metrics))}",
        )


def _suggest_metric_for_loss(loss: Loss) -> EvalMetric | None:
    return Accuracy() if isinstance(loss, SoftmaxCrossEntropyLoss) else None


def direction(monitor: EvalMetric, mode: str, owner: str) -> Callable[..., Any]:
    """The comparison that says whether a value is better: ``numpy.greater`` or ``numpy.less``.

    Parameters
    ----------
    monitor : EvalMetric
    mode : {'auto', 'min', 'max'}
        'auto' decides by the metric, with a warning that says how.
    owner : str
        The handler, for messages.
    """
    if mode not in ("auto", "min", "max"):
        warnings.warn(f"{owner}: mode {mode!r} is unknown, 'auto' is taken", RuntimeWarning, stacklevel=3)
        mode = "auto"
    if mode == "auto":
        name = monitor.get()[0]
        falling = isinstance(monitor, _FALLING) or any(word in str(name).lower() for word in ("loss", "error"))
        mode = "min" if falling else "max"
        warnings.warn(
            f"{owner}: {'smaller' if falling else 'greater'} values of {name} are taken as better; say mode='min' or "
            "mode='max' to decide that",
            stacklevel=3,
        )
    return np.less if mode == "min" else np.greater
