"""Metrics: figures of merit, accumulated over batches.

>>> import mxcore as mx
>>> metric = mx.metric.create("acc")
>>> metric.update([mx.nd.array([0, 1])], [mx.nd.array([[0.9, 0.1], [0.6, 0.4]])])
>>> metric.get()
('accuracy', 0.5)
"""

from __future__ import annotations

from typing import Any

import numpy as _np

from .. import registry as _registry
from .accuracy import Accuracy
from .base import EvalMetric, check_label_shapes
from .composite import CompositeEvalMetric
from .cross_entropy import CrossEntropy
from .custom import CustomMetric, np
from .f1 import F1
from .loss import Caffe, Loss, Torch
from .mcc import MCC
from .negative_log_likelihood import NegativeLogLikelihood
from .pcc import PCC
from .pearson import PearsonCorrelation
from .perplexity import Perplexity
from .regression import MAE, MSE, RMSE
from .top_k_accuracy import TopKAccuracy

register = _registry.get_register_func(EvalMetric, "metric")
alias = _registry.get_alias_func(EvalMetric, "metric")
_create_by_name = _registry.get_create_func(EvalMetric, "metric")

numeric_types = (float, int, _np.generic)
string_types = (str,)

__all__ = [
    "Accuracy",
    "Caffe",
    "CompositeEvalMetric",
    "CrossEntropy",
    "CustomMetric",
    "EvalMetric",
    "F1",
    "Loss",
    "MAE",
    "MCC",
    "MSE",
    "NegativeLogLikelihood",
    "PCC",
    "PearsonCorrelation",
    "Perplexity",
    "RMSE",
    "TopKAccuracy",
    "Torch",
    "alias",
    "check_label_shapes",
    "create",
    "np",
    "register",
]


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """Create a metric from a name, a function, a list or a configuration.

    Parameters
    ----------
    metric : str, callable, list, dict or EvalMetric
        A registered name or a JSON configuration; a function ``f(label, pred)`` of NumPy arrays; a list of
        such things, which makes a `CompositeEvalMetric`; or a metric, which is returned as it is.
    *args, **kwargs
        Arguments of the metric, or of each in the list.

    Returns
    -------
    EvalMetric

    Raises
    ------
    MXNetError
        (also KeyError) if no metric has that name.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.metric.create``.

    Examples
    --------
    >>> create("top_k_accuracy", top_k=3).name
    'top_k_accuracy_3'
    >>> create(["acc", "ce"]).get()[0]
    ['accuracy', 'cross-entropy']
    """
    if isinstance(metric, list):
        composite = CompositeEvalMetric()
        for child in metric:
            composite.add(create(child, *args, **kwargs))
        return composite
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    named: EvalMetric = _create_by_name(metric, *args, **kwargs)
    return named
