"""What a program says of itself in a profile: domains, tasks, frames, events, counters, marks and scopes."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from .._core.state import state
from .._locks import fork_safe_lock
from .._scopes import Scope, without
from ..base import error, plain
from .record import now, recorder
from .trace import SCOPES

__all__ = ["Counter", "Domain", "Event", "Frame", "Marker", "Task", "scope"]


class Domain:
    """A group of objects, with a table of its own.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> import mxcore as mx
    >>> task = mx.profiler.Domain("loading").new_task("decode")
    >>> with task:
    ...     pass
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> Task:
        """A task of this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """A frame of this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: Any = None) -> Counter:
        """A counter of this domain, with a first value."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """A mark of this domain."""
        return Marker(self, name)


class _Span:
    """Something with a begin and an end, one for each thread at a time; also a context manager."""

    def __init__(self, name: str, section: str) -> None:
        self.name = name
        self._label = name, section
        self._begun = threading.local()

    def start(self) -> None:
        """Begin."""
        self._begun.at = now()

    def stop(self) -> None:
        """End; without `start` before, nothing is recorded."""
        begun, self._begun.at = getattr(self._begun, "at", None), None
        if begun is not None:
            recorder.mark(self._label, begun, now())

    def __enter__(self) -> Any:
        begun = self._begun.__dict__
        begun["around"] = begun.get("at"), begun.get("around")  # of a block of this object around this one
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        begun = self._begun.__dict__
        begun["at"], begun["around"] = begun.get("around") or (None, None)

    def __str__(self) -> str:
        return self.name


class Task(_Span):
    """A piece of work of a domain.

    Parameters
    ----------
    domain : Domain
    name : str

    Examples
    --------
    >>> import mxcore as mx
    >>> with mx.profiler.Task(mx.profiler.Domain("loading"), "decode"):
    ...     pass
    """

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(name, str(domain))
        self.domain = domain


class Frame(_Span):
    """A round of a repeated work, such as a batch.

    Parameters
    ----------
    domain : Domain
    name : str

    Examples
    --------
    >>> import mxcore as mx
    >>> frame = mx.profiler.Frame(mx.profiler.Domain("training"), "batch")
    >>> frame.start()
    >>> frame.stop()
    """

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(name, f"{domain},frame")
        self.domain = domain


class Event(_Span):
    """Something that happens in one thread, without a domain.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> import mxcore as mx
    >>> event = mx.profiler.Event("waiting")
    >>> event.start()
    >>> event.stop()
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, "event")


class Counter:
    """A number that changes; each change is recorded.

    Parameters
    ----------
    domain : Domain
    name : str
    value : number, optional
        The first value; 0, without a record, unless told.

    Examples
    --------
    >>> import mxcore as mx
    >>> queue = mx.profiler.Counter(mx.profiler.Domain("loading"), "queue", 2)
    >>> queue += 1
    """

    def __init__(self, domain: Domain, name: str, value: Any = None) -> None:
        self.name, self.domain = name, domain
        self._label = name, str(domain), "python", 0, None, "C"
        self._lock = fork_safe_lock()
        self._value: Any = 0
        if value is not None:
            self.set_value(value)

    def set_value(self, value: Any) -> None:
        """Set it."""
        number = self._number(value)
        with self._lock:
            self._value = number
            self._mark()

    def _number(self, value: Any) -> Any:
        try:
            return plain(value) + 0
        except TypeError:
            raise error(TypeError, f"Counter '{self.name}': a number is needed, got {value!r}") from None

    def _mark(self) -> None:
        t = now()
        recorder.mark(self._label, t, t, self._value)

    def increment(self, delta: Any = 1) -> None:
        """Add to it."""
        more = self._number(delta)
        with self._lock:
            self._value += more  # nothing is called in between, where a signal's handler might count, too
            self._mark()

    def decrement(self, delta: Any = 1) -> None:
        """Take from it."""
        self.increment(-plain(delta))

    def __iadd__(self, v: Any) -> Counter:
        self.increment(v)
        return self

    def __isub__(self, v: Any) -> Counter:
        self.decrement(v)
        return self

    def __str__(self) -> str:
        return self.name


class Marker:
    """A moment worth a mark.

    Parameters
    ----------
    domain : Domain
    name : str

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.profiler.Marker(mx.profiler.Domain("training"), "epoch").mark()
    """

    def __init__(self, domain: Domain, name: str) -> None:
        self.name, self.domain = name, domain
        self._label = name, f"{domain},instant_marker", "python", 0, None, "i"

    def mark(self, scope: str = "process") -> None:
        """Set the mark.

        Parameters
        ----------
        scope : {'process', 'thread', 'global', 'task', 'marker'}
            How far the line reaches in the picture.

        Raises
        ------
        MXNetError
            (also ValueError) for another scope.
        """
        if scope not in SCOPES:
            raise error(ValueError, f"Marker.mark: scope must be one of {', '.join(SCOPES)}, not {scope!r}")
        t = now()
        recorder.mark(self._label, t, t, scope)

    def __str__(self) -> str:
        return self.name


class scope(Scope):
    """A named part of a program, ``with mx.profiler.scope('encoder:'):``, shown around its calls and in a table.

    Parameters
    ----------
    name : str
    append_mode : bool
        Put the names of the scopes around it before the name.

    Examples
    --------
    >>> import mxcore as mx
    >>> with mx.profiler.scope("encoder:"):
    ...     x = mx.nd.ones((2, 2))
    """

    def __init__(self, name: str = "<unk>:", append_mode: bool = True) -> None:
        self._append = append_mode
        self._given = name if name.endswith(":") else name + ":"

    def _entered(self) -> Any:
        """Its name, and when it began, in the innermost block of the running thread."""
        entry, _ = without(state.entered, self)
        return None if entry is None else entry[1][0][-1]

    @property
    def name(self) -> str:
        """The name, in a block with those of the scopes around it."""
        entered = self._entered()
        return self._given if entered is None else entered[0]

    def _values(self) -> Iterable[tuple[dict[str, Any], str, Any]]:
        around = state.extra.get("profiler_scope")  # (name, when it began)
        name = (around[0] if around and self._append else "") + self._given
        return ((state.extra, "profiler_scope", (name, now())),)

    def _leave(self) -> None:
        entered = self._entered()
        super()._leave()
        if entered is not None:  # no interrupt before, of which this one is the second call
            name, begun = entered
            recorder.mark((name, "scope"), begun, now())

    def __str__(self) -> str:
        return self.name
