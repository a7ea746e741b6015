"""Ctrl-C between a thing's making and its storing: descriptors and processes that nobody knows of nobody closes."""

from __future__ import annotations

# Its functions are C's: those of `signal` look each handler up in an enumeration.
import _signal  # type: ignore[import-not-found]
import contextlib
import functools
import os
import signal
import sys
import threading
from _signal import getsignal
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from ._forks import at_fork

__all__ = [
    "Uninterrupted",
    "descriptor",
    "given",
    "handled",
    "handlers",
    "let_all_through",
    "let_through",
    "passing",
    "suppress",
]

#: Where mxcore's own files are, but for those of plugins.
_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
#: Of the flags of code: it takes any number of arguments.
_VARARGS = 0x04
_SIGINT, _SIGNALS = int(signal.SIGINT), [*map(int, signal.valid_signals())]
#: By its id, for it may be any object: what does nothing in Python.
_PLAIN = {*map(id, (_signal.SIG_DFL, _signal.SIG_IGN, None))}
#: That of Ctrl-C, which `Uninterrupted` puts aside: of another signal it is as any that raises.
_CTRL_C = signal.default_int_handler
#: All handlers when none was the user's: as a rule they are still the same, and lists compare their items' ids first.
_plain: list[Any] = []
#: The main thread, and the handlers that its regions have put aside, the user's first.
_aside: list[tuple[int, Any]] = []


def _in_child() -> None:
    """Give the user's handler to a child that another thread has forked: it is in no region, and would leave none."""
    if _aside and threading.get_ident() != _aside[0][0]:
        handler = _aside[0][1]
        _aside.clear()
        _signal.signal(_SIGINT, handler)


at_fork(after_in_child=_in_child)


def handled() -> bool:
    """Whether a signal's handler of the user's may come in the midst of what this thread does, and do anything.

    That is in the main thread alone.

    Examples
    --------
    >>> import signal
    >>> before = signal.signal(signal.SIGTERM, lambda *_: None)
    >>> handled()
    True
    >>> _ = signal.signal(signal.SIGTERM, before)
    """
    global _plain
    if threading.get_ident() != threading.main_thread().ident:
        return False
    found = [*map(getsignal, _SIGNALS)]
    if found == _plain:
        return False
    others = [h for n, h in zip(_SIGNALS, found) if id(h) not in _PLAIN and not (n == _SIGINT and h is _CTRL_C)]
    if not others:
        _plain = found
        return False
    others += [h for _, h in _aside[:] if h is not _CTRL_C]
    return any(getattr(h, "__func__", None) is not Uninterrupted._note for h in others)


def handlers() -> set[CodeType]:
    """The code of all functions of the user's that handle signals, as far as it is Python's."""
    found = set[CodeType]()
    for handler in map(getsignal, _SIGNALS):
        if id(handler) in _PLAIN:
            continue
        while isinstance(handler, functools.partial):
            handler = handler.func
        function = handler if hasattr(handler, "__code__") else getattr(handler, "__func__", type(handler).__call__)
        while function is not None:  # what wraps it, too
            if (code := getattr(function, "__code__", None)) is not None:
                found.add(code)
            function = getattr(function, "__wrapped__", None)
    return found


def given(frame: FrameType, other: FrameType) -> bool:
    """Whether the function of a frame has got another frame as an argument, as those that handle signals do.

    Parameters
    ----------
    frame, other : frame
    """
    code, values = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _VARARGS)]
    got = map(values.get, names)
    return any(v is other or type(v) is tuple and any(w is other for w in v) for v in got)


def by_a_handler(exc: BaseException) -> bool:
    """Whether a signal's handler of the user's raised it: what it came in the midst of has not failed.

    Such a function is given the frame that it interrupts; and it may be set, as most are that are asked for at all.
    """
    codes = handlers()
    at, before = exc.__traceback__, None
    while at is not None:
        frame = at.tb_frame
        if frame.f_code in codes or before is not None and given(frame, before):
            return True
        at, before = at.tb_next, frame
    return False


def let_through(exc: BaseException) -> None:
    """Raise what Ctrl-C or a signal's handler of the user's raised again: what it came in the midst of has not failed.

    Parameters
    ----------
    exc : BaseException
        What was caught.

    Examples
    --------
    >>> import signal
    >>> def too_late(*_):
    ...     raise TimeoutError("too late")
    >>> before = signal.signal(signal.SIGTERM, too_late)
    >>> try:
    ...     signal.raise_signal(signal.SIGTERM)
    ... except TimeoutError as e:
    ...     let_through(e)
    Traceback (most recent call last):
    ...
    TimeoutError: too late
    >>> _ = signal.signal(signal.SIGTERM, before)
    """
    if isinstance(exc, KeyboardInterrupt) or by_a_handler(exc):
        raise exc


def let_all_through(exc: BaseException, outside: BaseException | None) -> None:
    """As `let_through`, also what code of others has put another exception in the place of.

    Parameters
    ----------
    exc : BaseException
        What was caught.
    outside : BaseException or None
        What was handled before.
    """
    found: BaseException | None = exc
    while found is not None and found is not outside:
        let_through(found)
        found = found.__context__


def passing() -> None:
    """Raise again what a signal's handler raised, where who asks for an error in its place has just caught it.

    That is two frames up, or above it the one that handed the exception on to it. Others of ours may have caught it
    before, and raised what was caught now.
    """
    exc = sys.exc_info()[1]
    if exc is None or exc.__traceback__ is None:
        return
    caught_by, frame = exc.__traceback__.tb_frame, sys._getframe(2)
    while frame is not caught_by:
        if frame.f_back is None or not any(v is exc for v in frame.f_locals.values()):
            return  # it is handled further out, by who may call what he likes meanwhile
        frame = frame.f_back
    let_through(exc)
    before = exc.__context__
    while before is not None and before.__traceback__ is not None:
        over = before.__traceback__.tb_frame
        if not over.f_code.co_filename.startswith(_HERE) or _is_above(over, frame):  # others mean what they say
            return
        let_through(before)
        before = before.__context__


def _is_above(frame: FrameType, other: FrameType | None) -> bool:
    """Whether a frame is another one, or among those that have called it."""
    while other is not None and other is not frame:
        other = other.f_back
    return other is frame


class suppress(contextlib.suppress):
    """A with-block that some errors end in silence, as the standard library's; but for those of a signal's handler.

    Parameters
    ----------
    *exceptions
        Classes of errors.

    Examples
    --------
    >>> with suppress(OSError):
    ...     raise FileNotFoundError
    """

    def __exit__(self, kind: Any, exc: Any, tb: Any) -> bool:
        return bool(super().__exit__(kind, exc, tb)) and not by_a_handler(exc)


@contextlib.contextmanager
def descriptor(path: str, flags: int) -> Iterator[int]:
    """Open a file for a with-block and close it behind it, also if a signal's handler raises as soon as it is open.

    Parameters
    ----------
    path : str
    flags : int
        As for `os.open`.

    Examples
    --------
    >>> with descriptor(os.devnull, os.O_RDONLY) as handle:
    ...     os.read(handle, 10)
    b''
    """
    held: list[int] = []
    # Into a list in one call, and out of it: a handler comes before it or behind it, and as a rule once.
    try:
        try:
            held.extend(map(os.open, (path,), (flags | getattr(os, "O_BINARY", 0),)))
            yield held[0]
        finally:
            _close(held)
    finally:
        _close(held)


def _close(held: list[int]) -> None:
    with suppress(OSError):
        any(map(os.close, map(held.pop, [0] * len(held))))


class Uninterrupted:
    """A region that Ctrl-C interrupts at its end only; for what takes a moment.

    It is for the main thread, which alone is interrupted; in others, and where the signal is not handled in Python,
    nothing changes. Regions may lie in each other.

    Attributes
    ----------
    came : bool
        Whether the user pressed it since: what waits may hurry.

    Examples
    --------
    >>> with Uninterrupted() as region:
    ...     made = [object()]
    >>> region.came
    False
    """

    def __init__(self) -> None:
        self.came = False
        self._handler: Any = None
        #: Whether it is over: who was told of `_note` as the handler before his own may set it again.
        self._over = False

    def __enter__(self) -> Uninterrupted:
        if threading.current_thread() is threading.main_thread():
            handler = getsignal(_SIGINT)
            # From the next call on nothing interrupts, so what it returns is no news.
            if callable(handler):
                self._handler = handler
                _aside.append((threading.get_ident(), handler))
                _signal.signal(_SIGINT, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._over:
            self._handler(number, frame)
        self.came = True

    def __exit__(self, *exc: object) -> None:
        handler = self._handler
        if handler is not None:
            _aside.pop()
            now = getsignal(_SIGINT)
            if getattr(now, "__self__", None) is self:  # else a signal's handler has set another meanwhile
                now = handler
                _signal.signal(_SIGINT, handler)
            self._over = True
            if self.came and callable(now):
                now(_SIGINT, sys._getframe(1))
