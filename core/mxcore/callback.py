"""Callbacks of training loops, as ``mxnet.callback``.

A callback of the end of a batch takes one `param` with ``epoch``, ``nbatch``, ``eval_metric`` and ``locals``; one of
the end of an epoch takes the epoch, the symbol, arguments and auxiliary states.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from .base import error
from .model import save_checkpoint

__all__ = [
    "LogValidationMetricsCallback",
    "ProgressBar",
    "Speedometer",
    "do_checkpoint",
    "log_train_metric",
    "module_checkpoint",
]


def _every(period: Any, what: str) -> int:
    try:
        return max(1, int(period))
    except (TypeError, ValueError):
        raise error(ValueError, f"{what}: period must be a whole number, got {period!r}") from None


def module_checkpoint(
    mod: Any, prefix: str, period: int = 1, save_optimizer_states: bool = False
) -> Callable[..., None]:
    """At the end of an epoch: save a module every `period` epochs.

    Parameters
    ----------
    mod : Module
    prefix : str
        Path or URL; the files are those of ``mod.save_checkpoint``.
    period : int
    save_optimizer_states : bool
        Write ``<prefix>-0001.states`` too, to go on with training.

    Returns
    -------
    callable
        For ``epoch_end_callback`` of ``fit``.

    Examples
    --------
    >>> import mxcore as mx
    >>> mod = mx.mod.Module(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc"), label_names=None)
    >>> mod.bind([("data", (1, 3))])
    >>> mod.init_params()
    >>> save = mx.callback.module_checkpoint(mod, "memory://doc/mod", period=2)
    >>> for epoch in range(2):
    ...     save(epoch)
    >>> sorted(mx.nd.load("memory://doc/mod-0002.params"))
    ['arg:fc_bias', 'arg:fc_weight']
    """
    period = _every(period, "module_checkpoint")

    def save(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            mod.save_checkpoint(prefix, iter_no + 1, save_optimizer_states)

    return save


def do_checkpoint(prefix: str, period: int = 1) -> Callable[..., None]:
    """At the end of an epoch: save symbol and parameters every `period` epochs.

    Parameters
    ----------
    prefix : str
        Path or URL; the files are ``<prefix>-symbol.json`` and ``<prefix>-0001.params`` …
    period : int

    Returns
    -------
    callable
        For ``epoch_end_callback`` of ``fit``.

    Examples
    --------
    >>> import mxcore as mx
    >>> save = mx.callback.do_checkpoint("memory://doc/net")
    >>> save(0, mx.sym.Variable("x"), {"w": mx.nd.ones(2)}, {})
    >>> list(mx.nd.load("memory://doc/net-0001.params"))
    ['arg:w']
    """
    period = _every(period, "do_checkpoint")

    def save(iter_no: int, sym: Any, arg: Any, aux: Any) -> None:
        if (iter_no + 1) % period == 0:
            save_checkpoint(prefix, iter_no + 1, sym, arg, aux)

    return save


def log_train_metric(period: int, auto_reset: bool = False) -> Callable[[Any], None]:
    """At the end of a batch: log the metric every `period` batches.

    Parameters
    ----------
    period : int
    auto_reset : bool
        Begin the metric anew after each line.

    Returns
    -------
    callable
        For ``batch_end_callback`` of ``fit``.

    Examples
    --------
    >>> import mxcore as mx
    >>> log = mx.callback.log_train_metric(100)
    >>> log(mx.model.BatchEndParam(epoch=0, nbatch=100, eval_metric=mx.metric.Accuracy(), locals=None))
    """
    period = _every(period, "log_train_metric")

    def log(param: Any) -> None:
        if param.nbatch % period or param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            logging.info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
        if auto_reset:
            param.eval_metric.reset_local()

    return log


class Speedometer:
    """Log the speed of training, and the metric, every `frequent` batches.

    Parameters
    ----------
    batch_size : int
        Samples in a batch.
    frequent : int
        Batches from line to line.
    auto_reset : bool
        Begin the metric anew after each line, so that it is of these batches only.

    Examples
    --------
    >>> import mxcore as mx
    >>> speed = mx.callback.Speedometer(batch_size=32, frequent=50)
    >>> speed(mx.model.BatchEndParam(epoch=0, nbatch=0, eval_metric=None, locals=None))
    """

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True) -> None:
        self.batch_size, self.auto_reset = batch_size, auto_reset
        self.frequent = _every(frequent, "Speedometer")
        self.init = False
        self.tic = 0.0
        self.last_count = 0

    def __call__(self, param: Any) -> None:
        count = param.nbatch
        if self.last_count > count:
            self.init = False  # a new epoch
        self.last_count = count
        if not self.init:
            self.init, self.tic = True, time.time()
            return
        if count % self.frequent:
            return
        seconds = time.time() - self.tic
        speed = self.frequent * self.batch_size / seconds if seconds > 0 else float("inf")
        metric = param.eval_metric
        if metric is None:
            logging.info("Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec", param.epoch, count, speed)
        else:
            found = metric.get_name_value()
            first = count - self.frequent if self.auto_reset else 0
            if self.auto_reset:
                metric.reset_local()
            text = "Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec" + "\t%s=%f" * len(found)
            logging.info(text, param.epoch, first, count, speed, *[v for pair in found for v in pair])
        self.tic = time.time()


class ProgressBar:
    """Show how far an epoch has come, with tqdm.

    Parameters
    ----------
    total : int
        Batches in an epoch.
    length : int
        Width of the bar in characters.

    Raises
    ------
    MXNetError
        (also ValueError) if `total` is below 1.

    Examples
    --------
    >>> import mxcore as mx
    >>> bar = mx.callback.ProgressBar(total=20)
    >>> bar.total, bar.bar_len
    (20, 80)
    """

    def __init__(self, total: int, length: int = 80) -> None:
        if total < 1:
            raise error(ValueError, f"ProgressBar: total must be the number of batches, 1 or more, got {total!r}")
        self.total, self.bar_len = total, length
        self._bar: Any = None

    def __call__(self, param: Any) -> None:
        from tqdm import tqdm

        count = min(param.nbatch, self.total)
        if self._bar is not None and count < self._bar.n:
            self._close()
        if self._bar is None:
            self._bar = tqdm(
                total=self.total,
                desc=f"epoch {param.epoch}",
                unit="batch",
                bar_format=f"{{desc}} {{bar:{self.bar_len}}} {{percentage:3.0f}}%{{postfix}}",
            )
        if param.eval_metric is not None:
            self._bar.set_postfix(
                {name: f"{value:.4g}" for name, value in param.eval_metric.get_name_value()}, refresh=False
            )
        self._bar.update(count - self._bar.n)
        if count == self.total:
            self._close()

    def _close(self) -> None:
        self._bar.refresh()
        self._bar.close()
        self._bar = None


class LogValidationMetricsCallback:
    """At the end of an evaluation: log its metrics; for ``eval_end_callback`` of ``fit``.

    Examples
    --------
    >>> import mxcore as mx
    >>> log = mx.callback.LogValidationMetricsCallback()
    >>> log(mx.model.BatchEndParam(epoch=0, nbatch=3, eval_metric=mx.metric.Accuracy(), locals=None))
    """

    def __call__(self, param: Any) -> None:
        if not param.eval_metric:
            return
        for name, value in param.eval_metric.get_name_value():
            logging.info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)
