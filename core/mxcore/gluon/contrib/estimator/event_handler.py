"""What happens at the events of a training: base classes of handlers, and the handlers that most trainings need.

A handler derives from the events that it wants to hear of, and gets the estimator; `batch_begin` also gets ``batch``,
`batch_end` also ``batch``, ``pred``, ``label`` and ``loss``, by name. Handlers are called in the order of their
attribute `priority`, small numbers first; without one it is 0.
"""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...._io_files import checked, local_path, make_folder, names_in, regular
from ....base import error
from ....drafts import read_pair, settle, together
from ....metric import CompositeEvalMetric, EvalMetric
from ....metric import Loss as metric_loss
from .utils import _check_metrics, direction

if TYPE_CHECKING:
    from ...data.dataloader import DataLoader
    from .estimator import Estimator

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "CheckpointHandler",
    "EarlyStoppingHandler",
    "EpochBegin",
    "EpochEnd",
    "GradientUpdateHandler",
    "LoggingHandler",
    "MetricHandler",
    "ProgressBarHandler",
    "StoppingHandler",
    "TrainBegin",
    "TrainEnd",
    "ValidationHandler",
]


class EventHandler:
    """Base of all event handlers."""


def _check_event_handlers(handlers: EventHandler | Sequence[EventHandler] | None) -> list[EventHandler]:
    """A new list of one handler, several, or none."""
    if isinstance(handlers, EventHandler):
        return [handlers]
    if handlers is None:
        return []
    if not isinstance(handlers, (list, tuple)) or not all(isinstance(h, EventHandler) for h in handlers):
        raise error(
            ValueError,
            f"event_handlers must be an EventHandler or a list of them, got {handlers!r}; "
            "a handler derives from events, such as gluon.contrib.estimator.EpochEnd",
        )
    return list(handlers)


class TrainBegin(EventHandler):
    """Handlers that hear of the begin of a training."""

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Called before the first epoch."""


class TrainEnd(EventHandler):
    """Handlers that hear of the end of a training."""

    def train_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Called after the last epoch."""


class EpochBegin(EventHandler):
    """Handlers that hear of the begin of each epoch."""

    def epoch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Called before the first batch of an epoch."""


class EpochEnd(EventHandler):
    """Handlers that hear of the end of each epoch.

    Examples
    --------
    >>> from mxcore.gluon.contrib.estimator import EpochEnd
    >>> class Halve(EpochEnd):
    ...     def epoch_end(self, estimator, *args, **kwargs):
    ...         estimator.trainer.set_learning_rate(estimator.trainer.learning_rate / 2)
    """

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool | None:
        """Called after the last batch of an epoch; returns whether to stop training."""
        return False


class BatchBegin(EventHandler):
    """Handlers that hear of the begin of each batch."""

    def batch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Called before a batch, which is ``kwargs["batch"]``, reaches the net."""


class BatchEnd(EventHandler):
    """Handlers that hear of the end of each batch."""

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool | None:
        """Called after backward, with ``batch``, ``pred``, ``label`` and ``loss``; returns whether the epoch ends."""
        return False


class StoppingHandler(TrainBegin, BatchEnd, EpochEnd):
    """Stops training after a number of epochs or batches: those that `Estimator.fit` was asked for.

    Parameters
    ----------
    max_epoch, max_batch : int, optional
        Replaced by the estimator's when a training begins.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1. A handler that has stopped one training can serve in the next.
    """

    def __init__(self, max_epoch: int | None = None, max_batch: int | None = None) -> None:
        self.max_epoch = max_epoch
        self.max_batch = max_batch
        self.current_batch = self.current_epoch = 0
        self.stop_training = False

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.max_epoch, self.max_batch = estimator.max_epoch, estimator.max_batch
        self.current_batch = self.current_epoch = 0
        self.stop_training = False

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool:
        self.current_batch += 1
        self.stop_training = self.stop_training or self.current_batch == self.max_batch
        return self.stop_training

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool:
        self.current_epoch += 1
        self.stop_training = self.stop_training or self.current_epoch == self.max_epoch
        return self.stop_training


class MetricHandler(EpochBegin, BatchEnd):
    """Resets metrics before each epoch and updates them after each batch.

    Parameters
    ----------
    metrics : EvalMetric or list of EvalMetric
        Those of the class `mx.metric.Loss` get the losses, others labels and predictions.
    priority : float, default -1000
        Before handlers that read the metrics.
    """

    def __init__(self, metrics: EvalMetric | Sequence[EvalMetric], priority: float = -1000) -> None:
        self.metrics = _check_metrics(metrics)
        self.priority = priority

    def epoch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        for metric in self.metrics:
            metric.reset()

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        for metric in self.metrics:
            if isinstance(metric, metric_loss):
                metric.update(0, kwargs["loss"])
            else:
                metric.update(kwargs["label"], kwargs["pred"])


class ValidationHandler(TrainBegin, BatchEnd, EpochEnd):
    """Evaluates now and then while training goes on.

    Parameters
    ----------
    val_data : DataLoader
    eval_fn : callable
        Called with the keywords ``val_data``, ``batch_axis`` and ``event_handlers``: usually `Estimator.evaluate`.
    epoch_period : int or None, default 1
        After every so many epochs.
    batch_period : int, optional
        After every so many batches.
    priority : float, default -1000
        Before handlers that read the metrics of validation.
    event_handlers : EventHandler or list of EventHandler, optional
        For the evaluation.
    """

    def __init__(
        self,
        val_data: DataLoader,
        eval_fn: Callable[..., Any],
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        priority: float = -1000,
        event_handlers: EventHandler | Sequence[EventHandler] | None = None,
    ) -> None:
        self.val_data = val_data
        self.eval_fn = eval_fn
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.current_batch = self.current_epoch = 0
        self.priority = priority
        self.event_handlers = event_handlers

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.current_batch = self.current_epoch = 0

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.current_batch += 1
        self._evaluate(estimator, self.current_batch, self.batch_period)

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.current_epoch += 1
        self._evaluate(estimator, self.current_epoch, self.epoch_period)

    def _evaluate(self, estimator: Estimator, count: int, period: int | None) -> None:
        if period and count % period == 0:
            self.eval_fn(val_data=self.val_data, batch_axis=estimator.batch_axis, event_handlers=self.event_handlers)


class LoggingHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Tells through the estimator's `logger` how training goes.

    Parameters
    ----------
    log_interval : int or 'epoch', default 'epoch'
        Lines after every so many batches, too, beside those of epochs.
    metrics : EvalMetric or list of EvalMetric, optional
        What the lines show.
    priority : float, default inf
        After whatever changes the metrics.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1, whose lines these are.
    """

    def __init__(
        self,
        log_interval: int | str = "epoch",
        metrics: EvalMetric | Sequence[EvalMetric] | None = None,
        priority: float = np.inf,
    ) -> None:
        if log_interval != "epoch" and not (isinstance(log_interval, int) and log_interval > 0):
            raise error(
                ValueError,
                f"LoggingHandler: log_interval must be 'epoch' or a number of batches above 0, got {log_interval!r}",
            )
        self.metrics = _check_metrics(metrics)
        self.priority = priority
        self.log_interval = log_interval
        self._start()

    def _start(self) -> None:
        self.batch_index = self.current_epoch = self.processed_samples = 0
        self.log_interval_time = 0.0

    def _line(self, head: str) -> str:
        return (head + ", ".join("{}: {:.4f}".format(*metric.get()) for metric in self.metrics)).rstrip(", ")

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.train_start = time.time()
        trainer = estimator.trainer
        estimator.logger.info(
            "Training begin: using optimizer %s with current learning rate %.4f ",
            type(trainer.optimizer).__name__,
            trainer.learning_rate,
        )
        if estimator.max_epoch:
            estimator.logger.info("Train for %s epochs.", estimator.max_epoch)
        else:
            estimator.logger.info("Train for %s batches.", estimator.max_batch)
        self._start()

    def train_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        seconds = time.time() - self.train_start
        head = f"Train finished using total {seconds:.0f}s with {self.current_epoch} epochs. "
        estimator.logger.info("%s", self._line(head))

    def epoch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.epoch_start = time.time()
        # Handlers of a training and of a validation are told apart by the names that the estimator gave the metrics.
        if any("training" in metric.name for metric in self.metrics):
            estimator.logger.info(
                "[Epoch %d] Begin, current learning rate: %.4f", self.current_epoch, estimator.trainer.learning_rate
            )
        else:
            estimator.logger.info("Validation Begin")

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        seconds = time.time() - self.epoch_start
        estimator.logger.info("%s", self._line(f"[Epoch {self.current_epoch}] Finished in {seconds:.3f}s, "))
        self.current_epoch += 1
        self.batch_index = 0

    def batch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.batch_start = time.time()

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        if self.log_interval != "epoch":
            self.processed_samples += kwargs["batch"][0].shape[0]
            self.log_interval_time += time.time() - self.batch_start
            if self.batch_index % int(self.log_interval) == 0:
                head = (
                    f"[Epoch {self.current_epoch}][Batch {self.batch_index}][Samples {self.processed_samples}] "
                    f"time/interval: {self.log_interval_time:.3f}s "
                )
                estimator.logger.info("%s", self._line(head))
                self.log_interval_time = 0.0
        self.batch_index += 1


class ProgressBarHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchEnd):
    """Draws how far each epoch has come, by tqdm, with the metrics beside it.

    Parameters
    ----------
    metrics : EvalMetric or list of EvalMetric, optional
        What stands beside the bar, such as ``estimator.train_metrics``.
    total : int, optional
        Batches in an epoch; unless told, the first epoch shows their number only, and the others know it from there.
    priority : float, default inf
        After whatever changes the metrics.
    **kwargs
        For ``tqdm.tqdm``, such as ``file`` or ``leave``.

    Notes
    -----
    MXNet 1.9.1 has none; its `LoggingHandler` writes lines.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.gluon.contrib.estimator import ProgressBarHandler
    >>> bar = ProgressBarHandler(metrics=mx.metric.Accuracy(), leave=False)
    """

    def __init__(
        self,
        metrics: EvalMetric | Sequence[EvalMetric] | None = None,
        total: int | None = None,
        priority: float = np.inf,
        **kwargs: Any,
    ) -> None:
        if total is not None and not (isinstance(total, int) and total > 0):
            raise error(
                ValueError, f"ProgressBarHandler: total must be the number of batches in an epoch, got {total!r}"
            )
        self.metrics = _check_metrics(metrics)
        self.total, self.priority, self._kwargs = total, priority, kwargs
        self.current_epoch = 0
        self._bar: Any = None

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self._close()  # of a training that failed
        self.current_epoch = 0

    def epoch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        from tqdm import tqdm

        self._bar = tqdm(total=self.total, desc=f"epoch {self.current_epoch}", unit="batch", **self._kwargs)

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self._bar.set_postfix({name: f"{value:.4f}" for name, value in (m.get() for m in self.metrics)}, refresh=False)
        self._bar.update()

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.total = self.total or self._bar.n or None
        self.current_epoch += 1
        self._close()

    def train_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class CheckpointHandler(TrainBegin, BatchEnd, EpochEnd):
    """Saves parameters and the trainer's states now and then, and goes on from them.

    The files are ``<prefix>-epoch<E>batch<B>.params`` and ``.states``, with the number of the last epoch and batch;
    ``<prefix>-best.params`` and ``.states``; and, for a hybridised net, ``<prefix>-symbol.json``.

    Parameters
    ----------
    model_dir : str
        Folder of the files; made if it is not there.
    model_prefix : str, default 'model'
    monitor : EvalMetric, optional
        Decides which checkpoint is the best.
    verbose : int, default 0
        1 tells of each checkpoint through the estimator's `logger`.
    save_best : bool, default False
        Keep the best checkpoint, too; needs `monitor`.
    mode : {'auto', 'min', 'max'}, default 'auto'
        Which values of `monitor` are better. 'auto': smaller ones of losses and errors, greater ones of all else.
    epoch_period : int or None, default 1
        After every so many epochs.
    batch_period : int, optional
        After every so many batches.
    max_checkpoints : int, default 5
        How many to keep beside the best; the oldest are removed.
    resume_from_checkpoint : bool, default False
        Load the newest checkpoint when training begins, and train for what is left of the epochs or batches.

    Raises
    ------
    MXNetError
        (also ValueError) if `save_best` has no metric. When training begins with `resume_from_checkpoint`: (also
        AssertionError) if it counts batches and the checkpoints epochs, or the other way round, or a file is missing;
        (also ValueError) if nothing is left to train.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1, whose files these are; parameters and states appear together, whole or not at all.

    Examples
    --------
    >>> import os, tempfile
    >>> import mxcore as mx
    >>> from mxcore.gluon.contrib import estimator
    >>> data = mx.gluon.data.ArrayDataset(mx.nd.ones((4, 1)), mx.nd.ones((4, 1)))
    >>> net = mx.gluon.nn.Dense(1)
    >>> net.initialize()
    >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    >>> learner = estimator.Estimator(net, mx.gluon.loss.L2Loss(), trainer=trainer)
    >>> learner.logger.setLevel("WARNING")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     keep = estimator.CheckpointHandler(folder, "net", max_checkpoints=1)
    ...     learner.fit(mx.gluon.data.DataLoader(data, batch_size=2), epochs=3, event_handlers=keep)
    ...     sorted(os.listdir(folder))
    ['net-epoch2batch6.params', 'net-epoch2batch6.states']
    """

    def __init__(
        self,
        model_dir: str,
        model_prefix: str = "model",
        monitor: EvalMetric | None = None,
        verbose: int = 0,
        save_best: bool = False,
        mode: str = "auto",
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        max_checkpoints: int = 5,
        resume_from_checkpoint: bool = False,
    ) -> None:
        if save_best and not isinstance(monitor, EvalMetric):
            raise error(
                ValueError,
                "CheckpointHandler: save_best needs a metric as monitor, one of estimator.train_metrics and "
                f"estimator.val_metrics; got {monitor!r}",
            )
        self.model_dir = local_path(checked(model_dir, "CheckpointHandler: model_dir"))
        self.model_prefix = checked(model_prefix, "CheckpointHandler: model_prefix", empty=True)
        self.monitor = monitor
        self.verbose = verbose
        self.save_best = save_best
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.current_batch = self.current_epoch = 0
        self.max_checkpoints = max_checkpoints
        self.resume_from_checkpoint = resume_from_checkpoint
        self.saved_checkpoints: list[str] = []
        if monitor is not None and save_best:
            self.monitor_op = direction(monitor, mode, "CheckpointHandler")
            self.best = _worst(self.monitor_op)
        make_folder(self.model_dir)

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.current_epoch = self.current_batch = 0
        if self.save_best:
            self.best = _worst(self.monitor_op)
        if self.resume_from_checkpoint:
            wanted, other = "epoch_period", "batch_period"
            if estimator.max_batch:
                wanted, other = other, wanted
            if not getattr(self, wanted) or getattr(self, other):
                raise error(
                    AssertionError,
                    f"CheckpointHandler: to resume a training of so many {wanted.partition('_')[0]}s, save after those "
                    f"only: give {wanted}, and {other}=None",
                )
            self._resume_from_checkpoint(estimator)

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        if self.current_batch == 0:
            self._save_symbol(estimator)
        if self.batch_period and (self.current_batch + 1) % self.batch_period == 0:
            self._save_checkpoint(estimator)
        self.current_batch += 1

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        if self.epoch_period and (self.current_epoch + 1) % self.epoch_period == 0:
            self._save_checkpoint(estimator)
        self.current_epoch += 1

    def _path(self, name: str) -> str:
        return os.path.join(self.model_dir, name)

    def _save_symbol(self, estimator: Estimator) -> None:
        path = self._path(f"{self.model_prefix}-symbol.json")
        graph = getattr(estimator.net, "_cached_graph", ())
        if graph:
            graph[1].save(path)
        else:
            estimator.logger.info(
                "CheckpointHandler: the net is not hybridized, so its graph is not saved as %s; "
                "make it of HybridBlocks and call net.hybridize() to have it",
                path,
            )

    def _save_checkpoint(self, estimator: Estimator) -> None:
        epoch, batch = self.current_epoch, self.current_batch
        if self.resume_from_checkpoint:
            # At the end of an epoch the batch is counted already.
            epoch += self.trained_epoch + 1
            batch += self.trained_batch + (0 if estimator.max_epoch else 1)
        name = f"{self.model_prefix}-epoch{epoch}batch{batch}"
        self._save_params_and_trainer(estimator, name)
        self._keep_newest(name)
        if self.verbose > 0:
            estimator.logger.info(
                "[Epoch %d] CheckpointHandler: trained total %d batches, saving model at %s with prefix: %s",
                self.current_epoch,
                self.current_batch + 1,
                self.model_dir,
                name,
            )
        if self.save_best:
            self._save_if_best(estimator)

    def _save_if_best(self, estimator: Estimator) -> None:
        assert self.monitor is not None
        name, value = self.monitor.get()
        if np.isnan(value):
            _warn_unused(name, "CheckpointHandler: the best checkpoint is not updated")
            return
        better = self.monitor_op(value, self.best)
        old, prefix = self.best, f"{self.model_prefix}-best"
        if better:
            self._save_params_and_trainer(estimator, prefix)
            self.best = value
        if self.verbose > 0:
            tail = (
                f"improved from {old:.5f} to {value:.5f}, updating best model at {self.model_dir} with prefix: {prefix}"
                if better
                else f"did not improve from {old:.5f}, skipping updating best model"
            )
            estimator.logger.info("[Epoch %d] CheckpointHandler: %s %s", self.current_epoch, name, tail)

    def _save_params_and_trainer(self, estimator: Estimator, file_prefix: str) -> None:
        params, states = (self._path(file_prefix + ending) for ending in (".params", ".states"))
        with together(params, states):
            estimator.net.save_parameters(params)
            estimator.trainer.save_states(states)

    def _keep_newest(self, name: str) -> None:
        if name in self.saved_checkpoints:
            self.saved_checkpoints.remove(name)
        self.saved_checkpoints.append(name)
        while len(self.saved_checkpoints) > max(self.max_checkpoints, 0):
            oldest = self.saved_checkpoints.pop(0)
            for ending in (".states", ".params"):  # by which a resumed run finds what a killed one did not come to
                try:
                    os.remove(self._path(oldest + ending))
                except FileNotFoundError:
                    pass

    def _found(self) -> list[tuple[int, int]]:
        """(epoch, batch) of each checkpoint in the folder, the newest last."""
        pattern = re.compile(re.escape(f"{self.model_prefix}-epoch") + r"(\d+)batch(-?\d+)\.params", re.ASCII)
        matches = map(pattern.fullmatch, names_in(self.model_dir))
        return sorted((int(m[1]), int(m[2])) for m in matches if m)

    def _resume_from_checkpoint(self, estimator: Estimator) -> None:
        found = self._found()
        self.trained_epoch, self.trained_batch = found[-1] if found else (-1, -1)
        names = [f"{self.model_prefix}-epoch{epoch}batch{batch}" for epoch, batch in found]
        unit = "epoch" if estimator.max_epoch else "batch"
        wanted = estimator.max_epoch or estimator.max_batch or 0
        units = f"{unit}s" if unit == "epoch" else "batches"
        if not found:
            estimator.logger.info(
                "CheckpointHandler: No checkpoint found, training from scratch for %d %s", wanted, units
            )
            return
        left = wanted - 1 - (self.trained_epoch if unit == "epoch" else self.trained_batch)
        if left <= 0:
            raise error(
                ValueError,
                f"CheckpointHandler: {names[-1]} in {self.model_dir} has all {wanted} {units} that were asked for; ask "
                "for more, or give resume_from_checkpoint=False to train from scratch",
            )
        paths = [self._path(names[-1] + ending) for ending in (".params", ".states")]
        settle(paths[1], paths[0])
        for path in paths:
            if not os.path.exists(path):
                raise error(
                    AssertionError,
                    f"CheckpointHandler: cannot resume, {path} does not exist; "
                    "remove the other file of that checkpoint to go on from the one before",
                )
            regular(path)
        setattr(estimator, f"max_{unit}", left)
        self.saved_checkpoints = names

        def load(states: str) -> None:
            estimator.net.load_parameters(paths[0], ctx=estimator.context)
            estimator.trainer.load_states(states)

        read_pair(paths[1], paths[0], load)  # another process may write one of the same name
        estimator.logger.warning(
            "CheckpointHandler: Checkpoint resumed from epoch %d batch %d, continue to train for %d %s",
            self.trained_epoch,
            self.trained_batch,
            left,
            units,
        )


class EarlyStoppingHandler(TrainBegin, EpochEnd, TrainEnd):
    """Stops training when a metric gets no better.

    Parameters
    ----------
    monitor : EvalMetric
    min_delta : float, default 0
        A smaller change is no improvement.
    patience : int, default 0
        After how many epochs without improvement to stop.
    mode : {'auto', 'min', 'max'}, default 'auto'
        Which values of `monitor` are better. 'auto': smaller ones of losses and errors, greater ones of all else.
    baseline : float, optional
        What the first value must be better than.

    Raises
    ------
    MXNetError
        (also ValueError) if `monitor` is no metric, or several.
    """

    def __init__(
        self,
        monitor: EvalMetric,
        min_delta: float = 0,
        patience: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
    ) -> None:
        if not isinstance(monitor, EvalMetric) or isinstance(monitor, CompositeEvalMetric):
            raise error(
                ValueError,
                "EarlyStoppingHandler: monitor must be a single metric, one of estimator.train_metrics and "
                f"estimator.val_metrics; got {type(monitor).__name__}",
            )
        self.monitor = monitor
        self.baseline = baseline
        self.patience = patience
        self.wait = self.stopped_epoch = self.current_epoch = 0
        self.stop_training = False
        self.monitor_op = direction(monitor, mode, "EarlyStoppingHandler")
        self.min_delta = min_delta if self.monitor_op is np.greater else -min_delta

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.wait = self.stopped_epoch = self.current_epoch = 0
        self.stop_training = False
        self.best = _worst(self.monitor_op) if self.baseline is None else self.baseline

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool:
        name, value = self.monitor.get()
        if np.isnan(value):
            _warn_unused(name, "EarlyStoppingHandler: nothing is decided")
        elif self.monitor_op(value - self.min_delta, self.best):
            self.best = value
            self.wait = 0
        else:
            self.wait += 1
            if self.wait >= self.patience:
                self.stopped_epoch = self.current_epoch
                self.stop_training = True
        self.current_epoch += 1
        return self.stop_training

    def train_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        if self.stopped_epoch > 0:
            estimator.logger.info(
                "[Epoch %d] EarlyStoppingHandler: early stopping due to %s not improving",
                self.stopped_epoch,
                self.monitor.get()[0],
            )


class GradientUpdateHandler(BatchEnd):
    """Updates the parameters after each batch, by `Trainer.step` with the number of losses as batch size.

    Parameters
    ----------
    priority : float, default -2000
        Before all else.
    """

    def __init__(self, priority: float = -2000) -> None:
        self.priority = priority

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        loss = kwargs["loss"]
        estimator.trainer.step(sum(part.shape[0] for part in (loss if isinstance(loss, list) else [loss])))


def _worst(better: Callable[..., Any]) -> float:
    return np.inf if better is np.less else -np.inf


def _warn_unused(name: str, consequence: str) -> None:
    warnings.warn(
        f"{consequence}: {name} has no value; take one of estimator.train_metrics and estimator.val_metrics as monitor",
        RuntimeWarning,
        stacklevel=3,
    )
