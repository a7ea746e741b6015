"""Eager execution: from an operator and arrays to result arrays, inline or through the engine, and onto the tape."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from . import infer, registry, tape
from .array import Array, Like, Sparse, Storage, faces, fresh
from .binding import bind, not_an_array
from .context import Context, current_context
from .engine import engine
from .errors import MXNetError, describe, error, raise_in_op, user_line
from .kernels import Spec
from .op import Op
from .params import Params
from .rng import next_key
from .state import state
from .transfer import apart, check_writable, guard_write, overlaps, store

__all__ = ["K", "Plan", "call", "invoke", "context_k", "make_plan", "parse_ctx"]


class K:
    """What a body may know of its call.

    Attributes
    ----------
    xp : module
        The device's array namespace.
    device, ctx
        Where it runs.
    is_train : bool
        Training mode, as captured at the call.
    wanted : tuple of bool or None
        Which outputs anyone reads; None means all.
    key : tuple or None
        The random key of the call; `rng` gives its numbers.
    shapes : tuple or None
        In a program, the inferred shapes of the outputs (a consumer may have decided them); None in eager calls.
    """

    __slots__ = ("xp", "device", "ctx", "is_train", "wanted", "key", "shapes", "_rng")

    def __init__(self, ctx: Context, is_train: bool, wanted: tuple[bool, ...] | None = None, key: Any = None) -> None:
        device = ctx.device
        self.device, self.ctx, self.is_train, self.wanted, self.key = device, ctx, is_train, wanted, key
        self.xp = device.xp
        self.shapes: Any = None
        self._rng: Any = None

    @property
    def rng(self) -> Any:
        """The random numbers of this call (:class:`mxcore.philox.Rng`): one stream, each draw goes on with it."""
        if self._rng is None:
            if self.key is None:
                raise error(RuntimeError, "k.rng is for operators declared with random=True")
            self._rng = self.device.rng(self.key, self.ctx.device_id)
        return self._rng


def context_k(ctx: Context, is_train: bool) -> K:
    """The shared call context of operators without randomness."""
    k = ctx.k.get(is_train)
    if k is None:
        k = ctx.k[is_train] = K(ctx, is_train)
        engine.it.note(ctx)
    return k


class Plan:
    """How one operator runs for inputs of given shapes and dtypes: kernel, output specs, estimated work."""

    __slots__ = ("fn", "out", "specs", "mutated", "work", "sync", "visible", "n_out", "n_all", "sparse_in", "lean", "shape", "dtype", "owner")

    fn: Any
    out: bool
    specs: list[Spec]
    mutated: list[Spec]
    work: float
    sync: bool
    visible: int
    n_out: int
    n_all: int
    sparse_in: bool
    lean: bool
    shape: Any
    dtype: Any
    owner: str

    LIMIT = 512


def make_plan(op: Op, p: Params, device: Any, ins: Sequence[Spec]) -> Plan:
    """Infer and resolve; raises errors that name operator, inputs and device."""
    sig = op.signature(p)
    plan = Plan()
    plan.n_out, plan.n_all, plan.visible = sig.n_out, sig.n_all, sig.visible
    plan.sparse_in = op.storage_rule is None and any(s.stype != "default" for s in ins)
    if plan.sparse_in:
        ins = [Spec(s.shape, s.dtype) for s in ins]
    _, shapes = infer.op_shapes(op, p, [s.shape for s in ins])
    new_dtypes, dtypes = infer.op_dtypes(op, p, [s.dtype for s in ins])
    stypes = infer.op_stypes(op, p, [s.stype for s in ins])
    if any(t is None for t in dtypes):
        raise error(TypeError, f"operator {op.name}: the dtype of its output cannot be inferred from {describe(sig.inputs, ins)}")
    plan.specs = [Spec(s if infer.known(s) else None, t, st) for s, t, st in zip(shapes, dtypes, stypes)]
    plan.mutated = [ins[i] for i in sig.mutates]
    plan.fn, plan.out, plan.owner = registry.kernels.resolve(op, device, p, list(ins))
    plan.sync = op.stateful or plan.sparse_in or any(s.shape is None or s.stype != "default" for s in [*plan.specs, *plan.mutated])
    if plan.out and plan.sync and not op.stateful and any(s.shape is None for s in plan.specs):
        raise error(ValueError, f"operator {op.name}: a kernel with out=True needs known output shapes")
    # One dense output straight from a body that returns it: the common case, with a short way through `invoke`.
    plan.lean = not (plan.out or plan.sync or plan.sparse_in or sig.random or device.async_ or plan.n_all != 1 or plan.n_out != 1)
    if plan.specs:
        plan.shape, plan.dtype = plan.specs[0].shape, plan.specs[0].dtype
    plan.work = infer.op_cost(op, p, ins, plan.specs)
    return plan


def _spec(data: Any) -> Spec:
    return Spec(tuple(data.shape), data.dtype, getattr(data, "stype", "default"))


def invoke(op: Op, inputs: Sequence[Any], p: Params, out: Any = None, wanted: tuple[bool, ...] | None = None,
           share: bool = False, cls: type[Array] | None = None, ctx: Context | None = None) -> Any:
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
                    raise _mixed_contexts(op, p, inputs)
                if st.write is not None:
                    pending = True
                key = (p._key, ctx.device_type, d.shape, d.dtype, d.__class__, e.shape, e.dtype, e.__class__)
            else:
                parts = [p._key, ctx.device_type]
                for y in inputs:
                    st, e = y._st, y._data
                    if st.ctx is not ctx:
                        raise _mixed_contexts(op, p, inputs)
                    if st.write is not None:
                        pending = True
                    parts += (e.shape, e.dtype, e.__class__)
                key = tuple(parts)
        except AttributeError:
            raise _no_array(op, p, inputs) from None
        if cls is None:
            cls = x.dense
    else:
        pending, d = False, None
        if ctx is None:
            ctx = current_context()
        key = (p._key, ctx.device_type)
        cls = cls or faces["default"]
    plan = op.plans.get(key)
    if plan is None:
        plan = make_plan(op, p, ctx.device, [_spec(x._data) for x in inputs])
        if len(op.plans) >= Plan.LIMIT:
            op.plans.clear()
        op.plans[key] = plan

    if plan.lean and not pending and out is None and wanted is None and (not engine.it.parallel or plan.work <= engine.it.work_limit):
        mode = state.__dict__
        train = mode["train"]
        k = ctx.k.get(train) or context_k(ctx, train)
        try:
            if n == 1:
                v = plan.fn(k, p, d)
            elif n == 2:
                v = plan.fn(k, p, d, e)
            else:
                v = plan.fn(k, p, *[x._data for x in inputs])
            # Only NumPy's own arrays tell for certain that nobody shares their memory; of others the device is asked.
            if v.__class__ is not ndarray or v.dtype is not plan.dtype or v.shape != plan.shape or v.base is not None or v is d:
                if v.__class__ is tuple or v.__class__ is list:
                    v, = listed(v, 1)
                v = conform(k, v, plan.specs[0], [x._data for x in inputs], share and op.view)
        except Exception as e:
            raise_in_op(e, op.name, p, [x._data for x in inputs], owner=plan.owner)
        result = cls(v, _view_storage(k, v, x)) if share and op.view else fresh(cls, v, ctx)
        if mode["record"]:
            tape.record(op, p, inputs, (result,))
        return result

    if p._sig.random:
        k = K(ctx, state.train, wanted, next_key(ctx))
        context_k(ctx, state.train)
    elif wanted is not None:
        k = K(ctx, state.train, wanted)
    else:
        k = ctx.k.get(state.train) or context_k(ctx, state.train)

    sig = p._sig
    outs = None if out is None else (list(out) if isinstance(out, (list, tuple)) else [out])
    if outs is not None:
        _check_outs(op, plan, outs, ctx)
    eng, device = engine.it, k.device
    now = plan.sync or device.async_ or outs is not None and any(o.stype != "default" for o in outs)
    if pending and now:
        for x in inputs:
            x._st.wait()
        pending = False
    targets, mixed = None, False
    if outs is not None or sig.mutates:
        mixed = not apart(k.device, [*inputs, *(outs or ())])
        for i in sig.mutates:
            check_writable(inputs[i], f"operator {op.name} updates its input '{sig.inputs[i]}'")
        targets = [x._st for x in outs or ()] + [inputs[i]._st for i in sig.mutates]
        if any(t.write is not None or t.reads for t in targets):
            if now:
                for t in targets:
                    t.wait_free()
            else:
                pending = True
    if (pending or (eng.parallel and plan.work > eng.work_limit)) and not (now or (op.view and share)):
        results = _push(op, plan, k, p, inputs, outs, cls, mixed)
        saved_state = None
    else:
        if device.async_:
            device.activate(ctx.device_id)
        datas = [x._data for x in inputs]
        if plan.sparse_in:
            datas = densified(k, datas)
        given = None
        if outs is not None and plan.out:
            given = _usable(op, plan, device, sig, outs, inputs, mixed)
        try:
            values, saved_state = run_kernel(op, plan, k, p, datas, given, share, mixed)
        except Exception as e:
            raise_in_op(e, op.name, p, datas, owner=plan.owner)
        for i, new in zip(sig.mutates, values[plan.n_out:]):
            if new is not None:
                old = inputs[i]._data
                if new is not old:
                    store(device, new, inputs[i])
        # A view of what is still being computed will show it; what is no view here has read it too early.
        early = pending and not device.shares(values[0], datas[0])
        results = _push(op, plan, k, p, inputs, outs, cls, mixed) if early else []
        for i in range(0 if early else plan.n_out):
            v = values[i]
            if outs is not None and i < len(outs):
                if v is not outs[i]._data:
                    store(device, v, outs[i])
                results.append(outs[i])
            elif v is None:
                results.append(None)
            else:
                spec = plan.specs[i]
                if spec.stype != "default":
                    results.append(faces[getattr(v, "stype", "default")](v, Storage(ctx)))
                else:
                    results.append(cls(v, _view_storage(k, v, inputs[0]) if share and op.view else Storage(ctx)))
    if targets is not None:
        for t in targets:
            t.version += 1
    if state.record:
        tape.record(op, p, inputs, results, (k, saved_state) if op.stateful else None)
    if out is not None or plan.visible == 1:
        return results[0] if out is None else out
    return results if plan.visible == plan.n_out else results[:plan.visible]


def run_kernel(op: Op, plan: Plan, k: K, p: Params, datas: list[Any], given: list[Any] | None, share: bool,
               mixed: bool = True) -> tuple[list[Any], Any]:
    """Run the kernel; returns outputs followed by mutated values, of declared dtype and shape, and the state.

    `mixed`: different arrays may overlap.
    """
    saved = None
    mutates = p._sig.mutates
    mixed = bool(mutates) and (mixed or len({*map(id, datas)}) < len(datas))
    if mixed:  # what lies in memory that it updates is read from a copy
        written = [datas[i] for i in mutates]
        datas = [d.copy() if i not in mutates and not isinstance(d, (Like, Sparse)) and overlaps(k.device, d, written) else d
                 for i, d in enumerate(datas)]
    if plan.out:
        outs: list[Any] = []
        empty, index = k.device.empty, k.ctx.device_id
        for i, spec in enumerate(plan.specs):
            if given is not None and i < len(given) and given[i] is not None:
                outs.append(given[i])
            elif k.wanted is not None and not k.wanted[i]:
                outs.append(None)
            else:
                outs.append(empty(spec.shape, spec.dtype, index))
        for j, i in enumerate(mutates if mixed else ()):
            if overlaps(k.device, datas[i], written[:j]):
                datas[i] = datas[i].copy()  # written back afterwards
        outs += [datas[i] for i in mutates]
        before = [*outs]
        r = plan.fn(k, p, outs, *datas)
        return (outs, r) if op.stateful else (kept(outs, before, r), None)
    r = plan.fn(k, p, *datas)
    if op.stateful:
        r, saved = r
    values = listed(r, plan.n_all)
    for i, v in enumerate(values):
        if v is None:
            if i < p._sig.visible and (k.wanted is None or k.wanted[i]):
                raise error(ValueError, f"its body returned None for output '{p._sig.outputs[i]}'")
            continue
        spec = plan.specs[i] if i < plan.n_out else plan.mutated[i - plan.n_out]
        values[i] = conform(k, v, spec, datas, share and op.view)
    return values, saved


def listed(r: Any, n: int) -> list[Any]:
    """What a body returned, as the list of the `n` values that are declared."""
    values = list(r) if isinstance(r, (tuple, list)) else [r]
    if len(values) != n:
        raise error(ValueError, f"its body returned {len(values)} values; {n} are declared")
    return values


def kept(outs: list[Any], before: list[Any], r: Any) -> list[Any]:
    """The arrays that a kernel with ``out=True`` was given, unless it replaced one or returned another."""
    if [*map(id, outs)] != [*map(id, before)] or r is not None and not {*map(id, r if isinstance(r, (tuple, list)) else [r])} <= {*map(id, before)}:
        raise error(TypeError, "it replaced an array of `outs` or returned one, which would be lost; with out=True it writes into them: outs[0][...] = …")
    return outs


def densified(k: K, datas: list[Any]) -> list[Any]:
    """The values with sparse ones made dense, for operators that know dense ones only."""
    return [d.todense(k.xp) if getattr(d, "stype", "default") != "default" else d for d in datas]


def _view_storage(k: K, v: Any, x: Array) -> Storage:
    """The storage of a view operator's result: that of its input, unless the body had to make a new array."""
    return x._st if k.device.shares(v, x._data) else Storage(x._st.ctx)


def conform(k: K, v: Any, spec: Spec, datas: list[Any], share: bool) -> Any:
    """A body's result as declared: dtype cast, scalars given their shape, memory of its own."""
    if spec.stype != "default":
        return v
    dtype = getattr(v, "dtype", None)
    if isinstance(v, (np.generic, float, int)):
        v = k.xp.asarray(v, dtype=spec.dtype)
        return v.reshape(spec.shape) if spec.shape else v
    if dtype is None or isinstance(v, Array) or getattr(dtype, "kind", "f") in "cmMOSU":
        raise error(TypeError, f"its body returned a {type(v).__name__}{f' of {dtype}' if dtype else ''}; an array of k.xp is needed, of {spec.dtype}")
    if dtype != spec.dtype:
        v = v.astype(spec.dtype)
    if spec.shape is not None and v.shape != spec.shape:
        if v.ndim == 0 and spec.size == 1:
            v = v.reshape(spec.shape)
        else:
            raise error(ValueError, f"its body returned shape {tuple(v.shape)}; {spec.shape} is declared")
    return v.copy() if not share and overlaps(k.device, v, datas) else v


def _push(op: Op, plan: Plan, k: K, p: Params, inputs: Sequence[Any], outs: list[Any] | None, cls: type[Array], mixed: bool) -> list[Any]:
    """Allocate the outputs and hand the work to the engine."""
    ctx, device = k.ctx, k.device
    sig = p._sig
    datas = [x._data for x in inputs]
    try:
        results = [outs[i] if outs is not None and i < len(outs) else cls(device.empty(s.shape, s.dtype, ctx.device_id), Storage(ctx))
                   for i, s in enumerate(plan.specs)]
    except MemoryError as e:
        raise_in_op(e, op.name, p, datas, owner=plan.owner)
    if plan.sparse_in:
        datas = densified(k, datas)
    dest = [x._data for x in results] + [datas[i] for i in sig.mutates]
    usable = _usable(op, plan, device, sig, outs or (), inputs, mixed)
    given = [*usable, *dest[len(usable):plan.n_out]]

    where = f"called at {user_line()}"  # the error surfaces elsewhere

    def work() -> None:
        try:
            values, _ = run_kernel(op, plan, k, p, datas, given, False, mixed)
            for v, d in zip(values, dest):
                if v is not None and v is not d:
                    device.copy(v, d)
        except Exception as e:
            raise_in_op(e, op.name, p, datas, where, plan.owner)

    writes = [x._st for x in results] + [inputs[i]._st for i in sig.mutates]
    engine.it.push(ctx, work, [x._st for x in inputs], writes, op.name)
    return results


def _same(data: Any, spec: Spec) -> bool:
    # A kernel that writes gets whole arrays: it may look at them in another shape.
    return bool(data.shape == spec.shape and data.dtype == spec.dtype and getattr(getattr(data, "flags", None), "c_contiguous", True))


def _usable(op: Op, plan: Plan, device: Any, sig: Any, outs: Sequence[Any], inputs: Sequence[Any], mixed: bool) -> list[Any]:
    """The given outputs that a kernel may write directly: of the right kind, and not read by it unless declared.

    Of those that overlap one another, the later ones are written afterwards, in their order. `mixed`: different arrays may overlap.
    """
    datas = [x._data for x in inputs]
    readers: dict[int, list[str]] = {}
    for d, name in zip(datas, sig.inputs):
        readers.setdefault(id(d), []).append(name)
    usable: list[Any] = []
    written: dict[int, Any] = {}
    for o, spec, name in zip(outs, plan.specs, sig.outputs):
        data = o._data
        free = not isinstance(data, Sparse) and id(data) not in written and all(op.alias.get(n) == name for n in readers.get(id(data), ()))
        if free and mixed:
            free = not overlaps(device, data, [d for d in (*datas, *written.values()) if d is not data])
        usable.append(data if free and _same(data, spec) else None)
        written[id(data)] = data
    return usable


def _check_outs(op: Op, plan: Plan, outs: list[Any], ctx: Context) -> None:
    if not plan.visible <= len(outs) <= plan.n_out:
        raise error(ValueError, f"operator {op.name}: {len(outs)} arrays given as out, it has {plan.visible} outputs")
    for o, spec in zip(outs, plan.specs):
        if not isinstance(o, Array):
            raise error(TypeError, f"operator {op.name}: out must be an array, got {type(o).__name__}")
        if o._st.ctx is not ctx:
            raise error(ValueError, f"operator {op.name}: out is on {o._st.ctx}, the operator runs on {ctx}")
        if spec.shape is not None and tuple(o._data.shape) != spec.shape:
            raise error(ValueError, f"operator {op.name}: out has shape {tuple(o._data.shape)}, the result {spec.shape}")
        if o._data.dtype != spec.dtype and op.input_slots:  # what has no inputs fills whatever it is given
            raise error(TypeError, f"operator {op.name}: out is {o._data.dtype}, the result {spec.dtype}; give an out of that dtype")
        guard_write(o, f"operator {op.name} with out=")


def _mixed_contexts(op: Op, p: Params, inputs: Sequence[Any]) -> MXNetError:
    where = ", ".join(f"{n} on {x._st.ctx}" for n, x in zip(op.signature(p).inputs, inputs))
    return error(ValueError, f"operator {op.name}: inputs live on different devices ({where}); copy one with as_in_context() first")


def _is_array(x: Any) -> bool:
    return isinstance(x, (Array, Like))


def _no_array(op: Op, p: Params, inputs: Sequence[Any]) -> MXNetError:
    name, x = next((n, x) for n, x in zip(p._sig.inputs, inputs) if not hasattr(x, "_st"))
    return not_an_array(op.name, name, x)


def call(op: Op, args: Sequence[Any], kwargs: dict[str, Any], cls: type[Array] | None = None, share: bool = False,
         wanted: tuple[bool, ...] | None = None) -> Any:
    """Call an operator as a function: ``op(data, weight, num_hidden=3, out=y)``; `share` and `wanted` as in `invoke`."""
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
            kwargs = {**{n: getattr(out._data, n) for n in [*op.params][len(args):] if n in ("shape", "dtype") and op.params[n].optional}, **kwargs}
    inputs, p = bind(op, args, kwargs, _is_array)
    ctx = None
    if not inputs:
        given = getattr(p, "ctx", None)
        if given:
            ctx = given if isinstance(given, Context) else parse_ctx(f"operator {op.name}", str(given))
        elif out is not None:
            ctx = (out[0] if isinstance(out, (list, tuple)) else out)._st.ctx
    return invoke(op, inputs, p, out, wanted, share, cls, ctx)


def parse_ctx(where: str, text: str) -> Context:
    """``'cpu(0)'`` as MXNet writes contexts in parameters; `where` is whose parameter it is, for errors."""
    kind, _, index = text.rstrip(")").partition("(")
    try:
        ctx = Context(kind, int(index or 0))
        _ = ctx.device
    except (ValueError, MXNetError) as e:
        raise error(type(e), f"{where}: parameter 'ctx' must be a context such as 'cpu(0)', got {text!r}: {e}") from None
    return ctx


Op.run, Op.apply = staticmethod(call), staticmethod(invoke)
