"""Optimizers whose step is one fused operator: they tell it as data, so that many weights can move in one launch."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any, NamedTuple

from .. import ndarray as nd
from .._core import tables
from .._core.array import Sparse
from .._core.call import op_context
from .._core.dispatch import bound_for, invoke
from .._core.errors import raise_in_op
from .._core.op import Op
from .._core.params import Params
from .._core.state import state as mode
from .._core.stream import begin, commit
from ..ndarray import NDArray
from ._bound import update
from ._steps import state_and_master
from .base import Optimizer

__all__ = ["FusedOptimizer", "Seen", "move"]

#: Weights of one call at most: as many outputs of an operator may be its inputs.
MOST = 256


class Step(NamedTuple):
    """One step of one weight.

    Attributes
    ----------
    name : str
        The operator, for a weight without a master copy.
    weight, grad : NDArray
    states : tuple of NDArray
    numbers : dict of str to number
        Parameters of the operator.
    master : NDArray or None
        The float32 copy that moves.
    mixed : str
        The operator that takes the master copy, too, if there is one.
    """

    name: str
    weight: NDArray
    grad: NDArray
    states: Sequence[NDArray]
    numbers: dict[str, Any]
    master: NDArray | None = None
    mixed: str = ""

    @property
    def arrays(self) -> tuple[NDArray, ...]:
        """What the operator takes; it writes all but the gradient."""
        if self.master is None:
            return self.weight, self.grad, *self.states
        return self.weight, self.grad, *self.states, self.master

    def run(self) -> None:
        """Do it by itself."""
        if self.master is None or self.mixed:
            update(self.mixed or self.name, self.arrays, self.numbers)
        else:
            update(self.name, (self.master, self.grad.astype("float32"), *self.states), self.numbers)
            nd.cast(self.master, dtype=self.weight.dtype, out=self.weight)

    def is_alike(self) -> bool:
        """Whether its arrays are dense, of one context and shape, and of the dtypes that operators for many take."""
        weight, grad, *others = self.arrays
        like, ctx = weight._data, weight._st.ctx
        wide = like.dtype if self.master is None else self.master._data.dtype
        return (
            not isinstance(like, Sparse)
            and all(
                a._data.__class__ is like.__class__ and a._data.shape == like.shape and a._st.ctx is ctx
                for a in (grad, *others)
            )
            and grad._data.dtype == like.dtype
            and all(a._data.dtype == wide for a in others)
        )


class FusedOptimizer(Optimizer):
    """An optimizer that makes its step by one operator.

    Subclasses define `_fused_step`. What moves many weights at once calls it in the place of `update` and
    `update_multi_precision`, unless these were overridden since.
    """

    #: Whether states with a master copy are (state, master), not (master, state), and there are operators for both.
    _master_last = False
    _moves: tuple[Any, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_fused_step" in vars(cls):
            cls._moves = cls.update, cls.update_multi_precision

    def _fused_step(self, index: Any, state: Any) -> tuple[str, Sequence[NDArray], dict[str, Any]]:
        """Count an update of a parameter; return the operator of the step, its states and its numbers."""
        raise NotImplementedError(type(self).__name__)

    def _step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, master: bool) -> Step:
        if not master:
            name, states, numbers = self._fused_step(index, state)
            return Step(name, weight, grad, states, numbers)
        state, copy = state if self._master_last else state[::-1]
        name, states, numbers = self._fused_step(index, state)
        return Step(name, weight, grad, states, numbers, copy, f"mp_{name}" if self._master_last else "")

    @property
    def _is_told(self) -> bool:
        """Whether its steps are what `_fused_step` says: nobody has put another `update` in its place."""
        cls = type(self)
        return (cls.update, cls.update_multi_precision) == cls._moves and not (
            vars(self).keys() & {"update", "update_multi_precision"}
        )

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        if self._master_last:
            return state_and_master(self, index, weight)
        return super().create_state_multi_precision(index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        name, states, numbers = self._fused_step(index, state)
        update(name, (weight, grad, *states), numbers)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        if self._has_master(weight):
            self._step(index, weight, grad, state, True).run()
        else:
            self.update(index, weight, grad, state)


#: Numbers that weights have each for itself.
_EACH = ("lr", "wd", "lazy_update")
_NO_RATES = dict.fromkeys(_EACH)


class Group(NamedTuple):
    """Steps that one operator makes together.

    Attributes
    ----------
    op : Op
    places : list of int
        Of the steps among all.
    params : Params
        Of the last time.
    common : dict of str to number
        What the steps have in common, `_NO_RATES` in the place of their own.
    """

    op: Op
    places: list[int]
    params: Params
    common: dict[str, Any]

    def fits(self, step: Step) -> bool:
        """Whether a step has these numbers and no others, but for its own, which need no parsing."""
        numbers = step.numbers
        return {**numbers, **_NO_RATES} == self.common and numbers["lr"].__class__ is float is numbers["wd"].__class__


class Seen:
    """What was found of the arrays that moved together last: it holds as long as they are the same ones.

    Attributes
    ----------
    names : list of str
        The operators of all steps.
    datas : list of weak reference
        To the devices' arrays, which live no longer for it.
    groups : list of Group
        Of all steps, if they can be made again as they were; else of some.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.datas: list[Any] = []
        self.groups: list[Group] = []
        self._weights: list[Any] = []
        self._states: Sequence[Any] = []

    def may_write(self, weights: Sequence[NDArray], states: Sequence[Any]) -> bool:
        """Whether these are the weights and states of which :meth:`checked` was told.

        Memory of a device stays as writable as it was; states that are lists may hold other arrays now.
        """
        return (
            len(weights) == len(self._weights)
            and all(ref() is w._data for ref, w in zip(self._weights, weights))
            and all(map(is_, states, self._states))
            and list not in map(type, states)
        )

    def checked(self, weights: Sequence[NDArray], states: Sequence[Any]) -> None:
        """These may be written to."""
        self._weights, self._states = _refs([w._data for w in weights]), states

    def same(self, steps: Sequence[Step], datas: list[Any]) -> bool:
        """Whether the steps are of the operators and the arrays of the last time."""
        return (
            len(datas) == len(self.datas)
            and all(map(is_, [ref() for ref in self.datas], datas))
            and [step.name for step in steps] == self.names
            and sum(len(group.places) for group in self.groups) == len(steps)
        )


def _refs(datas: Sequence[Any]) -> list[Any]:
    """Weak references to arrays; none if some are sparse, whose parts may be exchanged."""
    return [] if any(isinstance(d, Sparse) for d in datas) else list(map(weakref.ref, datas))


def move(optimizer: FusedOptimizer, items: Iterable[tuple[Any, NDArray, NDArray, Any]], seen: Seen) -> None:
    """Move weights, as few launches as the device's kernels allow.

    Parameters
    ----------
    optimizer : FusedOptimizer
    items : iterable of (index, weight, gradient, state)
        What `update_multi_precision` takes.
    seen : Seen
        Of the last call: if its arrays were these, they are not looked at again.
    """
    steps: list[Step] = []
    try:
        for index, weight, grad, state in items:
            steps.append(optimizer._step(index, weight, grad, state, optimizer._has_master(weight)))
    finally:  # where one has no step, those before it move nevertheless
        _run(steps, seen)


def _run(steps: Sequence[Step], seen: Seen) -> None:
    if not steps:
        return
    ctx = steps[0].weight._st.ctx
    datas = [a._data for step in steps for a in step.arrays]
    if not mode.record and seen.same(steps, datas) and _again(steps, seen):
        return
    seen.names, seen.datas, seen.groups = [step.name for step in steps], _refs(datas), []
    if mode.record or not _disjoint(ctx.device, steps):
        for step in steps:
            step.run()
        return
    names: dict[Any, str | None] = {}  # what operators there are for many
    groups: dict[Any, list[int]] = {}
    for i, step in enumerate(steps):
        one = step.name, step.master is not None
        if one not in names:
            names[one] = _together(ctx.device, *one)
        name = names[one]
        if name is not None and step.weight._st.ctx is ctx and step.is_alike():
            common = [item for item in step.numbers.items() if item[0] not in _EACH]
            groups.setdefault((name, step.weight._data.dtype, *common), []).append(i)
        else:
            _run_groups(steps, groups, seen)
            step.run()
    _run_groups(steps, groups, seen)


def _run_groups(steps: Sequence[Step], groups: dict[Any, list[int]], seen: Seen) -> None:
    for (name, _, *common), places in groups.items():
        for at in range(0, len(places), MOST):
            part = places[at : at + MOST]
            op, some = tables.ops.get(name), [steps[i] for i in part]
            p = op.parse({"num_weights": len(part), **_rates(some), **dict(common)})
            _call(op, some, p)
            if {"lrs", "wds"} <= op.parser.dynamic:
                seen.groups.append(Group(op, part, p, {**dict(common), **_NO_RATES}))
    groups.clear()


def _rates(steps: Sequence[Step]) -> dict[str, tuple[float, ...]]:
    return {f"{n}s": tuple([step.numbers[n] for step in steps]) for n in ("lr", "wd")}


def _again(steps: Sequence[Step], seen: Seen) -> bool:
    """Move by what was found the last time; False, with nothing moved, if the numbers in common have changed."""
    if not all(group.fits(steps[i]) for group in seen.groups for i in group.places):
        return False
    for op, places, p, _ in seen.groups:
        some = [steps[i] for i in places]
        rates = _rates(some)
        _call(op, some, p.with_dynamic({**rates, "_scalars": {**p._scalars, **rates}}))
    return True


def _call(op: Op, steps: Sequence[Step], p: Params) -> None:
    """Call an operator for many weights, whose arrays are alike, apart and writable."""
    arrays = [a for step in steps for a in step.arrays]
    bound = bound_for(op, p, arrays)
    if bound is None or not bound.out:
        invoke(op, arrays, p, out=[step.weight for step in steps])
        return
    # Everything that a call looks for in hundreds of arrays has been looked for here.
    ctx, mutates = arrays[0]._st.ctx, p._sig.mutates
    reads, writes = [step.grad._st for step in steps], [step.weight._st for step in steps]
    writes += [arrays[i]._st for i in mutates]
    ins = [a._data for a in arrays]
    outs = [step.weight._data for step in steps] + [ins[i] for i in mutates]
    begin(reads, writes, now=True)
    ctx.activate()
    try:
        bound.bind(op_context(ctx, mode.train), p, ins, outs)()
    except Exception as e:
        raise_in_op(e, op.name, p, ins, owner=bound.owner)
    commit(writes)


def _together(device: Any, name: str, mixed: bool) -> str | None:
    """The operator for many weights, if the device has a kernel for it."""
    found = tables.ops.get(name).facet("together")
    op = found and tables.ops.find(found % ("mp_" if mixed else ""))
    return op.name if op and tables.kernels.of(device.type, op) else None


def _disjoint(device: Any, steps: Sequence[Step]) -> bool:
    """Whether no two arrays of some steps have memory of a device in common."""
    arrays = [a for step in steps for a in step.arrays if a._st.ctx.device is device]
    datas = [d for a in arrays if not isinstance(d := a._data, Sparse)]
    if len({*map(id, datas)}) < len(datas):
        return False
    cls = device.array_type
    views = [d for d in datas if d.__class__ is not cls or d.base is not None]
    return not any(device.shares(d, other) for d in views for other in datas if other is not d)
