"""CUDA graphs: launches that were recorded, launched again as one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from .driver import Body, Driver

__all__ = ["Captured", "Replay", "capture"]

#: One capture at a time: a device has one stream for it. A signal handler may want one before another has begun.
_lock = threading.RLock()


class Replay:
    """A graph, launched by calling it with the arrays to copy from first, and those to copy to at last.

    Parameters
    ----------
    driver : Driver
    graph : object
        The driver's.
    keep : object
        The memory that it works on.
    """

    __slots__ = ("_launch", "_graph", "_keep")

    def __init__(self, driver: Driver, graph: Any, keep: Any) -> None:
        self._launch, self._graph, self._keep = driver.launch_graph, graph, keep

    def __call__(self, sources: Sequence[Any], targets: Sequence[Any]) -> None:
        self._launch(self._graph, sources, targets)


class Captured:
    """What some calls launched.

    Attributes
    ----------
    launches : int
    """

    def __init__(self, driver: Driver, index: int, body: Body) -> None:
        self._driver, self._index, self._body = driver, index, body
        self.launches = body.launches

    def replay(self, takes: Sequence[Any], gives: Sequence[Any]) -> Replay:
        """Make it ready to be launched, between copies into the arrays `takes` and out of the arrays `gives`."""
        graph = self._driver.graph(self._index, takes, self._body, gives)
        return Replay(self._driver, graph, (takes, self._body, gives))


def capture(driver: Driver, index: int, calls: Sequence[Callable[[], Any]]) -> tuple[Captured, int]:
    """Record what calls launch; returns it with the number of calls that could be recorded."""
    with _lock:
        n = len(calls)
        while True:
            body, reached = _captured(driver, index, calls[:n])
            if body is not None and reached == n:
                return Captured(driver, index, body), n
            n = reached  # once more without the one that refused


def _captured(driver: Driver, index: int, calls: Sequence[Callable[[], Any]]) -> tuple[Body | None, int]:
    body, reached = None, 0
    driver.begin_capture(index)
    try:
        for call in calls:
            call()
            reached += 1
    except Exception:  # whatever refuses; it runs by itself from now on, and may fail there
        pass
    finally:  # an interrupt, too, must not leave a thread that captures
        try:
            body = driver.end_capture(index)
        except RuntimeError:
            if reached == len(calls):
                raise
    return body, reached
