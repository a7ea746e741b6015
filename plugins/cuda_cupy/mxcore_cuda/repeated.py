"""Calls that launch a lot, recorded when they come again with the same arrays, and launched as one from then on.

What a training loop makes and drops in each step gets the same places from the pool of memory, so that the calls of its
steps are alike. A call is told by what it computes, and by where its arrays lie: a recording is launched for no others.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from mxcore.plugin import Call

from .blas import allows_tf32
from .drivers import driver
from .graphs import Replay

__all__ = ["Repeated", "repeated"]

#: Recordings that are kept, each with the memory that it needs meanwhile; calls that are remembered.
_MOST, _SEEN = 32, 512
#: Recordings that may be made ahead of their use; each launch of one pays for a part of another.
_AHEAD, _PART = 16, 0.25


class Repeated:
    """The calls of a process, of which it remembers the latest.

    Attributes
    ----------
    graphs : OrderedDict of Replay
        By call; the one that was launched last at the end.
    """

    def __init__(self) -> None:
        self.graphs: OrderedDict[Hashable, Replay] = OrderedDict()
        self._seen: OrderedDict[Hashable, None] = OrderedDict()
        self._lock = threading.Lock()
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
        with self._lock:
            graph = self.graphs.get(call)
            if graph is not None:
                self.graphs.move_to_end(call)
                self._left = min(self._left + _PART, _AHEAD)
            else:
                known = call in self._seen
                self._seen[call] = None
                self._seen.move_to_end(call)
                if len(self._seen) > _SEEN:
                    self._seen.popitem(last=False)
                if not known or self._left < 1:
                    known = False
                else:
                    self._left -= 1
        if graph is None and known:
            graph = self._recorded(device, index, call, run)
        if graph is None:
            run()
        else:
            graph((), ())

    def _recorded(self, device: Any, index: int, call: Hashable, run: Callable[[], None]) -> Replay | None:
        """A recording, which is kept; None if something refused to be recorded, or there is no room for it."""
        try:
            captured, n = device.capture(index, [run])
            if not n:
                return None
            graph: Replay = captured.replay((), ())
        except (MemoryError, RuntimeError):  # what is wrong for good, the call itself will tell
            return None
        with self._lock:
            self.graphs[call] = graph
            while len(self.graphs) > _MOST:
                self.graphs.popitem(last=False)
        return graph

    def clear(self) -> None:
        """Give back the memory of all recordings."""
        with self._lock:
            self.graphs.clear()
            self._seen.clear()


#: Those of this process.
repeated = Repeated()
