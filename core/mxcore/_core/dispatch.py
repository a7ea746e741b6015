"""Eager execution: from an operator and arrays to result arrays, inline or through the engine, and onto the tape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._locks import writing
from . import call as calls
from . import tables, tape
from .array import Array, Like, Storage, faces, fresh
from .binding import bind, not_an_array
from .call import BoundCall, OpContext, conform, eager_call, listed, op_context
from .context import Context, context_named, current_context
from .engine import engine
from .errors import MXNetError, error, raise_in_op, user_line
from .kernels import Spec
from .op import Op
from .params import Params
from .rng import next_key
from .state import state
from .stream import begin, commit, heavy
from .transfer import apart, check_writable, store, together

__all__ = ["call", "invoke", "route"]


def invoke(
    op: Op,
    inputs: Sequence[Any],
    p: Params,
    out: Any = None,
    wanted: tuple[bool, ...] | None = None,
    share: bool = False,
    cls: type[Array] | None = None,
    ctx: Context | None = None,
) -> Any:
    """Run an operator on arrays.

    Parameters
    ----------
    op : Op
    inputs : sequence of Array (or Like, for shape-only inputs)
    p : Params
    out : Array or sequence of Array, optional
        Where to write the visible outputs.
    wanted : tuple of bool, optional
        Which outputs are needed (all).
    share : bool
        Let a view operator return its input's memory instead of a copy.
    cls : type, optional
        Class of dense results; that of the first input unless told.
    ctx : Context, optional
        Where an operator without inputs runs; the current context unless told.

    Returns
    -------
    Array, or list of Array if the operator has several visible outputs.
    """
    n = len(inputs)
    if n:
        x = inputs[0]
        try:
            st = x._st
            ctx, d, pending = st.ctx, x._data, st.write is not None
            if n == 1:
                key: Any = (p._key, ctx.device_type, d.shape, d.dtype, d.__class__)
            elif n == 2:
                y = inputs[1]
                st, e = y._st, y._data
                if st.ctx is not ctx:
                    ctx = _common(op, p, inputs)
                if st.write is not None:
                    pending = True
                key = (p._key, ctx.device_type, d.shape, d.dtype, d.__class__, e.shape, e.dtype, e.__class__)
            else:
                key, pending, ctx = _key(op, p, inputs, ctx)
        except AttributeError:
            raise _no_array(op, p, inputs) from None
        cls = cls or x.dense
    else:
        pending, d, ctx = False, None, ctx or current_context()
        key = (p._key, ctx.device_type)
        cls = cls or faces["default"]
    bound = op.bound.get(key)
    if bound is None:
        bound = _bound(op, p, inputs, ctx, key)

    if (
        bound.lean
        and not pending
        and out is None
        and wanted is None
        and (not engine.it.parallel or bound.work <= engine.it.work_limit)
    ):
        mode = state.__dict__
        train = mode["train"]
        k = ctx.op_contexts.get(train) or op_context(ctx, train)
        try:
            if n == 1:
                v = bound.value(k, p, d)
                given = v is d
            elif n == 2:
                v = bound.value(k, p, d, e)
                given = v is d or v is e
            else:
                datas = [x._data for x in inputs]
                v = bound.value(k, p, *datas)
                given = not bound.out and id(v) in map(id, datas)  # a kernel that writes has had a new array
            # Arrays of this class tell for certain that nobody shares their memory; of others the device is asked.
            if (
                v.__class__ is not bound.array
                or v.dtype is not bound.dtype
                or v.shape != bound.shape
                or v.base is not None
                or given
            ):
                if v.__class__ is tuple or v.__class__ is list:
                    (v,) = listed(v, 1)
                v = conform(k, v, bound.specs[0], [x._data for x in inputs], share and op.view)
        except Exception as exc:
            raise_in_op(exc, op.name, p, [x._data for x in inputs], owner=bound.owner)
        result = cls(v, _view_storage(k, v, x)) if share and op.view else fresh(cls, v, ctx)
        if mode["record"]:
            tape.record(op, p, inputs, (result,))
        return result
    # No other thread moves the same states meanwhile; users' code in a stateful operator may wait for other threads.
    moved = [inputs[i] for i in p._sig.mutates] if op.mutates and not op.stateful else ()
    args = bound, inputs, p, out, wanted, share, cls, ctx, pending
    return writing(moved, _invoke, *args) if moved else _invoke(*args)


def _key(op: Op, p: Params, inputs: Sequence[Any], ctx: Context) -> tuple[Any, bool, Context]:
    """Under what a call is kept, whether it must wait, where it runs; of one or two inputs `invoke` has it inline."""
    parts, pending, where = list[Any](), False, ctx
    for x in inputs:
        st, d = x._st, x._data
        if st.ctx is not ctx:
            where = _common(op, p, inputs)
        pending = pending or st.write is not None
        parts += (d.shape, d.dtype, d.__class__)
    return (p._key, where.device_type, *parts), pending, where


def _bound(op: Op, p: Params, inputs: Sequence[Any], ctx: Context, key: Any) -> BoundCall:
    """Bind an operator for inputs like these, and keep it, unless kernels are still to come."""
    watching, table = calls.observers, op.bound
    found = eager_call(
        op,
        p,
        ctx.device,
        [Spec(tuple(x._data.shape), x._data.dtype, getattr(x._data, "stype", "default")) for x in inputs],
    )
    if calls.observers is watching and ctx.device_type not in tables.kernels.fresh:
        if len(table) >= BoundCall.LIMIT:
            table.clear()
        table[key] = found
    return found


def _invoke(
    bound: BoundCall,
    inputs: Sequence[Any],
    p: Params,
    out: Any,
    wanted: tuple[bool, ...] | None,
    share: bool,
    cls: Any,
    ctx: Context,
    pending: bool,
) -> Any:
    """The general way: random numbers, several outputs, given ones, states, updated inputs, inputs that are pending."""
    op, sig, mode = bound.op, p._sig, state.__dict__
    if inputs and ctx.device_type != bound.place:
        ctx = Context(bound.place, ctx.device_id)
    train = mode["train"]
    k = ctx.op_contexts.get(train) or op_context(ctx, train)
    if sig.random or wanted is not None:
        k = OpContext(ctx, train, wanted, next_key(ctx) if sig.random else None)
    device, view = k.device, op.view and share and not bound.densify
    now, mixed, outs = bound.sync or device.async_, False, None
    targets: list[Storage] = []
    if out is not None or sig.mutates:
        outs, targets, mixed = _targets(bound, inputs, p, out, device, ctx)
        if outs is not None and any(o.stype != "default" for o in outs):
            now, k = True, OpContext(ctx, train, k.wanted, k.key)
            k.replaces = _replaces(op, sig, inputs, outs)
    if pending or targets:
        pending = begin([x._st for x in inputs], targets, now)
    later, saved = not now and not view and (pending or heavy(bound.work)), None
    commit(targets)
    if not later:
        values, saved = _run(bound, k, p, inputs, outs, view, mixed)
        # A view of what is still being computed will show it; what is no view here has read it too early.
        later = pending and view and not device.shares(values[0], inputs[0]._data)
    results = (
        _push(bound, k, p, inputs, outs, cls, mixed)
        if later
        else _results(bound, k, p, inputs, outs, cls, view, values)
    )
    commit(targets)
    if mode["record"]:
        tape.record(op, p, inputs, results, (k, saved) if op.stateful else None)
    return out if out is not None else results[0] if bound.visible == 1 else results[: bound.visible]


def _replaces(op: Op, sig: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> bool:
    """Whether every output given takes the place of the input that it updates, and no value is given twice."""
    updates = {op.alias[n]: x for n, x in zip(sig.inputs, inputs) if n in op.alias}
    return len({id(x._data) for x in inputs}) == len(inputs) and all(
        updates.get(name) is o for name, o in zip(sig.outputs, outs)
    )


def _targets(
    bound: BoundCall, inputs: Sequence[Any], p: Params, out: Any, device: Any, ctx: Context
) -> tuple[list[Any] | None, list[Storage], bool]:
    """The arrays given as `out`, checked; the storages that the call writes; whether different arrays may overlap."""
    outs = None if out is None else list(out) if isinstance(out, (list, tuple)) else [out]
    if outs is not None:
        bound.check(outs, ctx, tape.read_later(bound.op, p, inputs, outs) if state.record is True else ())
    for i in p._sig.mutates:
        check_writable(inputs[i], f"operator {bound.op.name} updates its input '{p._sig.inputs[i]}'")
    targets = [x._st for x in outs or ()] + [inputs[i]._st for i in p._sig.mutates]
    return outs, targets, not apart(device, [*inputs, *(outs or ())])


def _run(
    bound: BoundCall, k: OpContext, p: Params, inputs: Sequence[Any], outs: list[Any] | None, view: bool, mixed: bool
) -> tuple[list[Any], Any]:
    """Run here; returns the values and the state."""
    device, datas = k.device, [x._data for x in inputs]
    k.ctx.activate()
    given = bound.usable(device, p._sig, outs, datas, mixed) if outs is not None and bound.out else None
    try:
        return bound.run(k, p, datas, given, view, mixed)
    except Exception as e:
        raise_in_op(e, bound.op.name, p, datas, owner=bound.owner)


def _results(
    bound: BoundCall,
    k: OpContext,
    p: Params,
    inputs: Sequence[Any],
    outs: list[Any] | None,
    cls: Any,
    view: bool,
    values: list[Any],
) -> list[Any]:
    """The values where they belong: written to updated inputs and given outputs, else in arrays."""
    device, ctx = k.device, k.ctx
    for i, new in zip(p._sig.mutates, values[bound.n_out :]):
        if new is not None and new is not inputs[i]._data:
            store(device, new, inputs[i])
    results: list[Any] = []
    for i, (v, spec) in enumerate(zip(values, bound.specs)):
        if outs is not None and i < len(outs):
            if v is not outs[i]._data:
                store(device, v, outs[i])
            results.append(outs[i])
        elif v is None:
            results.append(None)
        elif spec.stype != "default":
            results.append(faces[getattr(v, "stype", "default")](v, Storage(ctx)))
        else:
            results.append(cls(v, _view_storage(k, v, inputs[0]) if view else Storage(ctx)))
    return results


def _view_storage(k: OpContext, v: Any, x: Array) -> Storage:
    """The storage of a view operator's result: that of its input, unless the body had to make a new array."""
    return x._st if k.device.shares(v, x._data) else Storage(x._st.ctx)


def _push(
    bound: BoundCall,
    k: OpContext,
    p: Params,
    inputs: Sequence[Any],
    outs: list[Any] | None,
    cls: type[Array],
    mixed: bool,
) -> list[Any]:
    """Allocate the outputs and hand the work to the engine."""
    op, ctx, device, sig = bound.op, k.ctx, k.device, p._sig
    datas = [x._data for x in inputs]
    try:
        results = [
            outs[i]
            if outs is not None and i < len(outs)
            else cls(device.empty(s.shape, s.dtype, ctx.device_id), Storage(ctx))
            for i, s in enumerate(bound.specs)
        ]
    except MemoryError as e:
        raise_in_op(e, op.name, p, datas, owner=bound.owner)
    dest = [x._data for x in results] + [datas[i] for i in sig.mutates]
    usable = bound.usable(device, sig, outs or (), datas, mixed)
    given = [*usable, *dest[len(usable) : bound.n_out]]

    where = f"called at {user_line()}"  # the error surfaces elsewhere

    def work() -> None:
        try:
            values, _ = bound.run(k, p, datas, given, False, mixed)
            for v, d in zip(values, dest):
                if v is not None and v is not d:
                    device.copy(v, d)
        except Exception as e:
            raise_in_op(e, op.name, p, datas, where, bound.owner)

    writes = [x._st for x in results] + [inputs[i]._st for i in sig.mutates]
    engine.it.push(ctx, work, [x._st for x in inputs], writes, op.name)
    return results


def _common(op: Op, p: Params, inputs: Sequence[Any]) -> Context:
    """Where an operator on arrays of several contexts runs, if they meet at all: where the first would compute."""
    first = inputs[0]._st.ctx
    if all(together(first, x._st.ctx) for x in inputs):
        return Context(first.device.computes_as, first.device_id)
    where = ", ".join(f"{n} on {x._st.ctx}" for n, x in zip(op.signature(p).inputs, inputs))
    raise error(
        ValueError,
        f"operator {op.name}: inputs live on different devices ({where}); copy one with as_in_context() first",
    )


def _is_array(x: Any) -> bool:
    return isinstance(x, (Array, Like))


def _no_array(op: Op, p: Params, inputs: Sequence[Any]) -> MXNetError:
    name, x = next((n, x) for n, x in zip(p._sig.inputs, inputs) if not hasattr(x, "_st"))
    return not_an_array(op.name, name, x)


def call(
    op: Op,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    cls: type[Array] | None = None,
    share: bool = False,
    wanted: tuple[bool, ...] | None = None,
) -> Any:
    """Call an operator: ``op(data, weight, num_hidden=3, out=y)``; `share` and `wanted` as in `invoke`."""
    plain = op.plain
    if not kwargs:
        if plain is not None and len(args) == len(op.input_slots) and args:
            for x in args:
                if not isinstance(x, (Array, Like)):
                    break
            else:
                return invoke(op, args, plain, None, wanted, share, cls)
        out = None
    else:
        out = kwargs.pop("out", None)
        kwargs.pop("name", None)
        if not op.input_slots and isinstance(out, Array):  # it decides what is left open
            kwargs = {
                **{
                    n: getattr(out._data, n)
                    for n in [*op.params][len(args) :]
                    if n in ("shape", "dtype") and op.params[n].optional
                },
                **kwargs,
            }
    inputs, p = bind(op, args, kwargs, _is_array)
    ctx = None
    if not inputs:
        if given := getattr(p, "ctx", None):
            ctx = context_named(f"operator {op.name}", given)
        elif out is not None:
            ctx = (out[0] if isinstance(out, (list, tuple)) else out)._st.ctx
    return invoke(op, inputs, p, out, wanted, share, cls, ctx)


def route(run: Any = call, apply: Any = invoke) -> None:
    """Let users' calls go through functions in the place of `call` and `invoke`, and straight again unless told."""
    Op.run, Op.apply = staticmethod(run), staticmethod(apply)
    tables.changed()


route()
