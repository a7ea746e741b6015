"""CUDA graphs: launches that were recorded, launched again as one."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from mxcore.plugin import Clerk, LaterKey, error

from .driver import Body, Driver, Opening
from .launching import Arguments, kernel
from .sources import MOST_KEYS
from .tables import Place

__all__ = ["Captured", "Keys", "Replay", "capture", "place_of"]

#: One capture at a time: a device has one stream for it. No signal's handler comes amid it, whose launches are no part.
#: Who leaves it by an exception waits to the end: what is recorded is bound as the program runs.
_clerk = Clerk("mxcore-capture", math.inf)
#: The keys of the capture that goes on.
_keys: Keys | None = None


class Keys:
    """Where recorded kernels find the keys of their random numbers: a kernel that each launch begins with writes them.

    They go by value, so that a launch has its own whatever is launched before it runs.

    Attributes
    ----------
    numbers : list of int
        Of the key in each place, among those that a replay is given.
    """

    def __init__(self, driver: Driver, index: int) -> None:
        self.numbers: list[int] = []
        self._driver, self._index = driver, index
        self._memory: Any = None

    def place(self, key: LaterKey) -> Place:
        """Where a key will be; RuntimeError if there is no room for it."""
        numbers, d = self.numbers, self._driver
        if key.number not in numbers:
            if len(numbers) == MOST_KEYS:
                raise error(RuntimeError, f"a recording has at most {MOST_KEYS} keys of random numbers")
            if self._memory is None:  # it belongs to the recording, as all that is made while one goes on
                self._memory = d.empty((MOST_KEYS, 3), np.dtype(np.uint64), self._index)
            numbers.append(key.number)
        return Place(d.address(self._memory) + 24 * numbers.index(key.number))

    @cached_property
    def opening(self) -> Opening | None:
        """The kernel that writes them, if there are any."""
        if not self.numbers:
            return None
        write = kernel("random", "write_keys", "float32", self._index)
        arguments = Arguments(write.formats)
        arguments.set(b"", 3 * len(self.numbers), self._driver.address(self._memory))
        return Opening(write.function, write.threads, arguments)

    def fill(self, given: Sequence[tuple[int, int, int]]) -> None:
        """Let the next launch have its keys out of those given."""
        if self.opening is not None:
            words = chain.from_iterable([given[i] for i in self.numbers])
            struct.pack_into(f"={3 * len(self.numbers)}Q", self.opening.arguments.memory, 0, *words)


class Replay:
    """A graph, launched by calling it with the arrays to copy from first, those to copy to at last, and keys.

    Parameters
    ----------
    driver : Driver
    graph : object
        The driver's.
    keys : Keys
    keep : object
        The memory that it works on.
    """

    __slots__ = ("_launch", "_graph", "_keys", "_keep")

    def __init__(self, driver: Driver, graph: Any, keys: Keys, keep: Any) -> None:
        self._launch, self._graph, self._keys, self._keep = driver.launch_graph, graph, keys, keep

    def __call__(
        self, sources: Sequence[Any], targets: Sequence[Any], keys: Sequence[tuple[int, int, int]] = ()
    ) -> None:
        self._keys.fill(keys)
        self._launch(self._graph, sources, targets)


class Captured:
    """What some calls launched.

    Attributes
    ----------
    launches : int
    """

    def __init__(self, driver: Driver, index: int, body: Body, keys: Keys) -> None:
        self._driver, self._index, self._body, self._keys = driver, index, body, keys
        self.launches = body.launches

    def replay(self, takes: Sequence[Any], gives: Sequence[Any]) -> Replay:
        """Make it ready to be launched, between copies into the arrays `takes` and out of the arrays `gives`."""
        graph = self._driver.graph(self._index, takes, self._body, gives, self._keys.opening)
        return Replay(self._driver, graph, self._keys, (takes, self._body, gives))


def capture(driver: Driver, index: int, calls: Sequence[Callable[[], Any]]) -> tuple[Captured, int]:
    """Record what calls launch; returns it with the number of calls that could be recorded."""
    found: tuple[Captured, int] = _clerk.do(_capture, driver, index, calls)
    return found


def _capture(driver: Driver, index: int, calls: Sequence[Callable[[], Any]]) -> tuple[Captured, int]:
    n = len(calls)
    while True:
        keys = Keys(driver, index)
        body, reached = _captured(driver, index, calls[:n], keys)
        if body is not None and reached == n:
            return Captured(driver, index, body, keys), n
        n = reached  # once more without the one that refused


def place_of(key: LaterKey) -> Place:
    """Where kernels that are recorded now will find a key."""
    if _keys is None:
        raise error(RuntimeError, "a key that comes later is for what is recorded")
    return _keys.place(key)


def _captured(driver: Driver, index: int, calls: Sequence[Callable[[], Any]], keys: Keys) -> tuple[Body | None, int]:
    global _keys
    body, reached = None, 0
    before, _keys = _keys, keys
    driver.begin_capture(index)
    try:
        for call in calls:
            call()
            reached += 1
    except Exception:  # whatever refuses; it runs by itself from now on, and may fail there
        pass
    finally:  # nothing must leave a thread that captures
        _keys = before
        try:
            body = driver.end_capture(index)
        except RuntimeError:
            if reached == len(calls):
                raise
    return body, reached
