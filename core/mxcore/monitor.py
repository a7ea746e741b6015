"""Statistics of what goes on inside an executor, as ``mxnet.monitor`` and ``mx.mon``."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from . import ndarray
from ._reexports import reexports
from .base import error
from .ndarray import NDArray

__all__ = ["Monitor", "NDArray", "sqrt"]

__getattr__ = reexports(__name__)


def _size(x: Any) -> Any:
    """The default statistic: the root of the mean square."""
    return ndarray.norm(x) / sqrt(x.size)


class Monitor:
    """Show a statistic of outputs, weights and states every so many batches.

    Parameters
    ----------
    interval : int
        Batches from one report to the next.
    stat_func : callable, optional
        From an NDArray to an NDArray or a list of them; ``norm(x) / sqrt(x.size)`` unless told.
    pattern : str
        A regular expression that names must match.
    sort : bool
        Sort a report by name.
    monitor_all : bool
        Show the inputs of operators too.

    Raises
    ------
    MXNetError
        (also ValueError) if `interval` is below 1 or `pattern` is no regular expression.

    Notes
    -----
    Names are MXNet's: ``fc1_output``, ``bn_mean``, ``fc1_weight``, and for gradients ``fc1_backward_output1``, that of
    the second input of ``fc1``; ``Executor.set_monitor_callback`` tells more. Between reports executors run their fast
    programs, which share memory and fuse operators; only a reported batch is computed operator by operator.

    Examples
    --------
    >>> import mxcore as mx
    >>> exe = mx.sym.exp(mx.sym.Variable("x"), name="e").simple_bind(mx.cpu(), x=(2,))
    >>> mon = mx.mon.Monitor(1)
    >>> mon.install(exe)
    >>> mon.tic()
    >>> _ = exe.forward()
    >>> mon.toc()
    [(1, 'e_output', '1.0\\t'), (1, 'x', '0.0\\t')]
    """

    def __init__(
        self,
        interval: int,
        stat_func: Callable[[Any], Any] | None = None,
        pattern: str = ".*",
        sort: bool = False,
        monitor_all: bool = False,
    ) -> None:
        if interval < 1:
            raise error(ValueError, f"Monitor: interval must be 1 or more batches, got {interval!r}")
        try:
            self.re_prog = re.compile(pattern)
        except re.error as e:
            raise error(ValueError, f"Monitor: pattern {pattern!r} is no regular expression: {e}") from e
        self.stat_func = _size if stat_func is None else stat_func
        self.interval, self.sort, self.monitor_all = interval, sort, monitor_all
        self.activated = False
        self.queue: list[tuple[int, str, Any]] = []
        self.step = 0
        self.exes: list[Any] = []

    def stat_helper(self, name: str, array: Any) -> None:
        """Take a value into the report; executors call it."""
        if self.activated and self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def install(self, exe: Any) -> None:
        """Watch an executor; may be called for several."""
        if not hasattr(exe, "set_monitor_callback"):
            raise error(
                TypeError,
                f"Monitor.install: an Executor is needed, got {type(exe).__name__}; for a Module call "
                "module.install_monitor(monitor)",
            )
        self.exes.append(exe)
        if self.activated:
            exe.set_monitor_callback(self.stat_helper, self.monitor_all)

    def tic(self) -> None:
        """Begin a batch; call it before forward."""
        if self.step % self.interval == 0:
            self._wait()
            for exe in self.exes:
                exe.set_monitor_callback(self.stat_helper, self.monitor_all)
            self.queue = []
            self.activated = True
        self.step += 1

    def toc(self) -> list[tuple[int, str, str]]:
        """End a batch; call it after forward or backward.

        Returns
        -------
        list of (int, str, str)
            Batch, name and statistic in words; empty for batches in between.

        Raises
        ------
        MXNetError
            (also TypeError) if `stat_func` gave something else than arrays.
        """
        if not self.activated:
            return []
        self._wait()
        for exe in self.exes:
            for name, array in [*exe.arg_dict.items(), *exe.aux_dict.items()]:
                self.stat_helper(name, array)
            exe.set_monitor_callback(None)
        self.activated = False
        if self.sort:
            self.queue.sort(key=lambda row: row[1])
        found = [(n, name, _text(name, value)) for n, name, value in self.queue]
        self.queue = []
        return found

    def toc_print(self) -> None:
        """As `toc`; the report goes to `logging`."""
        for n, name, text in self.toc():
            logging.info(f"Batch: {n:7d} {name:30s} {text:s}")

    def _wait(self) -> None:
        for exe in self.exes:
            for array in [*exe.arg_arrays, *exe.aux_arrays]:
                array.wait_to_read()


def _text(name: str, value: Any) -> str:
    parts = value if isinstance(value, (list, tuple)) else [value]
    words = []
    for v in parts:
        if isinstance(v, (int, float, np.generic)):
            v = np.asarray(v)
        elif hasattr(v, "asnumpy"):
            v = v.asnumpy()
        if not isinstance(v, np.ndarray):
            raise error(
                TypeError,
                f"Monitor: stat_func gave {type(v).__name__} for '{name}'; it must give an NDArray or a list of them",
            )
        words.append(str(v.reshape(())[()] if v.shape in ((), (1,)) else v) + "\t")
    return "".join(words)
