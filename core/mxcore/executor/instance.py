"""A program bound to arrays: memory of its own, and every step a call without arguments."""

from __future__ import annotations

import heapq
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter, length_hint
from typing import Any, NoReturn

import numpy as np

from .._core import call as calls
from .._core import rng, transfer
from .._core.call import OpContext, conform, ended, listed
from .._core.engine import engine
from .._core.errors import error, raise_in_op
from .._core.gradplan import plan_of
from .._core.graph import Node
from .._core.reverse import fitting
from ..crossing import moved
from ..ops.control.replay import repeatable
from . import direct
from .keep import Keep, keeps
from .passes.mirror import MIRRORED
from .program import Program, Step

__all__ = ["Instance"]

Call = Callable[[], Any]

#: A program that is given fewer bytes may hold on to them.
_SMALL = 1 << 18
#: Shapes of shapes that follow an array; those behind them are bound anew.
_DEEP = 50


@np.errstate(all="ignore")  # inf and NaN are results; as a decorator it costs half of what a with-block does
def _run(todo: Iterable[Call]) -> None:
    for call in todo:
        call()


def _draw_and_run(k: OpContext, call: Call) -> None:
    k.key, k._rng = rng.next_key(k.ctx), None
    call()


def _gone() -> None:
    """Stands for the call of a step that will be bound anew before it runs."""


def _is_whole(a: Any) -> bool:
    """Whether an array is NumPy's, and its elements lie one behind the other."""
    return a.__class__ is np.ndarray and a.flags.c_contiguous


def _copied(copy: Callable[[Any, Any], None], values: list[Any], targets: list[Any]) -> None:
    copy(values[0], targets[0])


class Instance:
    """A program with its memory, bound to the caller's arrays.

    Steps are bound beforehand: kernel, inputs and outputs are fixed, so that running is a loop over calls. When the
    caller brings another array, it takes the old one's place in the calls of kernels; other steps that touch it are
    bound again.

    Parameters
    ----------
    program : Program
    blocks : dict, optional
        Memory to use, where it is large enough: (context, dtype) -> array of one dimension.
    own : dict, optional
        Node -> parameters of stateful operators: what lives as long as the owner of this instance.

    Attributes
    ----------
    env : list
        Slot -> device array; loose slots hold None between runs.
    """

    def __init__(
        self, program: Program, blocks: Mapping[Any, Any] | None = None, own: dict[Node, Any] | None = None
    ) -> None:
        self.program = program
        self.own = {} if own is None else own
        self.env: list[Any] = [None] * program.n_slots
        self.targets: list[Any] = [None] * len(program.head_slots)
        self.blocks: dict[Any, Any] = {}
        for where, n in program.sizes.items():
            ctx, dtype = where
            block = None if blocks is None else blocks.get(where)
            if block is None or block.shape[0] < n:
                block = self._room(ctx, n, dtype)
            self.blocks[where] = block
        for slot, (where, first) in program.places.items():
            spec = program.specs[slot]
            self.env[slot] = self.blocks[where][first : first + spec.size].reshape(spec.shape)
        #: The training mode of the second part's gradient operators.
        self._mode = program.is_train
        self._ks: list[Any] = []
        self._stamps: dict[int, Any] = {}
        #: View steps that gave all elements of a dense array in their order: they do so for every other.
        self._reshaped: set[int] = set()
        for step in program.steps:
            k = step.k
            if step.random:
                k = OpContext(step.ctx, step.k.is_train, step.k.wanted)
                k.shapes = step.k.shapes
            elif step.head < 0 and not program.keeping.isdisjoint(step.ins) and keeps(step.bound.fn):
                k = OpContext(step.ctx, step.k.is_train, step.k.wanted)
                k.shapes, k.keep = step.k.shapes, Keep(self._stamps, step.ins)  # type: ignore[assignment]
            self._ks.append(k)
        #: Call contexts of what draws in both parts; not of a first part that draws as it runs, for loops and Python
        #: code in it draw keys, too.
        self._random = [
            [self._ks[t] if isinstance(t, int) else OpContext(t, program.is_train) for t in draws]
            if part or not program.sync
            else []
            for part, draws in enumerate(program.draws)
        ]
        self._calls: list[Call | None] = [None] * len(program.steps)
        #: The lists of inputs and outputs of each step that takes other arrays without being bound again, and where
        #: they hold a slot's, with the steps that must be bound again for it; the latter as far as was asked.
        self._lists: dict[int, tuple[list[Any], list[Any]]] = {}
        self._uses: dict[int, tuple[list[tuple[list[Any], int]], list[int]]] = {}
        self._loose = [s for s in range(len(program.variables), program.n_slots) if not program.specs[s].fixed]
        #: Steps to be bound, of both parts: all of them at first.
        self._dirty = set(program.part(0)), set(program.part(1))
        self._parts: list[list[Call]] = [[], []]
        #: Part -> step of each call; step -> place of its call.
        self._where: list[list[int]] = [[], []]
        self._place: dict[int, int] = {}
        #: Part -> who watches, and of each step the call and what was made of it for them.
        self._watched: list[tuple[Any, dict[int, tuple[Any, Any]]]] = [((), {}), ((), {})]

    def _room(self, ctx: Any, n: int, dtype: Any) -> Any:
        try:
            return ctx.device.empty((n,), dtype, ctx.device_id)
        except (MemoryError, ValueError, OverflowError) as e:
            size, step = max(
                (
                    (self.program.specs[s].size, t)
                    for t in self.program.steps
                    for s in t.outs
                    if s in self.program.places
                ),
                key=itemgetter(0),
            )
            raise error(
                MemoryError,
                f"no memory on {ctx} for the {n} {dtype} of a program; the largest result, "
                f"{size} of them, is that of operator {step.op and step.op.name}, node '{step.node.name}': {e}",
            ) from e

    # -- binding -----------------------------------------------------------------------------------------------
    def bind(
        self,
        part: int,
        values: Iterable[tuple[int, Any]],
        targets: Iterable[tuple[int, Any]] = (),
        train: bool | None = None,
    ) -> None:
        """Take the caller's arrays, and bind the steps of a part that they touch.

        Parameters
        ----------
        part : int
            0 or 1: the part that runs next. What belongs to the other one waits.
        values : iterable of (slot, device array)
            Variables.
        targets : iterable of (head, device array)
            Where heads are written; a loose head has none.
        train : bool, optional
            The training mode of gradient operators, for the second part; as it is unless told.
        """
        env, program, split = self.env, self.program, self.program.split
        if part and train not in (None, self._mode):
            self._change_mode()
        dirty = self._dirty
        for slot, v in values:
            if env[slot] is not v:
                for t in self._exchange(slot, v):
                    dirty[t >= split].add(t)
        for head, v in targets:
            if self.targets[head] is not v:
                for t in self._send(head, v):
                    dirty[t >= split].add(t)
        if not dirty[part]:
            return
        queue = sorted(dirty[part])
        moved = False
        try:
            while queue:
                t = heapq.heappop(queue)
                step, old = program.steps[t], self._calls[t]
                self._listed(t, None)
                slot = step.outs[0] if step.view else -1
                before = env[slot]
                step.ctx.activate()
                try:
                    new = self._build(t, step)
                except Exception as e:
                    if step.op is None:
                        raise
                    values_ = [env[s] for s in step.ins]
                    raise_in_op(e, step.op.name, step.p, values_, f"node '{step.node.name}'", step.bound.owner)
                if new is not None and step.random and self._draws(t):
                    new = partial(_draw_and_run, self._ks[t], new)
                moved |= (old is None) != (new is None)
                self._calls[t] = new
                if step.view and (view := env[slot]) is not before:
                    env[slot] = before
                    for u in self._exchange(slot, view):
                        if u > t and u not in dirty[u >= split]:
                            dirty[u >= split].add(u)
                            if (u >= split) == part:
                                heapq.heappush(queue, u)
                if old is not None and new is not None:
                    self._parts[part][self._place[t]] = ended(new, step.ctx) if engine.it.naive else new
            dirty[part].clear()
        finally:
            if moved:  # also where a step could not be bound: the others keep their places
                self._collect(part)

    def _send(self, head: int, v: Any) -> Sequence[int]:
        """Let a head be written to another array; returns the steps that must be bound again."""
        self.targets[head] = v
        slot = self.program.head_slots[head]
        if self.program.claimed.get(slot) == head:
            return self._exchange(slot, v)
        # Only the step that hands the value over; a value may go to thousands of heads.
        t = self.program.handed[head]
        lists = self._lists.get(t)
        if lists is None or v.__class__ is not lists[1][0].__class__:
            return (t,)
        lists[1][0] = v
        return ()

    def _exchange(self, slot: int, v: Any, depth: int = 0) -> list[int]:
        """Put another array where the steps look for it; returns the steps that must be bound again."""
        known = self._uses.get(slot)
        alike = v.__class__ is self.env[slot].__class__
        if known is None or not alike:
            positions, bind = [], []
            for t in self.program.users[slot]:
                if not alike or t not in self._lists:
                    bind.append(t)
                    continue
                step = self.program.steps[t]
                for slots, arrays in zip((step.ins, step.outs), self._lists[t]):
                    positions += [(arrays, i) for i, s in enumerate(slots) if s == slot]
            known = self._uses[slot] = positions, bind
        self.env[slot] = v
        for arrays, i in known[0]:
            arrays[i] = v
        return known[1] and self._followed(slot, known[1], v, depth)

    def _followed(self, slot: int, steps: list[int], v: Any, depth: int) -> list[int]:
        """Let other shapes of a slot's array follow it; returns the steps that must be bound again."""
        found = []
        for t in steps:
            step = self.program.steps[t]
            if step.view and step.outs[0] == slot:
                continue  # it has made this array
            if t in self._reshaped and self._calls[t] is None and depth < _DEEP:
                reads = [j for j, s in enumerate(step.ins) if s == slot and j not in step.p._sig.like]
                if not reads:
                    continue  # only its shape matters
                spec = self.program.specs[step.outs[0]]
                if reads == [0] and _is_whole(v) and v.size == spec.size:
                    found += self._exchange(step.outs[0], v.reshape(spec.shape), depth + 1)
                    continue
            found.append(t)
        return found

    def _listed(self, t: int, lists: tuple[list[Any], list[Any]] | None) -> None:
        """Note where a step that is bound anew has its arrays, if others may take their places."""
        if lists is None:
            if self._lists.pop(t, None) is None:
                return  # it was bound anew for each before, too
        else:
            self._lists[t] = lists
        step = self.program.steps[t]
        for s in (*step.ins, *step.outs):
            self._uses.pop(s, None)

    def _change_mode(self) -> None:
        """Bind gradient operators for the other training mode; what is computed again, and states, keep forward's."""
        self._mode = not self._mode
        for t in self.program.part(1):
            step, k = self.program.steps[t], self._ks[t]
            if k is None or step.back is not None or MIRRORED in step.node.attrs:
                continue
            if step.random:  # a context of this instance's own
                k.is_train = self._mode
                continue
            self._ks[t] = OpContext(step.ctx, self._mode, k.wanted)
            self._ks[t].shapes = k.shapes
            self._dirty[1].add(t)

    def _collect(self, part: int) -> None:
        """The calls of a part, without the steps that vanished."""
        todo: list[Call] = []
        where: list[int] = []
        ctx = None
        for t in self.program.part(part):
            call = self._calls[t]
            if call is None:
                continue
            here = self.program.steps[t].ctx
            if here is not ctx and here.device.async_:
                todo.append(partial(here.device.activate, here.device_id))
                where.append(t)
            ctx = here
            self._place[t] = len(todo)
            todo.append(ended(call, here) if engine.it.naive else call)
            where.append(t)
        self._parts[part], self._where[part] = todo, where

    def _build(self, t: int, step: Step) -> Call | None:
        """The call of one step; None if binding did all that there is to do."""
        env = self.env
        me = weakref.proxy(self)  # its memory goes with the last who runs it
        if step.head >= 0:
            return self._hand_over(t, step)
        op, bound, k, p = step.op, step.bound, self._ks[t], step.p
        if op.stateful:
            p = self.own.setdefault(step.node, p.with_dynamic({}))
        if step.back is not None:
            return lambda: me._state_backward(step, k)
        ins = [env[s] for s in step.ins]
        crossing: Callable[..., Call] | None = getattr(op, "crossing", None)
        if crossing is not None and not self.program.specs[step.outs[0]].fixed:
            return lambda: env.__setitem__(step.outs[0], moved(env[step.ins[0]], p.source, step.ctx))
        if (
            op.stateful
            or any(v is None for v in ins)
            or bound.densify
            or not all(s.fixed for s in bound.specs)
            or any(getattr(v, "stype", "default") != "default" for v in ins)
        ):
            return lambda: me._loose_call(step, k, p)
        if step.view:
            whole = _is_whole(ins[0])
            if whole and t in self._reshaped:
                env[step.outs[0]] = ins[0].reshape(bound.specs[0].shape)
                return None
            try:
                v = conform(k, listed(bound.fn(k, p, *ins), 1)[0], bound.specs[0], ins, share=True)
            except Exception as e:
                raise_in_op(e, op.name, p, ins, f"node '{step.node.name}'", bound.owner)
            if (v is ins[0] or k.device.shares(v, ins[0])) and getattr(getattr(v, "flags", None), "c_contiguous", True):
                env[step.outs[0]] = v
                if whole and _is_whole(v) and v.size == ins[0].size and v.dtype == ins[0].dtype:
                    self._reshaped.add(t)
                return None
            env[step.outs[0]] = k.xp.asarray(v).copy()  # rows that do not lie together: copied at every run
        outs = [env[s] for s in step.outs]
        if crossing is not None:
            return crossing(ins[0], p.source, outs[0], step.ctx)
        outs += [ins[i] for i in p._sig.mutates]
        fixed = step.view or bool(p._sig.mutates)
        again = self._calls[t] is not None and not fixed  # its arrays change: better to look them up than to bind anew
        call = direct.bind(bound, k, p, ins, outs, again)
        if not fixed and (call is None or direct.looks_up(call)):
            self._listed(t, (ins, outs))
        return bound.bind(k, p, ins, outs) if call is None else call

    def _hand_over(self, t: int, step: Step) -> Call | None:
        head, slot = step.head, step.ins[0]
        target, value, device = self.targets[head], self.env[slot], step.ctx.device
        if target is None or not self.program.specs[slot].fixed:
            return None  # the caller takes it from `env`
        if head in self.program.adds:
            add = getattr(device.xp, "add", None)
            if direct.takes_out(add):
                return partial(add, target, value, out=target)
            return lambda: device.copy(device.xp.add(target, value), target)
        lists = [value], [target]
        self._listed(t, lists)
        return partial(_copied, device.copy, *lists)

    def let_go(self, kept: Collection[int] = ()) -> None:
        """Drop the caller's arrays, but those `kept`, by their ids: another instance runs next, with others.

        Gradients and outputs of the last run may be more than all planned memory.
        """
        program, env = self.program, self.env
        if program.given < _SMALL:
            return
        ctx = program.ctx
        nothing = ctx.device.empty((0,), "float32", ctx.device_id)  # of the class of what takes its place
        stale: list[int] = []
        for slot in range(len(program.variables)):
            if env[slot] is not None and id(env[slot]) not in kept:
                stale += self._exchange(slot, nothing)
        for head, target in enumerate(self.targets):
            if target is not None:
                stale += self._send(head, nothing)
        seen: set[int] = set()
        while stale:
            t = stale.pop()
            if t in seen:
                continue
            seen.add(t)
            step, part = program.steps[t], int(t >= program.split)
            self._dirty[part].add(t)
            if step.view:
                stale += self._exchange(step.outs[0], nothing)
            if self._calls[t] is not None and t in self._place:
                self._calls[t] = self._parts[part][self._place[t]] = _gone

    # -- running -----------------------------------------------------------------------------------------------
    def note(self, stamps: Mapping[int, Any]) -> None:
        """Take the stamps of the variables that the next run reads (:mod:`.keep`)."""
        self._stamps.clear()
        self._stamps.update(stamps)

    def keys(self, part: int) -> list[Any]:
        """Draw the keys of a part's random steps; the caller does so, in program order."""
        return [rng.next_key(k.ctx) for k in self._random[part]]

    def _draws(self, t: int) -> bool:
        """Whether a random step draws its key as it runs."""
        return self.program.sync and t < self.program.split

    def run(self, part: int, keys: list[Any], where: str = "") -> None:
        """Run the first part (0) or the second (1); errors name operator, node and, from a worker, the call.

        A part that draws as it runs adds what it draws to empty `keys`, and draws the same if they are given again.
        """
        self._give(part, keys)
        todo = self._parts[part] if not calls.observers else self._observed(part)
        rest = iter(todo)
        try:
            if part or not self.program.sync:
                _run(rest)
            else:
                with repeatable(keys):
                    _run(rest)
        except Exception as e:
            self._raise_in(self._where[part][len(todo) - length_hint(rest) - 1], e, where)

    def _give(self, part: int, keys: Iterable[Any]) -> None:
        """Give a part's random steps their keys."""
        for k, key in zip(self._random[part], keys):
            k.key, k._rng = key, None

    def _raise_in(self, t: int, e: Exception, where: str) -> NoReturn:
        """Raise what failed in a step, naming it."""
        step = self.program.steps[t]
        if t < 0 or step.op is None:
            raise e
        ins = [self.env[s] for s in step.ins]
        raise_in_op(e, step.op.name, step.p, ins, f"node '{step.node.name}'{where}", step.bound.owner)

    def _observed(self, part: int) -> list[Call]:
        """The calls of a part as who watches wants them; what was bound so before is not bound anew."""
        steps, before = self.program.steps, self._watched[part]
        if before[0] is not calls.observers:
            before = self._watched[part] = calls.observers, {}
        found = []
        for call, t in zip(self._parts[part], self._where[part]):
            step, (old, new) = steps[t], before[1].get(t, (None, None))
            if old is not call:
                name = step.op.name if step.op is not None else "copy to output"
                new = call
                if getattr(call, "func", None) != step.ctx.device.activate:
                    new = calls.observed(
                        call, name, step.ctx, (), step.bound.specs if step.bound else (), step.node.name
                    )
                    before[1][t] = call, new
            found.append(new)
        return found

    def forget(self) -> None:
        """Drop loose values and states; those of fixed places stay until the next run."""
        for s in self._loose:
            self.env[s] = None

    def loose(self, head: int) -> Any:
        """The value of a head whose shape or storage type is known only now, for the caller to keep."""
        slot, before = self.program.head_slots[head], self.program.head_slots[:head]
        v = self.env[slot]
        # A sparse input belongs to who gave it, and may be moved in its own memory.
        given = getattr(v, "stype", "default") != "default" and slot in self.program.variables.values()
        return v.copy() if given or slot in before else v

    def _loose_call(self, step: Step, k: Any, p: Any) -> None:
        """A step whose inputs or outputs are known only now, or that keeps a state."""
        env = self.env
        datas = [env[s] for s in step.ins]
        # Views may share where nobody but the program sees them.
        share = step.op.view and self.program.head_slots.count(step.outs[0]) == 0
        values, state = step.bound.run(k, p, datas, None, share)
        if step.state >= 0:
            env[step.state] = state
        self._store(step, values)
        for i, v in zip(p._sig.mutates, values[len(step.outs) :]):
            if v is not None and v is not datas[i]:
                k.device.copy(v, datas[i])

    def _state_backward(self, step: Step, k: Any) -> None:
        forward = step.node.forward
        assert forward is not None
        n_out, p = forward.n_out, self.own.get(forward, forward.params)
        wrap = [transfer.wrap(self.env[s], step.ctx) for s in step.ins]
        grads = step.back.backward_rule(k, p, self.env[step.state], wrap[:n_out], wrap[n_out:], {})
        if (plan := plan_of(step.back)).checked:
            program = self.program
            read = [len(program.users[s]) > 1 or s in program.head_slots for s in step.outs]  # by others than this
            grads = [g if wanted else None for g, wanted in zip(fitting(plan, p, grads, wrap[n_out:], read), read)]
        self._store(step, [None if g is None else g._data for g in grads])

    def _store(self, step: Step, values: Sequence[Any]) -> None:
        """Put results where they belong: into their places, or into loose slots."""
        env, device = self.env, step.ctx.device
        for s, v in zip(step.outs, values):
            place = env[s] if self.program.specs[s].fixed else None
            if v is None and place is not None:
                place[...] = 0
            elif place is None or v is None or getattr(v, "stype", "default") != "default":
                env[s] = v
            elif v is not place:
                device.copy(v, place)
