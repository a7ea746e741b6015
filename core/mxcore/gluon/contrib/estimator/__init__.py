"""Training loops ready to use: `Estimator`, and handlers for what happens in them.

>>> import mxcore as mx
>>> from mxcore.gluon.contrib.estimator import Estimator
>>> data = mx.gluon.data.ArrayDataset(mx.nd.ones((4, 2)), mx.nd.zeros((4,)))
>>> net = mx.gluon.nn.Dense(3)
>>> net.initialize()
>>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
>>> learner = Estimator(net, mx.gluon.loss.SoftmaxCrossEntropyLoss(), trainer=trainer)
>>> learner.logger.setLevel("WARNING")
>>> learner.fit(mx.gluon.data.DataLoader(data, batch_size=2), epochs=1)
>>> [metric.name for metric in learner.train_metrics]
['training accuracy', 'training softmaxcrossentropyloss']
"""

from __future__ import annotations

from . import batch_processor, estimator, event_handler, utils
from .batch_processor import BatchProcessor
from .estimator import Estimator
from .event_handler import (
    BatchBegin,
    BatchEnd,
    CheckpointHandler,
    EarlyStoppingHandler,
    EpochBegin,
    EpochEnd,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    ProgressBarHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
)

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "BatchProcessor",
    "CheckpointHandler",
    "EarlyStoppingHandler",
    "EpochBegin",
    "EpochEnd",
    "Estimator",
    "GradientUpdateHandler",
    "LoggingHandler",
    "MetricHandler",
    "ProgressBarHandler",
    "StoppingHandler",
    "TrainBegin",
    "TrainEnd",
    "ValidationHandler",
    "batch_processor",
    "estimator",
    "event_handler",
    "utils",
]
