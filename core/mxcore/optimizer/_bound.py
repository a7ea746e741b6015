"""Fused updates bound to their arrays: a step that meets the same arrays again goes straight to the kernel.

An update is called thousands of times with the same weight, gradient and states, and other numbers each time. Parsing,
planning and checking it anew costs more than moving a small weight.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .. import ndarray as nd
from .._core import tables
from .._core.call import eager_call, op_context
from .._core.errors import raise_in_op
from .._core.kernels import Spec
from .._core.state import state
from .._core.stream import begin, commit, heavy
from .._core.transfer import overlaps
from .._locks import outermost, writing
from ..ndarray import NDArray

__all__ = ["update"]

#: Id of a weight -> (weak references to it and to its states, its last update): who drops one of them gets the memory
#: of all back. A dictionary of arrays would compare them.
_bound: dict[int, Any] = {}
tables.on_change.append(_bound.clear)


def update(name: str, arrays: Sequence[NDArray], numbers: dict[str, Any]) -> None:
    """``nd.<name>(*arrays, out=arrays[0], **numbers)``: move a weight in place by the operator `name`.

    Parameters
    ----------
    name : str
        A fused update, such as ``'sgd_mom_update'``.
    arrays : sequence of NDArray
        The weight, its gradient, its states.
    numbers : dict
        Parameters of the operator.
    """
    # What is bound is written to, as the weight is: by one thread at a time.
    writing(arrays[0], _step, name, arrays, numbers)


def _step(name: str, arrays: Any, numbers: Any) -> None:
    weight = arrays[0]
    refs, found = _bound.get(id(weight), (None, None))
    if refs is None or refs[0]() is not weight or not found.fits(name, arrays, numbers):
        key = id(weight)
        found = _Bound(name, arrays, numbers)
        gone = [weakref.ref(a, lambda ref: _bound.pop(key, None)) for i, a in enumerate(arrays) if i != 1]
        _bound[key] = [gone, found]
    if not found.run(arrays, numbers):
        getattr(nd, name)(*arrays, out=weight, **numbers)


class _Bound:
    """One update: its kernel and arrays, where a kernel writes them in place at once; else only their identity.

    The gradient is not kept: most are of one step, and what frees them is not told here.
    """

    __slots__ = (
        "name",
        "datas",
        "grad",
        "kind",
        "ctx",
        "written",
        "fixed",
        "dynamic",
        "work",
        "ins",
        "call",
        "params",
        "parse",
        "owner",
        "made",
        "busy",
    )

    def __init__(self, name: str, arrays: Sequence[NDArray], numbers: dict[str, Any]) -> None:
        self.made = tables.generation[0]
        self.busy = False
        op = tables.ops.get(name)
        self.name = name
        datas = [a._data for a in arrays]
        self.datas = [None if i == 1 else d for i, d in enumerate(datas)]
        self.grad: Callable[[], Any] = lambda: None
        self.kind = _kind(datas[1])
        self.dynamic = [n for n in numbers if n in op.parser.dynamic]
        self.fixed = {n: v for n, v in numbers.items() if n not in op.parser.dynamic}
        self.call = None
        ctx = self.ctx = arrays[0]._st.ctx
        stypes = [a.stype for a in arrays]
        if any(a._st.ctx is not ctx or a.stype != "default" and i != 1 for i, a in enumerate(arrays)):
            return
        p = self.params = op.parse(dict(numbers))
        sig = p._sig
        bound = eager_call(op, p, ctx.device, [Spec(d.shape, d.dtype, s) for d, s in zip(datas, stypes)])
        if (
            not bound.out
            or bound.sync
            or bound.n_out != 1
            or op.alias.get(sig.inputs[0]) != sig.outputs[0]
            or bound.specs[0].shape != datas[0].shape
            or bound.specs[0].dtype != datas[0].dtype
        ):
            return
        outs = self.written = [datas[0], *(datas[i] for i in sig.mutates)]
        read = [d for i, d in enumerate(datas) if i and i not in sig.mutates]
        if not all(map(ctx.device.writable, outs)) or any(
            overlaps(ctx.device, d, [*read, *outs[:i]]) for i, d in enumerate(outs)
        ):
            return
        self.work, self.owner = bound.work, bound.owner
        self.parse = {n: op.params[n].parse for n in self.dynamic}
        self.grad, self.ins = _weak(datas[1]), [*self.datas]
        self.call = bound.bind(op_context(ctx, False), p, self.ins, outs)

    def fits(self, name: str, arrays: Sequence[NDArray], numbers: dict[str, Any]) -> bool:
        """Whether a call is like the one that was bound, but for the numbers that change at every step."""
        if (
            name != self.name
            or self.made != tables.generation[0]
            or len(numbers) != len(self.fixed) + len(self.dynamic)
        ):
            return False
        for n, v in self.fixed.items():
            if n not in numbers or numbers[n] != v:
                return False
        datas = self.datas
        if len(arrays) != len(datas):
            return False
        for i, a in enumerate(arrays):
            new = a._data
            if i != 1:
                if new is not datas[i]:
                    return False
            elif new is not self.grad():
                # It is another array of its kind wherever backward has handed over its own.
                if _kind(new) != self.kind:
                    return False
                if self.call is not None:
                    if a._st.ctx is not self.ctx or overlaps(self.ctx.device, new, self.written):
                        return False
                    self.grad = _weak(new)
        return True

    @outermost
    def run(self, arrays: Sequence[NDArray], numbers: dict[str, Any]) -> bool:
        """Do it, unless it must go through the engine; tells whether it was done."""
        if self.call is None or state.record or heavy(self.work):
            return False
        storages = [a._st for a in arrays]
        gradient = storages.pop(1)
        if begin((gradient,), storages):
            return False
        self.ctx.activate()
        values = self.params.__dict__
        for n, parse in self.parse.items():
            v = numbers[n]
            values[n] = v if v.__class__ is float else parse(v)
        self.ins[1] = arrays[1]._data
        commit(storages)
        try:
            self.call()
        except Exception as e:
            raise_in_op(e, self.name, self.params, self.ins, owner=self.owner)
        finally:
            self.ins[1] = None
        commit(storages)
        return True


def _kind(data: Any) -> tuple[Any, ...]:
    return data.__class__, data.shape, data.dtype


def _weak(data: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(data)
    except TypeError:  # such as a device may have
        return lambda: data
