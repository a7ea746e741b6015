"""Memory objects of plans, and their calls of the library, prepared once for arrays that lie anywhere."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Collection, Sequence
from ctypes import c_int, c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np

from .keeping import NOTHING, Copy, Kept, Part, Settled
from .library import NoMemory, Refused
from .rooms import Room

if TYPE_CHECKING:
    from .plan import Plan

__all__ = ["Bound"]

Array = np.ndarray[Any, Any]


class _Arg(ctypes.Structure):
    _fields_ = [("arg", c_int), ("memory", c_void_p)]


class Bound:
    """A plan's memory objects, for one call at a time."""

    __slots__ = ("lib", "stream", "memories", "places", "between", "calls", "live", "base", "settled")

    def __init__(self, plan: Plan) -> None:
        lib = self.lib = plan.lib
        self.memories: list[int] = []
        #: Where each memory lies; in programs arrays stay where they are.
        self.places = [0] * len(plan.tensors)
        self.between = [t.offset for t in plan.tensors if not t.array]
        self.stream = lib.new("stream_create", lib.engine, 1)
        for t in plan.tensors:
            self.memories.append(lib.new("memory_create", t.desc.handle, lib.engine, None))
        self.calls: list[tuple[Any, ...]] = []
        for step in plan.steps:
            packed = (_Arg * len(step.args))(*[_Arg(arg, self.memories[t.index]) for arg, t in step.args])
            self.calls.append((step.primitive, self.stream, len(step.args), ctypes.cast(packed, c_void_p), packed))
        #: The arrays that are read or written where all that can be kept is.
        self.live = [i for i in range(len(plan.arrays)) if i not in plan.unread]
        self.base = 0
        #: What was kept at the last call, if that was all that can be.
        self.settled: Settled | None = None

    def run(self, plan: Plan, arrays: Sequence[Array], kept: Kept | None, room: Room) -> None:
        """Do it: where nothing but some arrays has moved since the last call, in a few steps of Python's."""
        base, settled = room.at(plan.scratch), NOTHING if kept is None else kept.settled
        if settled is None or settled is not self.settled or base != self.base:
            self._anew(plan, arrays, kept, base)
            return
        places = self.places
        for i in range(len(arrays)) if kept is None else self.live:
            place = self._address(plan, arrays, i)
            if place != places[i]:
                self.lib.memory_set_data_handle(self.memories[i], place)
                places[i] = place
        self._execute(plan, arrays, settled.done)

    @staticmethod
    def _address(plan: Plan, arrays: Sequence[Array], i: int) -> int:
        a = arrays[i]
        if a.nbytes != plan.arrays[i].desc.size:
            raise Refused(f"an array of {a.shape} {a.dtype} is not what this was made for")
        return int(a.__array_interface__["data"][0])

    def _anew(self, plan: Plan, arrays: Sequence[Array], kept: Kept | None, base: int) -> None:
        done: set[int] = set()
        held: list[tuple[Part, Copy]] = []
        fresh: list[tuple[int, Copy]] = []
        for i, part in enumerate(plan.parts) if kept is not None else ():
            copy = kept.copy(i)  # type: ignore[union-attr]
            if copy is not None:
                done.update(part.steps)
            elif (copy := kept.begin(i)) is not None:  # type: ignore[union-attr]
                fresh.append((i, copy))
            if copy is not None:
                held.append((part, copy))
        places = self.places.copy()
        # What nobody reads now may lie anywhere.
        for i in self.live if len(done) == len(plan.keeps) else range(len(arrays)):
            places[i] = self._address(plan, arrays, i)
        places[len(arrays) :] = [base + offset for offset in self.between]
        for part, copy in held:
            for t, place in zip(part.tensors, copy.places):
                places[t.index] = place
        for i, place in enumerate(places):
            if place != self.places[i]:
                self.place(i, place)
        self._execute(plan, arrays, done)
        for i, copy in fresh:
            kept.end(i, copy)  # type: ignore[union-attr]
        self.base, self.settled = base, NOTHING if kept is None else None
        if kept is not None and len(held) == len(plan.parts):
            self.settled = kept.settle(held)

    def place(self, i: int, address: int) -> None:
        """Let a tensor lie somewhere."""
        self.lib.memory_set_data_handle(self.memories[i], address)
        self.places[i] = address

    def move(self, first: int, base: int) -> None:
        """Let what lies between, of tensors from the `first` on, lie in memory that begins here."""
        if base != self.base:
            for i, offset in enumerate(self.between, first):
                self.place(i, base + offset)
            self.base = base

    def _execute(self, plan: Plan, arrays: Sequence[Array], done: Collection[int]) -> None:
        execute, places, tick = self.lib.primitive_execute, self.places, plan.tick
        if tick is not None:
            tick(-1)
        for i, (primitive, stream, count, args, _) in enumerate(self.calls):
            if i in done:
                continue
            if primitive:
                execute(primitive, stream, count, args)
            else:
                step = plan.steps[i]
                try:
                    step.function([places[t.index] for _, t in step.args], [arrays[a] for a in step.arrays])  # type: ignore[misc]
                except MemoryError as e:
                    raise NoMemory(f"no memory for a step of a plan: {e}") from e
            if tick is not None:
                tick(i)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # there was no memory for one, or an interrupt came
            for memory in self.memories:
                self.lib.memory_destroy(memory)
            self.lib.stream_destroy(self.stream)
