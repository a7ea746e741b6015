"""Weights that moved together, bound to their kernels: what moves them again looks for little beside their numbers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter, is_
from typing import Any

from .._core import tables
from .._core.array import Sparse, Storage
from .._core.call import eager_call, op_context
from .._core.errors import in_a_line, raise_in_op, warn
from .._core.kernels import Spec
from .._core.op import Op
from .._core.params import Params
from .._core.state import state as mode
from .._core.stream import begin, commit, heavy
from .._locks import fork_safe_lock, held, locked, locks_of, outermost
from ..ndarray import NDArray
from ._fused import MOST, FusedOptimizer, Group, Step, disjoint, many_of, together

__all__ = ["Standing"]

_DATA, _STORAGE = attrgetter("_data"), attrgetter("_st")
_MISSING = object()
#: Of numbers that stay as they are.
_PLAIN = {int, float, bool, str, type(None)}


class _Call:
    """A call of an operator for some of the weights.

    Attributes
    ----------
    name, op, places, params
        As of the group; the parameters are its own, and their numbers are exchanged.
    ins : list of array
        Gradients among them are exchanged.
    width : int
        Arrays of one weight.
    many : bool
        Whether the operator takes lists of rates, as one for many does.
    rates : tuple of str
        What it calls them.
    whole : bool
        Whether it moves all weights, in their order.
    run : callable
    owner : str
        Whose kernel it is.
    ready : bool
        Whether the kernel looks at its arrays beforehand.
    """

    __slots__ = (
        *("name", "op", "places", "params", "ins", "width", "many", "rates", "whole"),
        *("run", "owner", "ready", "work"),
    )

    def __init__(self, group: Group, steps: Sequence[Step]) -> None:
        from ..executor.direct import bind  # light imports: whoever trains has it

        self.name: str
        self.op: Op
        self.places: list[int]
        self.params: Params
        self.name, self.op, self.places, self.params = group
        self.many = "lrs" in self.op.parser.dynamic
        self.rates = ("lrs", "wds") if self.many else ("lr", "wd")
        if not {*self.rates} <= self.op.parser.dynamic:
            raise LookupError
        self.whole = self.places == [*range(len(steps))]
        some = [steps[i] for i in group.places]
        ins = self.ins = [a._data for step in some for a in step.arrays]
        weights, ctx, p = [step.weight._data for step in some], some[0].weight._st.ctx, self.params
        bound = eager_call(self.op, p, ctx.device, [Spec(a.shape, a.dtype) for a in ins])
        if (
            not bound.out
            or bound.sync
            or [(s.shape, s.dtype) for s in bound.specs] != [(w.shape, w.dtype) for w in weights]
        ):
            raise LookupError
        self.owner, self.work, self.width = bound.owner, bound.work, len(some[0].arrays)
        outs = weights + [ins[i] for i in p._sig.mutates]
        k = op_context(ctx, False)
        run: Callable[[], Any] | None = None
        try:
            run = bind(bound, k, p, ins, outs)
        except Exception as e:  # the weights have moved by then
            warn(
                f"operator {self.op.name}: what the kernel of {bound.owner} makes of its arrays beforehand failed: "
                f"{in_a_line(e)}; it is called without"
            )
        self.ready = run is not None
        self.run = bound.bind(k, p, ins, outs) if run is None else run

    def some(self, values: Sequence[Any]) -> Sequence[Any]:
        """Those of its weights among the values of all."""
        return values if self.whole else [values[i] for i in self.places]

    def grads(self, values: Sequence[Any]) -> None:
        """Exchange the gradients; given are those of all weights."""
        if self.many:
            self.ins[1 :: self.width] = self.some(values)
        else:
            self.ins[1] = values[self.places[0]]

    def no_grads(self) -> None:
        """Let go of them."""
        self.ins[1 :: self.width] = [None] * len(self.places)

    def move(self, grads: Sequence[Any]) -> None:
        """Move its weights by their gradients; given are those of all."""
        try:
            self.grads(grads)
            self.run()
        except Exception as e:
            raise_in_op(e, self.op.name, self.params, self.ins, owner=self.owner)
        finally:
            self.no_grads()  # they are of one step

    def move_at(self, *rates: Sequence[Any]) -> None:
        """Exchange the rates and decays; given are those of all weights."""
        values = self.params.__dict__
        for name, each in zip(self.rates, rates):
            value: Any = tuple(self.some(each)) if self.many else each[self.places[0]]
            plain = value.__class__ is float or self.many and {*map(type, value)} == {float}
            values[name] = value if plain else self.op.params[name].parse(value)

    def renumber(self, numbers: dict[str, Any]) -> None:
        """Take other numbers that weights have in common."""
        more = {n: getattr(self.params, n) for n in self.rates}
        if self.many:
            more["num_weights"] = len(self.places)
            numbers = {n: v for n, v in numbers.items() if n != "lazy_update"}
        self.params.__dict__.update(self.op.parse({**numbers, **more}).__dict__)


def _alone(i: int, step: Step) -> Group:
    """A step that one operator makes for one weight."""
    if not step.operator:
        raise LookupError
    op = tables.ops.get(step.operator)
    return Group(step.name, op, [i], op.parse(dict(step.numbers)))


def _calls(device: Any, steps: Sequence[Step], places: Sequence[int]) -> list[_Call]:
    """Steps that were made one by one: together from now on, where a kernel for many finds all ready at each call."""
    several: dict[Any, list[int]] = {}
    found = []
    for i in places:
        # On a device with a queue they were made together as far as they can be.
        alike = None if device.async_ else many_of(device, steps[i])
        if alike is None:
            found.append(_Call(_alone(i, steps[i]), steps))
        else:
            several.setdefault(alike, []).append(i)
    for (name, *_), some in several.items():
        op = tables.ops.get(name)
        for at in range(0, len(some), MOST):
            part = some[at : at + MOST]
            ones = [_Call(_alone(i, steps[i]), steps) for i in part]
            if len(part) > 1:
                all_ = _Call(Group(ones[0].name, op, part, together(op, [steps[i] for i in part])), steps)
                if all_.ready and {one.owner for one in ones} == {all_.owner}:  # else somebody has better ones
                    ones = [all_]
            found += ones
    return found


class Standing:
    """Weights that moved together, with all that is the same whenever they do; one thread at a time uses it.

    It holds as long as indices, states, weights and optimizer are the same ones; gradients may be other arrays of their
    kind at each step, as a backward hands over its own.

    Parameters
    ----------
    optimizer : FusedOptimizer
    index : sequence
    weights : sequence of NDArray
    held : list
        The state of each.
    steps, groups : list
        What :func:`~mxcore.optimizer._fused.move` made of them.

    Attributes
    ----------
    used : bool
        Whether it has ever served.
    tries : int
        How many before it did not.
    busy : bool
        Whether it is at it.

    Raises
    ------
    LookupError
        If the step cannot be made again like this.
    """

    used, tries = False, 0

    def __init__(
        self,
        optimizer: FusedOptimizer,
        index: Sequence[Any],
        weights: Sequence[NDArray],
        held: Sequence[Any],
        steps: Sequence[Step],
        groups: Sequence[Group],
    ) -> None:
        self.made = tables.generation[0]
        self.optimizer = weakref.ref(optimizer)
        ctx = self.ctx = steps[0].weight._st.ctx
        if (
            mode.record
            or any(isinstance(a._data, Sparse) or a._st.ctx is not ctx for step in steps for a in step.arrays)
            or list in map(type, held)  # it may hold other arrays later
            or not disjoint(ctx.device, steps)
        ):
            raise LookupError
        inner = [optimizer._inner(state, step.master is not None) for step, state in zip(steps, held)]
        self.index, self.held = list(index), list(held)
        #: Each operator, and a state of which the optimizer says so.
        self.operators = {step.name: state for step, state in zip(steps, inner)}
        #: Operator -> what all weights have in common.
        self.numbers: dict[str, dict[str, Any]] = {}
        for step in steps:
            numbers = {n: v for n, v in step.numbers.items() if n not in ("lr", "wd")}
            if self.numbers.setdefault(step.name, numbers) != numbers:
                raise LookupError
        made = {i for group in groups for i in group.places}
        others = [i for i in range(len(steps)) if i not in made]
        self.calls = [_Call(group, steps) for group in groups] + _calls(ctx.device, steps, others)
        #: The arrays of the states, and the master copies.
        self.kept = [a for step in steps for a in step.arrays[2:]]
        self.kinds = [(d.__class__, d.shape, d.dtype) for d in (step.grad._data for step in steps)]
        self._object_lock, self._queued, self.busy = fork_safe_lock(), ctx.device.async_, False
        self.work = sum(call.work for call in self.calls)
        # The calls hold these arrays, so that no other can have their ids; whoever drops a weight gets the memory back.
        self._ids = [id(a._data) for a in (*weights, *self.kept)]
        self._written = {*self._ids}
        gone = self.calls.clear
        self._refs = [weakref.ref(w, lambda ref: gone()) for w in weights]
        self._grads = [weakref.ref(step.grad._data) for step in steps]
        for call in self.calls:
            call.no_grads()
        #: Rates and decays that the calls have.
        self._rates: Any = None

    @locked
    @outermost
    def step(
        self,
        optimizer: FusedOptimizer,
        states: dict[Any, Any],
        index: Sequence[Any],
        weights: Sequence[NDArray],
        grads: Sequence[NDArray],
    ) -> bool:
        """Move the weights if all is as it was; False, with nothing done, otherwise."""
        if not len(index) == len(weights) == len(grads) == len(self.index):
            return False
        # There may be hundreds of arrays: what looks at each runs in the interpreter's own loops.
        moving = [*weights, *self.kept]
        datas, writes = [*map(_DATA, moving)], [*map(_STORAGE, moving)]
        if (
            not self.calls
            or mode.record
            or self.index != index
            or self.made != tables.generation[0]
            or self.optimizer() is not optimizer
            or not all(map(is_, map(states.get, index, repeat(_MISSING)), self.held))
            or [*map(id, datas)] != self._ids
            or not optimizer._is_told
            or any(optimizer._operator(state)[0] != name for name, state in self.operators.items())
        ):
            return False
        reads = [*map(_STORAGE, grads)]
        if not self._queued and (
            not all(map(self.ctx.device.writable, datas)) or begin(reads, writes) or heavy(self.work)
        ):
            return False
        news = [*map(_DATA, grads)]
        for i, (new, ref) in enumerate(zip(news, self._grads)):
            if new is not ref():
                if not self._fits(i, new, grads[i]):
                    return False
                self._grads[i] = weakref.ref(new)
        counts, first = optimizer._index_update_count, optimizer.begin_num_update
        before = {counts.get(i, first) for i in index}
        if len(before) > 1:
            return False  # a schedule may give each another rate
        optimizer._update_count(index)
        t = before.pop() + 1
        lrs, wds = optimizer._get_lrs(index), optimizer._get_wds(index)
        if {*map(type, lrs)} == {float}:
            each = {lr: optimizer._rate(lr, t) for lr in {*lrs}}
            lrs = [each[lr] for lr in lrs]
        else:
            lrs = [optimizer._rate(lr, t) for lr in lrs]
        rates = lrs, wds
        if {*map(type, lrs), *map(type, wds)} != {float} or rates != self._rates:
            self._rates = None  # until all have them
            for call in self.calls:
                call.move_at(lrs, wds)
            self._rates = rates
        for name, old in self.numbers.items():
            numbers = optimizer._numbers(name, t)
            # The last batch is smaller, a scale of losses moves; what is in an array may have changed where it lies.
            if not _PLAIN.issuperset(map(type, numbers.values())) or numbers != old:
                self.numbers[name] = {}  # until all have them: a number may be refused, an interrupt may come
                for call in self.calls:
                    if call.name == name:
                        call.renumber(numbers)
                self.numbers[name] = numbers
        self._run(reads, writes, news)
        self.used = True
        return True

    def _fits(self, i: int, new: Any, grad: NDArray) -> bool:
        """Whether another gradient is an array of the kind of the last, over memory of its own."""
        return (
            (new.__class__, new.shape, new.dtype) == self.kinds[i]
            and grad._st.ctx is self.ctx
            and grad._st.views == 0  # else some weight may lie there
            and self.ctx.device.owns(new)
            and id(new) not in self._written
        )

    def _run(self, reads: Sequence[Storage], writes: Sequence[Storage], news: Sequence[Any]) -> None:
        begin(reads, writes, now=True)
        self.ctx.activate()
        commit(writes)
        for call in self.calls:
            if self._queued:  # it has an order of its own
                call.move(news)
            else:  # no two threads write to one at once
                held(locks_of(writes[i] for i in call.places), call.move, (news,))
        commit(writes)
