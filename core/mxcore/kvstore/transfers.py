"""Arrays to and from host memory in the order of the engine: for stores whose values travel, in any plugin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from .._core.device import Device
from .._core.engine import engine
from .._core.stream import commit
from .._interrupts import Uninterrupted
from .._locks import fork_safe_lock
from .._workers import Promise
from ..ndarray import NDArray

__all__ = ["Arrival", "Departure"]


class _Wire:
    """Where work ends when bytes come or go: the engine gives it a queue, as it does a context."""

    device_id = 0
    #: One that has nothing to switch on.
    _device = device = Device()

    def __repr__(self) -> str:
        return "kvstore"


_wire: Any = _Wire()


class Departure:
    """An array on its way into host memory.

    If it is not computed yet, who writes to it waits until all has been read, or nobody has this object any more.

    Parameters
    ----------
    value : NDArray
        A dense one, computed or not.

    Examples
    --------
    >>> import mxcore as mx, numpy as np
    >>> memory = np.empty(2, np.float32)
    >>> Departure(mx.nd.array([1, 2])).read(memory)
    >>> memory
    array([1., 2.], dtype=float32)
    """

    _pending: Any = None  # of one whose making was interrupted

    def __init__(self, value: NDArray) -> None:
        read = self._read = Promise()
        self._data, self._ctx, self._left = value._data, value.context, value.size
        self._host: np.ndarray[Any, Any] | None = None
        self._pending = value._st.write
        #: What is to be called when it is computed.
        self._calls: list[Callable[[], Any]] = []
        calls = self._calls
        if self._pending is not None:

            def computed() -> Promise:
                for call in calls:
                    call()
                return read

            engine.it.push(_wire, computed, (value._st,), (), "a push to a kvstore")

    def __del__(self) -> None:
        if self._pending is not None:
            self._let_go()

    def _let_go(self) -> None:
        self._read.set_result(None)

    def when_ready(self, call: Callable[[], Any]) -> None:
        """Let something be called, perhaps twice, when the array is computed; never, if that fails.

        Parameters
        ----------
        call : callable
            Without arguments.
        """
        self._calls.append(call)
        if self.ready:
            call()

    @property
    def ready(self) -> bool:
        """Whether `read` has nothing to wait for."""
        return self._pending is None or self._pending.done.is_set()

    def read(self, into: np.ndarray[Any, Any], start: int = 0) -> None:
        """Wait until the array is computed, and copy elements of it.

        Parameters
        ----------
        into : numpy.ndarray
            In one dimension; of a dtype of its own if they are to be cast.
        start : int
            The first element, of the array in one dimension.

        Raises
        ------
        MXNetError
            That of the computation, if it failed.
        """
        try:
            np.copyto(into, self.elements()[start : start + into.size], casting="unsafe")
            self._left -= into.size
        except BaseException:
            self._left = 0
            raise
        finally:
            if self._left <= 0:
                self._let_go()

    def elements(self) -> np.ndarray[Any, Any]:
        """Wait until the array is computed; its elements in one dimension, on the host in its own memory."""
        if self._pending is not None:
            self._pending.wait()
        if self._host is None:
            data = self._data
            host = data if data.__class__ is np.ndarray else self._ctx.device.to_host(data)
            self._host = host.reshape(-1)
        return self._host


class Arrival:
    """Values on their way into arrays: once they are expected these are pending until all has been written.

    Parameters
    ----------
    values : sequence of sequences of NDArray
        For each value the dense arrays that get it, of one shape.

    Examples
    --------
    >>> import mxcore as mx, numpy as np
    >>> out = mx.nd.zeros(2)
    >>> arrival = Arrival([[out]])
    >>> arrival.expect(lambda: arrival.write(0, 0, np.array([3.0, 4.0], np.float32)))
    >>> out.asnumpy()
    array([3., 4.], dtype=float32)
    """

    def __init__(self, values: Sequence[Sequence[NDArray]]) -> None:
        self._values = values
        self._come = Promise()
        self._lock = fork_safe_lock()
        self._free = False
        self._parts: list[tuple[int, int, np.ndarray[Any, Any], Callable[[], Any] | None]] = []
        #: Memory for the elements of each value: that of its first array, where this lies on the host in one piece.
        self._direct = [_in_one_piece(outs[0]._data) for outs in values]
        self._hosts = [
            outs[0]._data.reshape(-1) if direct else np.empty(outs[0].size, outs[0].dtype)
            for outs, direct in zip(values, self._direct)
        ]
        self._missing = [outs[0].size for outs in values]
        self._all_missing = sum(self._missing)

    def expect(self, ask: Callable[[], Any]) -> None:
        """Ask for the values, and let the arrays wait for them.

        Parameters
        ----------
        ask : callable
            Without arguments; returns soon. An interrupt (Ctrl-C) comes before it, or when the arrays wait.
        """
        storages = tuple(out._st for outs in self._values for out in outs)
        commit(storages)
        try:
            with nullcontext() if engine.it.naive else Uninterrupted():  # that one waits for them now
                self._ask(ask, storages)
        finally:
            commit(storages)

    def _ask(self, ask: Callable[[], Any], storages: Sequence[Any]) -> None:
        try:
            ask()
            engine.it.push(_wire, self._begin, (), storages, "a pull from a kvstore")
        except BaseException as e:
            self.fail(e)
            self._begin()  # who sends what was asked for is not to wait until it is read
            raise

    def _begin(self) -> Promise:
        """Write what has come by now: nobody uses the arrays any more."""
        with self._lock:
            self._free = True
            parts, self._parts = self._parts, []
        for part in parts:
            self._copy(*part)
        if not self._all_missing:
            self._end()
        return self._come

    def write(
        self, value: int, start: int, elements: np.ndarray[Any, Any], then: Callable[[], Any] | None = None
    ) -> None:
        """Write elements as soon as the arrays are free.

        Parameters
        ----------
        value : int
            Which of the values.
        start : int
            The first of the elements, of the array in one dimension.
        elements : numpy.ndarray
            In one dimension.
        then : callable, optional
            Called without arguments when the memory of the elements will not be read again.
        """
        with self._lock:
            if not self._free:
                self._parts.append((value, start, elements, then))
                return
        self._copy(value, start, elements, then)

    def _copy(self, value: int, start: int, elements: np.ndarray[Any, Any], then: Callable[[], Any] | None) -> None:
        if not self._come.done():
            np.copyto(self._hosts[value][start : start + elements.size], elements, casting="unsafe")
        if then is not None:
            then()
        with self._lock:
            self._missing[value] -= elements.size
            complete = not self._missing[value]
        if complete:
            self._spread(value)
        with self._lock:
            self._all_missing -= elements.size
            end = not self._all_missing
        if end:
            self._end()

    def _spread(self, value: int) -> None:
        """Copy a value to the arrays that it was not written to."""
        first, *_ = outs = self._values[value]
        host = self._hosts[value].reshape(first.shape)
        try:
            for out in outs:
                if out is not first or not self._direct[value]:
                    ctx = out.context
                    device = ctx.device
                    device.copy(device.from_host(host.astype(out.dtype, copy=False), ctx.device_id), out._data)
        except BaseException as e:
            self.fail(e)

    def _end(self) -> None:
        self._come.set_result(None)

    def fail(self, exception: BaseException) -> None:
        """Let the arrays raise an exception: a value will not come."""
        self._come.set_exception(exception)


def _in_one_piece(data: Any) -> bool:
    return data.__class__ is np.ndarray and bool(data.flags.c_contiguous)
