"""`Estimator`: a training loop whose events handlers get to hear of."""

from __future__ import annotations

import copy
import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base import MXNetError, error
from ....context import Context, cpu, gpu, num_gpus
from ....metric import Loss as metric_loss
from ...block import Block
from ...data import DataLoader
from ...loss import Loss as gluon_loss
from ...trainer import Trainer
from .batch_processor import BatchProcessor
from .event_handler import (
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
    _check_event_handlers,
)
from .utils import _check_handler_metric_ref, _check_metrics, _suggest_metric_for_loss

if TYPE_CHECKING:
    from ....initializer import Initializer
    from ....metric import EvalMetric
    from ...loss import Loss
    from .event_handler import EventHandler

__all__ = ["Estimator"]

#: The events, in the order of their first occurrence, and whose methods they call.
_EVENTS = {
    "train_begin": TrainBegin,
    "epoch_begin": EpochBegin,
    "batch_begin": BatchBegin,
    "batch_end": BatchEnd,
    "epoch_end": EpochEnd,
    "train_end": TrainEnd,
}


class Estimator:
    """Trains and evaluates a network; everything beside forward and backward is done by event handlers.

    Parameters
    ----------
    net : Block
        What is trained; parameters that are not initialised yet are.
    loss : Loss
    train_metrics : EvalMetric or list of EvalMetric, optional
        By default the loss, and for `SoftmaxCrossEntropyLoss` the accuracy. 'training ' goes before their names.
    val_metrics : EvalMetric or list of EvalMetric, optional
        By default copies of `train_metrics`. 'validation ' goes before their names.
    initializer : Initializer or str, optional
        For parameters that are not initialised.
    trainer : Trainer, optional
        By default SGD with a learning rate of 0.001, with a warning.
    context : Context or list of Context, optional
        By default the first GPU, if there is none the CPU. Batches are split over several.
    val_net : Block, optional
        What is evaluated, usually a net that shares the parameters of `net`; by default `net`.
    val_loss : Loss, optional
        By default `loss`.
    batch_processor : BatchProcessor, optional
        What is done with one batch.

    Attributes
    ----------
    logger : logging.Logger
        Prints to the standard output what handlers tell.
    max_epoch, max_batch : int or None
        How long the present `fit` is to train.
    net, loss, val_net, val_loss, trainer, context, batch_processor
        The parameters, or what stands for them.

    Raises
    ------
    MXNetError
        (also ValueError) for arguments of other types; (also AssertionError) for contexts without a device.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.contrib.estimator.Estimator``.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.gluon.contrib import estimator
    >>> class Losses(estimator.EpochEnd):
    ...     def epoch_end(self, estimator, *args, **kwargs):
    ...         name, value = estimator.train_metrics[0].get()
    ...         print(f"{name}: {value:.2f}")
    >>> data = mx.gluon.data.ArrayDataset(mx.nd.ones((4, 1)), mx.nd.ones((4, 1)))
    >>> net = mx.gluon.nn.Dense(1)
    >>> net.initialize(mx.init.Zero())
    >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.25})
    >>> learner = estimator.Estimator(net, mx.gluon.loss.L2Loss(), trainer=trainer)
    >>> learner.logger.setLevel("WARNING")
    >>> learner.fit(mx.gluon.data.DataLoader(data, batch_size=4), epochs=2, event_handlers=Losses())
    training l2loss: 0.50
    training l2loss: 0.12
    """

    logger: logging.Logger = None  # type: ignore[assignment]  # of an instance it is one

    def __init__(
        self,
        net: Block,
        loss: Loss,
        train_metrics: EvalMetric | Sequence[EvalMetric] | None = None,
        val_metrics: EvalMetric | Sequence[EvalMetric] | None = None,
        initializer: Initializer | str | None = None,
        trainer: Trainer | None = None,
        context: Context | Sequence[Context] | None = None,
        val_net: Block | None = None,
        val_loss: Loss | None = None,
        batch_processor: BatchProcessor | None = None,
    ) -> None:
        self.net = self._check_net(net, "net")
        self.loss = self._check_loss(loss)
        self._train_metrics = _check_metrics(train_metrics)
        self._val_metrics = _check_metrics(val_metrics)
        self._add_default_training_metrics()
        self._add_validation_metrics()
        self.val_loss = self.loss if val_loss is None else self._check_loss(val_loss)
        self.val_net = self.net if val_net is None else self._check_net(val_net, "val_net")
        # One for each estimator, unknown to logging's tree, so that its level and handlers are the user's to change.
        self.logger = logging.Logger("Estimator", logging.INFO)
        self.logger.addHandler(logging.StreamHandler(sys.stdout))
        self.max_epoch = self.max_batch = None
        self.batch_axis = 0
        self.context = self._check_context(context)
        self._initialize(initializer)
        self.trainer = self._check_trainer(trainer)
        self.batch_processor = self._check_batch_processor(batch_processor)

    # -- arguments -----------------------------------------------------------------------------------------------

    @staticmethod
    def _check_net(net: Any, name: str) -> Block:
        if not isinstance(net, Block):
            raise error(ValueError, f"Estimator: {name} must be a gluon.Block, got {net!r}")
        return net

    def _check_loss(self, loss: Any) -> Loss:
        if not isinstance(loss, gluon_loss):
            raise error(
                ValueError, f"Estimator: a loss must be a gluon.loss.Loss, such as gluon.loss.L2Loss(), got {loss!r}"
            )
        return loss

    def _check_context(self, context: Any) -> list[Context]:
        if not context:
            gpus = num_gpus()
            if gpus > 1:
                warnings.warn(
                    f"Estimator: gpu(0) of {gpus} GPUs is used; context=[mx.gpu(0), mx.gpu(1)] uses two", stacklevel=3
                )
            return [gpu(0) if gpus else cpu()]
        found = [context] if isinstance(context, Context) else context
        if not isinstance(found, (list, tuple)) or not all(isinstance(ctx, Context) for ctx in found):
            raise error(
                ValueError,
                "Estimator: context must be a Context or a list of them, "
                f"such as mx.cpu() or [mx.gpu(0), mx.gpu(1)], got {context!r}",
            )
        for ctx in found:
            try:
                ctx.device  # noqa: B018 (finds the device, or says why there is none)
            except MXNetError as e:
                raise error(AssertionError, f"Estimator: the context {ctx} is not available: {e}") from None
        return list(found)

    def _check_batch_processor(self, batch_processor: Any) -> BatchProcessor:
        if batch_processor is None:
            return BatchProcessor()
        for method in ("fit_batch", "evaluate_batch"):
            if not callable(getattr(batch_processor, method, None)):
                raise error(
                    ValueError,
                    f"Estimator: batch_processor must have the methods fit_batch and evaluate_batch, "
                    f"{type(batch_processor).__name__} has no {method}",
                )
        found: BatchProcessor = batch_processor
        return found

    def _initialize(self, initializer: Any) -> None:
        if not self._is_initialized():
            given = {} if initializer is None else {"init": initializer}
            self.net.initialize(ctx=self.context, **given)
        elif initializer:
            warnings.warn(
                "Estimator: the net is initialized already, so initializer is not used; "
                "net.initialize(init=…, force_reinit=True) starts anew",
                stacklevel=3,
            )

    def _is_initialized(self) -> bool:
        try:
            for param in self.net.collect_params().values():
                param.list_ctx()
        except RuntimeError:
            return False
        return True

    def _check_trainer(self, trainer: Any) -> Trainer:
        if trainer is None:
            warnings.warn("Estimator: without a trainer, SGD with a learning rate of 0.001 is used", stacklevel=3)
            return Trainer(self.net.collect_params(), "sgd", {"learning_rate": 0.001})
        if not isinstance(trainer, Trainer):
            raise error(
                ValueError,
                "Estimator: trainer must be a gluon.Trainer, "
                f"such as gluon.Trainer(net.collect_params(), 'adam'), got {trainer!r}",
            )
        return trainer

    def _add_default_training_metrics(self) -> None:
        if not self._train_metrics:
            suggested = _suggest_metric_for_loss(self.loss)
            self._train_metrics = [] if suggested is None else [suggested]
            self._train_metrics.append(metric_loss(self.loss.name.rstrip("0123456789")))
        for metric in self._train_metrics:
            metric.name = f"training {metric.name}"

    def _add_validation_metrics(self) -> None:
        self._val_metrics = self._val_metrics or copy.deepcopy(self._train_metrics)
        for metric in self._val_metrics:
            known = "training" in metric.name
            metric.name = metric.name.replace("training", "validation") if known else f"validation {metric.name}"

    @property
    def train_metrics(self) -> list[EvalMetric]:
        """The metrics of training, a list."""
        return self._train_metrics

    @property
    def val_metrics(self) -> list[EvalMetric]:
        """The metrics of validation, a list."""
        return self._val_metrics

    # -- running -------------------------------------------------------------------------------------------------

    def evaluate(
        self,
        val_data: DataLoader,
        batch_axis: int = 0,
        event_handlers: EventHandler | Sequence[EventHandler] | None = None,
    ) -> None:
        """Evaluate the network; `val_metrics` have the result.

        Parameters
        ----------
        val_data : DataLoader
            Of data and labels.
        batch_axis : int, default 0
            The axis that is split over the contexts.
        event_handlers : EventHandler or list of EventHandler, optional
            A `MetricHandler` and a `LoggingHandler` are added unless they are there.

        Raises
        ------
        MXNetError
            (also ValueError) for data that are no DataLoader.
        Exception
            What a handler raises; the message names handler and event.
        """
        self._check_data(val_data, "evaluate: val_data")
        for metric in self.val_metrics:
            metric.reset()
        handlers = self._by_event(self._prepare_default_validation_handlers(event_handlers))
        self._fire("epoch_begin", handlers)
        for batch in val_data:
            self._fire("batch_begin", handlers, batch=batch)
            _, label, pred, loss = self.batch_processor.evaluate_batch(self, batch, batch_axis)
            self._fire("batch_end", handlers, batch=batch, pred=pred, label=label, loss=loss)
        self._fire("epoch_end", handlers)

    def fit(
        self,
        train_data: DataLoader,
        val_data: DataLoader | None = None,
        epochs: int | None = None,
        event_handlers: EventHandler | Sequence[EventHandler] | None = None,
        batches: int | None = None,
        batch_axis: int = 0,
    ) -> None:
        """Train the network for a number of epochs, or of batches.

        Parameters
        ----------
        train_data : DataLoader
            Of data and labels.
        val_data : DataLoader, optional
            What to evaluate on after each epoch, unless there is a `ValidationHandler`.
        epochs : int, optional
            How many times to go through `train_data`.
        event_handlers : EventHandler or list of EventHandler, optional
            A `StoppingHandler` is added, and, unless they are there, a `GradientUpdateHandler`, a `MetricHandler` and
            a `LoggingHandler`. They are called in the order of their `priority`, 0 if they have none.
        batches : int, optional
            How many batches to train on; instead of `epochs`.
        batch_axis : int, default 0
            The axis that is split over the contexts.

        Raises
        ------
        MXNetError
            (also ValueError) for data that are no DataLoader, and unless one of `epochs` and `batches` is given.
        Exception
            What a handler raises; the message names handler and event. The next `fit` begins anew.

        Notes
        -----
        A handler ends the epoch by returning true from ``batch_end``, the training by returning it from ``epoch_end``.
        """
        self._check_data(train_data, "fit: train_data")
        if (not epochs) == (not batches):
            raise error(
                ValueError, f"fit: give epochs or batches, and not both, got epochs={epochs!r} and batches={batches!r}"
            )
        count = epochs or batches
        if not isinstance(count, Number) or count <= 0 or (count % 1 and count != np.inf):
            raise error(ValueError, f"fit: epochs and batches must be whole numbers above 0, got {count!r}")
        self.max_epoch, self.max_batch = epochs, batches
        self.batch_axis = batch_axis
        handlers = self._by_event(self._prepare_default_handlers(val_data, event_handlers))
        self._fire("train_begin", handlers)
        while True:
            self._fire("epoch_begin", handlers)
            empty = True
            for batch in train_data:
                empty = False
                self._fire("batch_begin", handlers, batch=batch)
                _, label, pred, loss = self.batch_processor.fit_batch(self, batch, batch_axis)
                if self._fire("batch_end", handlers, batch=batch, pred=pred, label=label, loss=loss):
                    break
            if empty and batches:  # which would never be reached
                raise error(ValueError, f"fit: train_data gave no batch, so {batches} batches cannot be trained on")
            if self._fire("epoch_end", handlers):
                break
        self._fire("train_end", handlers)

    @staticmethod
    def _check_data(data: Any, name: str) -> None:
        if not isinstance(data, DataLoader):
            raise error(
                ValueError,
                f"{name} must be a gluon.data.DataLoader, got {type(data).__name__}; arrays become one by "
                "gluon.data.DataLoader(gluon.data.ArrayDataset(data, label), batch_size)",
            )

    def _fire(self, event: str, handlers: Any, **given: Any) -> bool:
        """Tell an event to its handlers, to all of them; true if one of them asks to stop."""
        stop = False
        for handler in handlers[event]:
            try:
                wanted = getattr(handler, event)(self, **given)
            except Exception as e:
                _blame(e, f"{type(handler).__name__}.{event} raised {type(e).__name__}: {e}")
                raise
            stop = bool(wanted) or stop
        return stop

    def _prepare_default_handlers(self, val_data: DataLoader | None, event_handlers: Any) -> list[EventHandler]:
        added: list[EventHandler] = [StoppingHandler(self.max_epoch, self.max_batch)]
        given = _check_event_handlers(event_handlers)
        lacks = _lacking(given)
        if lacks(GradientUpdateHandler):
            added.append(GradientUpdateHandler())
        if lacks(MetricHandler):
            added.append(MetricHandler(self.train_metrics))
        if lacks(ValidationHandler) and val_data is not None:
            self._check_data(val_data, "fit: val_data")
            added.append(ValidationHandler(val_data, self.evaluate))
        if lacks(LoggingHandler):
            added.append(LoggingHandler(metrics=self.train_metrics))
        return self._ordered(given, added, self.train_metrics + self.val_metrics)

    def _prepare_default_validation_handlers(self, event_handlers: Any) -> list[EventHandler]:
        given = _check_event_handlers(event_handlers)
        added: list[EventHandler] = []
        lacks = _lacking(given)
        if lacks(MetricHandler):
            added.append(MetricHandler(self.val_metrics))
        if lacks(LoggingHandler):
            added.append(LoggingHandler(metrics=self.val_metrics))
        return self._ordered(given, added, self.val_metrics)

    @staticmethod
    def _ordered(
        given: list[EventHandler], added: list[EventHandler], known_metrics: list[EvalMetric]
    ) -> list[EventHandler]:
        """Handlers in the order of their priorities; those of the user must have metrics that the others update."""
        if added:
            for handler in given:
                _check_handler_metric_ref(handler, set(known_metrics))
        return sorted([*given, *added], key=lambda handler: getattr(handler, "priority", 0))

    def _categorize_handlers(self, event_handlers: list[EventHandler]) -> tuple[list[EventHandler], ...]:
        """The handlers of train_begin, epoch_begin, batch_begin, batch_end, epoch_end and train_end."""
        return tuple([handler for handler in event_handlers if isinstance(handler, kind)] for kind in _EVENTS.values())

    def _by_event(self, event_handlers: list[EventHandler]) -> dict[str, list[EventHandler]]:
        return dict(zip(_EVENTS, self._categorize_handlers(event_handlers)))

    # What subclasses that have a loop of their own split batches with.
    _get_data_and_label = BatchProcessor._get_data_and_label


def _lacking(handlers: list[EventHandler]) -> Callable[[type[EventHandler]], bool]:
    return lambda kind: not any(isinstance(handler, kind) for handler in handlers)


def _blame(e: Exception, words: str) -> None:
    """Say who raised an error. One with a message of its own class, such as a user's, stays the object it is."""
    if type(e).__module__ in ("builtins", "mxcore.base") and len(e.args) == 1:
        raise error(type(e), words) from e
    if hasattr(e, "add_note"):  # Python 3.11
        e.add_note(words)
