"""Programs that a device replays: what their steps launch is recorded once and launched at once from then on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from .._core import call as calls
from .._core.engine import engine
from .._core.graph import Node
from ..philox import LaterKey
from .instance import Instance
from .program import Program

__all__ = ["Replayed", "instantiate"]

#: A part is recorded at the run after so many, which have shown what stays the same and have compiled all kernels.
_BEFORE = 2
#: Bytes that a device copies in the time that it takes to launch a step: what stand-ins may cost for each one saved.
_COPIED = 4 << 20


def instantiate(
    program: Program, blocks: Mapping[Any, Any] | None = None, own: dict[Node, Any] | None = None
) -> Instance:
    """A program with its memory, replayed if its device can do that and nothing in it is known only by running."""
    device = program.ctx.device
    replays = (
        device.captures
        and program.share
        and not program.sync
        and all(step.ctx is program.ctx for step in program.steps)
        and all(spec.fixed for spec in program.specs)
    )
    return (Replayed if replays else Instance)(program, blocks, own)


class _Recording(NamedTuple):
    """What a part of a program is, once recorded.

    Attributes
    ----------
    pieces : list of callable or int
        Replays, and steps that could not be recorded.
    mixed : bool
        Whether there are such steps.
    fixed : list of (int, array)
        Arrays of the caller, by their keys, that are part of the recording.
    takes, gives : list of int
        Keys of those that are copied in before, and out after.
    """

    pieces: list[Any]
    mixed: bool
    fixed: list[tuple[int, Any]]
    takes: list[int]
    gives: list[int]


class Replayed(Instance):
    """An instance whose parts are recorded when they have run twice, and replayed from then on.

    The addresses of memory are part of a recording. Arrays of the caller that stay the same (weights) are recorded as
    they are; those that change (inputs, outputs, gradients) have a stand-in, which is copied from or to the caller's in
    the same launch. If one changes that had stayed the same, the program is recorded anew; the second time with a
    stand-in for it.

    Random numbers are recorded as draws of keys to come; each replay is given those of its run. What the device cannot
    record runs between the recorded pieces. A part whose stand-ins would cost more than its launches is not recorded.
    """

    # A key is the slot of a variable, or ~ of the number of a head.

    def __init__(
        self, program: Program, blocks: Mapping[Any, Any] | None = None, own: dict[Node, Any] | None = None
    ) -> None:
        super().__init__(program, blocks, own)
        self._given: dict[int, Any] = {}
        self._stand_ins: dict[int, Any] = {}
        self._moving: set[int] = set()
        self._recordings: list[_Recording | None] = [None, None]
        self._current: list[_Recording | None] = [None, None]
        self._runs = [0, 0]
        #: Whether nothing is gained by recordings, for each part.
        self._useless = [False, False]
        #: What stayed the same while it was watched, and was exchanged later.
        self._exchanged: set[int] = set()
        #: Whether steps are bound to the stand-ins, or to arrays that have been exchanged since.
        self._stood_in = self._behind = False
        #: What has no stand-in: variables that steps write, and heads that they add to.
        self._own_place = {*(~head for head in program.adds), *program.written[0], *program.written[1]}

    # -- binding -------------------------------------------------------------------------------------------------------
    def bind(
        self,
        part: int,
        values: Iterable[tuple[int, Any]],
        targets: Iterable[tuple[int, Any]] = (),
        train: bool | None = None,
    ) -> None:
        """As an instance does; the arrays wait for the replay where there is one."""
        if part and train not in (None, self._mode):
            self._change_mode()
        given, new = self._given, dict(values)
        new.update((~head, v) for head, v in targets)
        changed = [key for key, v in new.items() if given.get(key) is not v]
        given.update(new)
        self._current[part] = None
        if not calls.observers and not engine.it.naive and not self._useless[part]:
            found = self._recordings[part]
            if found is None:
                self._runs[part] += 1
                if self._runs[part] > 1:
                    self._moving.update(key for key in changed if key not in self._own_place)
                if self._runs[part] > _BEFORE:
                    found = self._recordings[part] = self._record(part)
            if found is not None and self._fits(found):
                self._current[part] = found
                if found.mixed and not self._stood_in:
                    self._show(part, True)
                self._behind = True
                return
        if self._stood_in or self._behind:
            self._show(part, False)
        else:
            super().bind(part, _values(new), _targets(new))

    def _fits(self, found: _Recording) -> bool:
        """Whether a recording is of the arrays given; if not, maybe another will be made."""
        given = self._given
        others = [key for key, a in found.fixed if given[key] is not a]
        if not others:
            return all(_dense(given[key]) for key in (*found.takes, *found.gives))
        later = {key for key in others if key not in self._own_place}
        if later:
            self._moving |= later & self._exchanged
            self._exchanged |= later
            self._recordings, self._runs = [None, None], [1, 1]
        return False

    def _show(self, part: int, stand_ins: bool) -> None:
        """Bind all steps to the stand-ins, or to the caller's arrays."""
        self._stood_in, self._behind = stand_ins, False
        shown = {**self._given, **self._stand_ins} if stand_ins else self._given
        for p in range(part + 1):  # the second part reads what views of the first show
            super().bind(p, _values(shown), _targets(shown))

    def _change_mode(self) -> None:
        self._recordings[1], self._runs[1] = None, 0
        super()._change_mode()

    def let_go(self, kept: Collection[int] = ()) -> None:
        """As an instance does; what a recording is made of, and stand-ins, stay."""
        given = self._given
        for key in [key for key in given if key in self._moving and id(given[key]) not in kept]:
            del given[key]
        if not self._stood_in:
            super().let_go(kept)

    # -- recording -----------------------------------------------------------------------------------------------------
    def _record(self, part: int) -> _Recording | None:
        program = self.program
        device, index = program.ctx.device, program.ctx.device_id
        reads, writes = self._keys(part)
        takes, gives = ([key for key in keys if key in self._moving] for keys in (reads, writes))
        launches = sum(self._calls[t] is not None for t in program.part(part))
        if sum(self._given[key].nbytes for key in (*takes, *gives)) > (launches - 1) * _COPIED:
            self._useless[part] = True
            return None
        try:
            for key in self._moving:
                if key in self._given and key not in self._stand_ins:
                    a = self._given[key]
                    self._stand_ins[key] = device.empty(a.shape, a.dtype, index)
            self._show(part, True)
        except MemoryError:
            self._useless[part] = True
            return None
        recordable = self._recordable(part)
        found: list[Any] = []
        todo = [*recordable]
        while todo:
            captured, n = device.capture(index, [recordable[t] for t in todo])
            found += [captured, *todo[n : n + 1]]
            todo = todo[n + 1 :]
        if not any(what.launches for what in found if what.__class__ is not int):
            self._useless[part] = True
            return None
        if found[-1].__class__ is int:
            found.append(device.capture(index, [])[0])
        into, out_of = ([self._stand_ins[key] for key in keys] for keys in (takes, gives))
        last = len(found) - 1
        pieces = [
            what if what.__class__ is int else what.replay(into if i == 0 else [], out_of if i == last else [])
            for i, what in enumerate(found)
        ]
        fixed = [(key, self._given[key]) for key in (*reads, *writes) if key not in self._moving]
        return _Recording(pieces, any(what.__class__ is int for what in found), fixed, takes, gives)

    def _recordable(self, part: int) -> dict[int, Callable[[], Any]]:
        """The calls of a part by their steps; those that draw random numbers do so of keys to come."""
        found = {t: call for t in self.program.part(part) if (call := self._calls[t]) is not None}
        for i, t in enumerate(self.program.draws[part]):
            if t in found:
                found[t] = partial(_draw_later, self._ks[t], LaterKey(i), found[t])
        return found

    def _keys(self, part: int) -> tuple[list[int], list[int]]:
        """What a part reads and writes of the caller's: variables and outputs of the first part, and heads."""
        program, steps = self.program, self.program.part(part)
        read = {root for s, root in enumerate(program.roots) if any(t in steps for t in program.users[s])}
        mine = [~h for h in range(len(program.head_slots)) if (h >= program.n_first) == bool(part)]
        outputs = {slot: ~h for slot, h in program.claimed.items() if h < program.n_first} if part else {}
        reads = [outputs.get(slot, slot) for slot in (*range(len(program.variables)), *outputs) if slot in read]
        return ([key for key in reads if key in self._given], [key for key in mine if key in self._given])

    # -- running -------------------------------------------------------------------------------------------------------
    def run(self, part: int, keys: list[Any], where: str = "") -> None:
        """As an instance does."""
        found = self._current[part]
        if found is None:
            super().run(part, keys, where)
            return
        self._give(part, keys)
        given = self._given
        sources, targets = [given[key] for key in found.takes], [given[key] for key in found.gives]
        last = len(found.pieces) - 1
        t = -1
        try:
            for i, what in enumerate(found.pieces):
                if what.__class__ is not int:
                    what(sources if i == 0 else (), targets if i == last else (), keys)
                else:
                    t = what
                    call = self._calls[t]
                    if call is not None:
                        call()
                    t = -1
        except Exception as e:
            self._raise_in(t, e, where)


def _draw_later(k: Any, key: LaterKey, call: Callable[[], Any]) -> None:
    """Run a call that draws; what an attempt at recording drew before is forgotten."""
    k.key, k._rng = key, None
    call()


def _values(given: Mapping[int, Any]) -> list[tuple[int, Any]]:
    """The variables among arrays by key."""
    return [(key, a) for key, a in given.items() if key >= 0]


def _targets(given: Mapping[int, Any]) -> list[tuple[int, Any]]:
    """The heads among arrays by key."""
    return [(~key, a) for key, a in given.items() if key < 0]


def _dense(a: Any) -> bool:
    return bool(a.flags.c_contiguous)
