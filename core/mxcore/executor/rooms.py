"""Rooms: the planned memory of a compiled block, in which its programs for many shapes run one after another.

A block that is called with a hundred shapes has as many programs, which would hold a hundred times what one call needs
if each had memory of its own. Here a call takes an idle room, whatever ran there before: there is as much memory as the
calls that wait for their backward at the same time need.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from .._core.array import Storage
from .._core.context import Context
from .._interrupts import let_through
from .instance import Instance
from .program import Program
from .replayed import instantiate

__all__ = ["Room", "Rooms"]

#: A room that nobody has looked for while so many programs were made goes.
_PATIENCE = 24


class Room:
    """Planned memory for one call at a time; the engine orders its uses by `st`.

    Attributes
    ----------
    blocks : dict
        (context, dtype) -> array of one dimension.
    sizes : dict
        (context, dtype) -> its elements. It is replaced, never changed: threads look at rooms that another has taken.
    last : Instance or None
        What ran here last, and still holds its caller's arrays.
    """

    __slots__ = ("blocks", "sizes", "st", "last", "seen", "_tenants")

    def __init__(self, ctx: Context) -> None:
        self.blocks: dict[Any, Any] = {}
        self.sizes: dict[Any, int] = {}
        self.st = Storage(ctx)
        self.last: Instance | None = None
        #: How many programs had been made when it was looked for last.
        self.seen = 0
        #: Those who have an instance here: objects with a `program`, and `memories` by room.
        self._tenants: list[weakref.ref[Any]] = []

    @property
    def nbytes(self) -> int:
        """Bytes of its blocks."""
        return _nbytes(self.sizes)

    def fits(self, sizes: Mapping[Any, int]) -> bool:
        """Whether a program of these sizes can run here as it is."""
        return all(self.sizes.get(where, 0) >= n for where, n in sizes.items())

    def instance(self, tenant: Any) -> Instance:
        """An instance of a tenant's program in these blocks; those that are too small make place for larger ones."""
        program: Program = tenant.program
        small = {where: n for where, n in program.sizes.items() if self.sizes.get(where, 0) < n}
        if not small.keys().isdisjoint(self.blocks):
            self.leave()  # who is bound to them keeps them
        self.sizes = {where: n for where, n in self.sizes.items() if where not in small}
        self.blocks = {where: block for where, block in self.blocks.items() if where not in small}
        made = instantiate(program, self.blocks)
        self.blocks = self.blocks | {where: made.blocks[where] for where in small}
        self.sizes = self.sizes | small
        self._tenants.append(weakref.ref(tenant))
        return made

    def leave(self) -> None:
        """Let all instances here go."""
        self.last = None
        for ref in self._tenants:
            tenant = ref()
            if tenant is not None:
                tenant.memories.pop(self, None)
        self._tenants = []

    def too_large(self) -> bool:
        """Whether it holds more than twice what the programs need that are left here."""
        needs: dict[Any, int] = {}
        for ref in self._tenants:
            tenant = ref()
            for where, n in () if tenant is None else tenant.program.sizes.items():
                needs[where] = max(n, needs.get(where, 0))
        return self.nbytes > 2 * _nbytes(needs)

    def clear(self) -> None:
        """Let its memory go, and all instances in it."""
        self.leave()
        self.blocks, self.sizes = {}, {}


class Rooms:
    """The rooms of one compiled block on one context.

    Attributes
    ----------
    idle : list of Room
        What was used last comes last. Threads may take from its end.
    """

    __slots__ = ("idle", "_ctx", "_made")

    def __init__(self, ctx: Context) -> None:
        self.idle: list[Room] = []
        self._ctx, self._made = ctx, 0

    @property
    def nbytes(self) -> int:
        """Bytes of idle memory."""
        return sum(room.nbytes for room in self.idle[:])

    def take(self, memories: Mapping[Room, Any], sizes: Mapping[Any, int]) -> Room:
        """A room for a program: one that it knows, else the smallest in which it fits, the largest, or a new one."""
        while True:
            idle = self.idle[::-1]
            known = [room for room in idle if room in memories][:1]
            fitting = known or [room for room in idle if room.fits(sizes)]
            room = min(fitting, key=_size_of) if fitting else max(idle, key=_size_of, default=None)
            if room is None:
                room = Room(self._ctx)
            else:
                try:
                    self.idle.remove(room)
                except ValueError as e:
                    let_through(e)
                    continue  # another thread has taken it
            room.seen = self._made
            return room

    def tidy(self) -> None:
        """Before another program is made: drop rooms, or what of them is too much, that only forgotten ones used."""
        self._made += 1
        for room in self.idle[:]:
            late = self._made - room.seen > _PATIENCE
            if late or room.too_large():
                try:
                    self.idle.remove(room)
                except ValueError as e:
                    let_through(e)
                    continue  # another thread has taken it
                room.clear()
                if not late:
                    self.idle.insert(0, room)


def _size_of(room: Room) -> int:
    return room.nbytes


def _nbytes(sizes: Mapping[Any, int]) -> int:
    return sum(n * dtype.itemsize for (_, dtype), n in sizes.items())
