"""Optimizers whose step is one fused operator: they tell it as data, so that many weights can move in one launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .. import ndarray as nd
from .._core import tables
from .._core.array import Sparse
from .._core.call import op_context
from .._core.dispatch import bound_for, invoke
from .._core.errors import raise_in_op
from .._core.op import Op
from .._core.state import state as mode
from .._core.stream import begin, commit
from ..ndarray import NDArray
from ._bound import update
from ._steps import state_and_master
from .base import Optimizer

__all__ = ["FusedOptimizer", "move"]

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


def move(optimizer: FusedOptimizer, items: Iterable[tuple[Any, NDArray, NDArray, Any]]) -> None:
    """Move weights, as few launches as the device's kernels allow.

    Parameters
    ----------
    optimizer : FusedOptimizer
    items : iterable of (index, weight, gradient, state)
        What `update_multi_precision` takes.
    """
    steps: list[Step] = []
    try:
        for index, weight, grad, state in items:
            steps.append(optimizer._step(index, weight, grad, state, optimizer._has_master(weight)))
    finally:  # where one has no step, those before it move nevertheless
        _run(steps)


def _run(steps: Sequence[Step]) -> None:
    if not steps:
        return
    ctx = steps[0].weight._st.ctx
    if mode.record or not _disjoint(ctx.device, steps):
        for step in steps:
            step.run()
        return
    names: dict[Any, str | None] = {}  # what operators there are for many
    groups: dict[Any, list[Step]] = {}
    for step in steps:
        one = step.name, step.master is not None
        if one not in names:
            names[one] = _together(ctx.device, *one)
        name = names[one]
        if name is not None and step.weight._st.ctx is ctx and step.is_alike():
            common = [item for item in step.numbers.items() if item[0] not in ("lr", "wd", "lazy_update")]
            groups.setdefault((name, step.weight._data.dtype, *common), []).append(step)
        else:
            _run_groups(groups)
            step.run()
    _run_groups(groups)


def _run_groups(groups: dict[Any, list[Step]]) -> None:
    for (name, _, *common), steps in groups.items():
        for at in range(0, len(steps), MOST):
            part = steps[at : at + MOST]
            rates = {f"{n}s": [step.numbers[n] for step in part] for n in ("lr", "wd")}
            _call(tables.ops.get(name), part, {"num_weights": len(part), **rates, **dict(common)})
    groups.clear()


def _call(op: Op, steps: Sequence[Step], numbers: dict[str, Any]) -> None:
    """Call an operator for many weights, whose arrays are alike, apart and writable."""
    arrays = [a for step in steps for a in step.arrays]
    p = op.parse(numbers)
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
