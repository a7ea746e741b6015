"""Calls that launch a lot, recorded when they come again with the same arrays, and launched as one from then on.

What a training loop makes and drops in each step gets the same places from the pool of memory, so that the calls of its
steps are alike. A call is told by what it computes, and by where its arrays lie: a recording is launched for no others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from mxcore.plugin import Call, let_through

from .blas import allows_tf32
from .drivers import driver
from .graphs import Replay

__all__ = ["Repeated", "repeated"]

#: Recordings that are kept, each with the memory that it needs meanwhile; calls that are remembered.
_MOST, _SEEN = 32, 512
#: Recordings that may be made ahead of their use; each call that has come again pays for a part of another.
_AHEAD, _PART = 16, 0.25


class Repeated:
    """The calls of a process, of which it remembers the latest.

    There is no lock, for a signal handler may call in the middle of a call: each access of a dictionary is whole.

    Attributes
    ----------
    graphs : OrderedDict of Replay
        By call; the one that was launched last at the end.
    """

    def __init__(self) -> None:
        self.graphs: OrderedDict[Hashable, Replay] = OrderedDict()
        self._seen: OrderedDict[Hashable, bool] = OrderedDict()
        self._left: float = _AHEAD

    def __call__(self, k: Call, what: Hashable, arrays: Iterable[Any], run: Callable[[], None]) -> None:
        """Do what `run` does, which launches on the compute stream of a call's device and waits for nothing.

        Parameters
        ----------
        k : Call
        what : hashable
            Whatever decides what is launched, but the arrays.
        arrays : iterable of array or None
            All that it reads or writes, except what it allocates itself.
        run : callable
        """
        d, device, index = driver(), k.device, k.ctx.device_id
        if not device.captures or d.capturing():
            run()
            return
        address = d.address
        places = tuple([None if a is None else (address(a), a.shape, a.dtype.char) for a in arrays])
        call = index, what, allows_tf32(), places
        graph = self.graphs.pop(call, None)
        if graph is not None:
            self._earn()
        elif self._pays(call):
            graph = _recorded(device, index, run)
        if graph is None:
            run()
            return
        _remember(self.graphs, call, graph, _MOST)
        graph((), ())

    def _pays(self, call: Hashable) -> bool:
        """Whether to record a call: it has come before, and few recordings were for nothing."""
        known = self._seen.pop(call, False)
        _remember(self._seen, call, True, _SEEN)
        if not known:
            return False
        if self._left < 1:
            self._earn()
            return False
        self._left -= 1
        return True

    def _earn(self) -> None:
        self._left = min(self._left + _PART, _AHEAD)

    def clear(self) -> None:
        """Give back the memory of all recordings."""
        self.graphs.clear()
        self._seen.clear()
        self._left = _AHEAD


def _remember(where: OrderedDict[Hashable, Any], call: Hashable, what: Any, most: int) -> None:
    """Put something at the end, and let the oldest go."""
    where[call] = what
    while len(where) > most:
        where.popitem(last=False)


def _recorded(device: Any, index: int, run: Callable[[], None]) -> Replay | None:
    """A recording; None if something refused to be recorded, or there is no room for it."""
    try:
        captured, n = device.capture(index, [run])
        return captured.replay((), ()) if n else None
    except (MemoryError, RuntimeError) as e:  # what is wrong for good, the call itself will tell
        let_through(e)
        return None


#: Those of this process.
repeated = Repeated()
