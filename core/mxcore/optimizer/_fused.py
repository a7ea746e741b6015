"""Optimizers whose step is one fused operator: they tell it as data, so that many weights can move in one launch."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from .. import ndarray as nd
from .._core import tables
from .._core.array import Sparse
from .._core.dispatch import invoke
from .._core.op import Op
from .._core.params import Params
from .._core.state import state as mode
from ..base import error
from ..ndarray import NDArray
from ._bound import update
from ._steps import state_and_master
from .base import Optimizer

__all__ = ["MOST", "FusedOptimizer", "Group", "Step", "disjoint", "many_of", "move", "together"]

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

    @property
    def operator(self) -> str:
        """The operator that makes it by itself; '' if none does at once."""
        return self.name if self.master is None else self.mixed

    def run(self) -> None:
        """Do it by itself."""
        if self.operator or self.master is None:
            update(self.operator, self.arrays, self.numbers)
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


#: What users override to make another step; they may do so at any time.
_METHODS = {
    *("update", "update_multi_precision", "_update_count", "_get_lr", "_get_lrs", "_get_wd", "_get_wds"),
    *("_begin", "_common", "_fused_step"),
}
_methods = attrgetter(*sorted(_METHODS))


class FusedOptimizer(Optimizer):
    """An optimizer that makes its step by one operator.

    Subclasses define `_operator` and `_numbers`. What moves many weights at once asks these in the place of `update`
    and `update_multi_precision`, unless a method that they stand for was overridden since.
    """

    #: Whether states with a master copy are (state, master), not (master, state), and there are operators for both.
    _master_last = False
    _told: tuple[Any, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_operator" in vars(cls):
            cls._told = _methods(cls)

    def _operator(self, state: Any) -> tuple[str, Sequence[NDArray]]:
        """The operator that moves a weight with this state, and the states that it takes."""
        raise NotImplementedError(type(self).__name__)

    def _numbers(self, name: str, t: int) -> dict[str, Any]:
        """The parameters of an operator that all weights have in common at their update number `t`."""
        raise NotImplementedError(type(self).__name__)

    def _rate(self, lr: float, t: int) -> float:
        """The learning rate that the operator gets at update number `t`."""
        return lr

    def _fused_step(self, index: Any, state: Any) -> tuple[str, Sequence[NDArray], dict[str, Any]]:
        """Count an update of a parameter; return the operator of the step, its states and its numbers."""
        lr, wd, t = self._begin(index)
        name, states = self._operator(state)
        return name, states, {"lr": self._rate(lr, t), "wd": wd, **self._numbers(name, t)}

    def _step(self, index: Any, weight: NDArray, grad: NDArray, state: Any, master: bool) -> Step:
        if not master:
            name, states, numbers = self._fused_step(index, state)
            return Step(name, weight, grad, states, numbers)
        copy = state[self._master_last]
        name, states, numbers = self._fused_step(index, self._inner(state, master))
        return Step(name, weight, grad, states, numbers, copy, f"mp_{name}" if self._master_last else "")

    def _inner(self, state: Any, master: bool) -> Any:
        """The state beside a master copy."""
        return state[not self._master_last] if master else state

    @property
    def _is_told(self) -> bool:
        """Whether its steps are what it tells: nobody has put another method in the place of those behind them."""
        return _methods(type(self)) == self._told and _METHODS.isdisjoint(vars(self))

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        if self._master_last:
            found = state_and_master(self, index, weight)
        else:
            found = super().create_state_multi_precision(index, weight)
        if self._is_told:  # it is the operator that gets the state
            state = self._inner(found, self._has_master(weight))
            try:
                _, states = self._operator(state)
                sound = isinstance(states, (tuple, list)) and all(isinstance(s, NDArray) for s in states)
            except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                sound = False
            if not sound:
                raise error(
                    TypeError,
                    f"optimizer {type(self).__name__} of {type(self).__module__}: create_state() returned "
                    f"{reprlib.repr(state)} for parameter {index!r}; what its step takes is needed, arrays",
                )
        return found

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


class Group(NamedTuple):
    """Steps that one operator made together.

    Attributes
    ----------
    name : str
        The operator of each.
    op : Op
    places : list of int
        Of the steps among all.
    params : Params
    """

    name: str
    op: Op
    places: list[int]
    params: Params


def move(
    optimizer: FusedOptimizer, items: Iterable[tuple[Any, NDArray, NDArray, Any]]
) -> tuple[list[Step], list[Group]]:
    """Move weights, as few launches as the device's kernels allow.

    Parameters
    ----------
    optimizer : FusedOptimizer
    items : iterable of (index, weight, gradient, state)
        What `update_multi_precision` takes.

    Returns
    -------
    steps : list of Step
    groups : list of Group
        Of those that were made together.
    """
    steps: list[Step] = []
    groups: list[Group] = []
    try:
        for index, weight, grad, state in items:
            steps.append(optimizer._step(index, weight, grad, state, optimizer._has_master(weight)))
    finally:  # where one has no step, those before it move nevertheless
        _run(steps, groups)
    return steps, groups


def _run(steps: Sequence[Step], made: list[Group]) -> None:
    if not steps:
        return
    ctx = steps[0].weight._st.ctx
    # Where kernels run in the caller, those of one weight cost little, and are compiled in a fraction of the time.
    if not ctx.device.async_ or mode.record or not disjoint(ctx.device, steps):
        for step in steps:
            step.run()
        return
    groups: dict[Any, list[int]] = {}
    for i, step in enumerate(steps):
        alike = many_of(ctx.device, step) if step.weight._st.ctx is ctx else None
        if alike is not None:
            groups.setdefault(alike, []).append(i)
        else:
            made += _run_groups(steps, groups)
            step.run()
    made += _run_groups(steps, groups)


def _plain(numbers: dict[str, Any]) -> bool:
    """Whether all are numbers that groups can be told apart by; one may be an array of one."""
    return all(v.__hash__ is not None for v in numbers.values())


def _run_groups(steps: Sequence[Step], groups: dict[Any, list[int]]) -> list[Group]:
    made = []
    for (name, *_), places in groups.items():
        for at in range(0, len(places), MOST):
            part = places[at : at + MOST]
            op, some = tables.ops.get(name), [steps[i] for i in part]
            p = together(op, some)
            invoke(op, [a for step in some for a in step.arrays], p, out=[step.weight for step in some])
            made.append(Group(some[0].name, op, part, p))
    groups.clear()
    return made


def together(op: Op, steps: Sequence[Step]) -> Params:
    """The parameters of the operator that makes some steps together, which have all but their rates in common."""
    rates = {f"{n}s": tuple([step.numbers[n] for step in steps]) for n in ("lr", "wd")}
    common = {n: v for n, v in steps[0].numbers.items() if n not in _EACH}
    return op.parse({"num_weights": len(steps), **rates, **common})


def many_of(device: Any, step: Step) -> tuple[Any, ...] | None:
    """What steps have in common that one operator can make together, its name first; None where there is none."""
    name = _together(device, step.name, step.master is not None)
    if name is None or not step.is_alike() or not _plain(step.numbers):
        return None
    return name, step.weight._data.dtype, *(item for item in step.numbers.items() if item[0] not in _EACH)


def _together(device: Any, name: str, mixed: bool) -> str | None:
    """The operator for many weights, if the device has a kernel for it."""
    found = tables.ops.get(name).facet("together")
    op = found and tables.ops.find(found % ("mp_" if mixed else ""))
    return op.name if op and tables.kernels.of(device.type, op) else None


def disjoint(device: Any, steps: Sequence[Step]) -> bool:
    """Whether no two arrays of some steps have memory of a device in common."""
    arrays = [a for step in steps for a in step.arrays if a._st.ctx.device is device]
    datas = [d for a in arrays if not isinstance(d := a._data, Sparse)]
    if len({*map(id, datas)}) < len(datas):
        return False
    cls = device.array_type
    views = [d for d in datas if d.__class__ is not cls or d.base is not None]
    return not any(device.shares(d, other) for d in views for other in datas if other is not d)
