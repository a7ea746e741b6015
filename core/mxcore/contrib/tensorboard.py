"""Metrics for TensorBoard, as ``mxnet.contrib.tensorboard``; writing needs neither it nor TensorFlow."""

from __future__ import annotations

import weakref
from typing import Any

from .events import EventWriter

__all__ = ["LogMetricsCallback"]


class LogMetricsCallback:
    """Write the metric to an event file, after a batch or an evaluation; the step is the number of the epoch.

    Parameters
    ----------
    logging_dir : str
        Folder or URL; give training and evaluation folders of their own to compare them.
    prefix : str, optional
        Comes before the names, with a hyphen.

    Raises
    ------
    MXNetError
        (also OSError) if the folder or the file cannot be made.

    Notes
    -----
    Look at it with ``tensorboard --logdir <folder>``. As in MXNet 1.9.1 all batches of an epoch have one step; they
    differ in time. A training that goes on with ``begin_epoch`` goes on in the picture.

    Examples
    --------
    >>> import mxcore as mx
    >>> log = mx.contrib.tensorboard.LogMetricsCallback("memory://doc/logs/train")
    >>> acc = mx.metric.Accuracy()
    >>> acc.update([mx.nd.array([1.0])], [mx.nd.array([[0.2, 0.8]])])
    >>> log(mx.model.BatchEndParam(epoch=0, nbatch=0, eval_metric=acc, locals=None))
    """

    def __init__(self, logging_dir: str, prefix: str | None = None) -> None:
        self.prefix = prefix
        self.summary_writer = EventWriter(logging_dir)
        weakref.finalize(self, self.summary_writer.close)

    def __call__(self, param: Any) -> None:
        if param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            self.summary_writer.add_scalar(name if self.prefix is None else f"{self.prefix}-{name}", value, param.epoch)
