"""Where the workers of a store wait for each other: at barriers, and at keys that all of them make."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from mxcore.base import MXNetError

from .peer import Peer, Refused, kind_of
from .roster import Roster

__all__ = ["Meetings", "Attendance"]

#: Of each worker that has come its question's number, since when it waits, and the question.
Attendance: TypeAlias = dict[Peer, tuple[int, float, dict[str, Any]]]


class _Meeting(NamedTuple):
    """What follows when all are there, and who is."""

    then: Callable[[Attendance], None]
    met: Attendance


class Meetings:
    """The meetings of a store. Who calls `end` or `dissolve` holds the lock of the roster.

    Parameters
    ----------
    roster : Roster
    deadline : float
        How long a worker may wait for the others, in seconds.
    """

    def __init__(self, roster: Roster, deadline: float) -> None:
        self._roster, self._deadline = roster, deadline
        self._meetings: dict[str, _Meeting] = {}

    def forget(self, peer: Peer) -> None:
        """A worker is gone that may wait somewhere."""
        for meeting in self._meetings.values():
            meeting.met.pop(peer, None)

    def meet(self, name: str, peer: Peer, asked: dict[str, Any], then: Callable[[Attendance], None]) -> None:
        """Go on with `then` when all workers have come here."""
        with self._roster.lock:
            meeting = self._meetings.setdefault(name, _Meeting(then, {}))
            if peer in meeting.met:
                raise Refused(f"{name}: rank {peer.rank} waits there already, in another thread", RuntimeError)
            meeting.met[peer] = asked["ask"], time.monotonic(), asked
            self.end()

    def end(self) -> None:
        """Go on with meetings that are complete, and end those that can never be."""
        roster = self._roster
        for name, (then, met) in list(self._meetings.items()):
            if not met:
                del self._meetings[name]
            elif len(met) == roster.waited_for:
                del self._meetings[name]
                try:
                    then(met)
                except Exception as e:
                    text = str(e) if isinstance(e, (Refused, MXNetError)) else repr(e)
                    self._disappoint(met, f"{name}: {text}", kind_of(e))
        if roster.sync and (roster.lost or roster.left):
            return self.dissolve(list(self._meetings), roster.loss())
        everywhere = {peer: name for name, meeting in self._meetings.items() for peer in meeting.met}
        if len(self._meetings) > 1 and len(everywhere) == len(roster.peers) == roster.workers:
            where = "; ".join(
                f"rank {p.rank} at {name}" for p, name in sorted(everywhere.items(), key=lambda i: i[0].rank)
            )
            self.dissolve(list(self._meetings), f"all workers wait for each other at different places: {where}")

    def dissolve(self, names: Iterable[str], text: str) -> None:
        """Tell those who wait why that comes to nothing."""
        for name in names:
            self._disappoint(self._meetings.pop(name).met, f"{name}: {text}")

    @staticmethod
    def _disappoint(met: Attendance, text: str, kind: str = "RuntimeError") -> None:
        for peer, (number, _, _) in met.items():
            peer.tell({"answer": number, "error": [kind, text]})

    def expire(self, now: float) -> None:
        """End what has waited longer than the deadline."""
        with self._roster.lock:
            for name, (_, met) in list(self._meetings.items()):
                if now - min(since for _, since, _ in met.values()) > self._deadline:
                    missing = [r for r in range(self._roster.workers) if r not in {p.rank for p in met}]
                    self.dissolve([name], f"waited {self._deadline:g} s for {self._roster.heard(missing, now)}")
