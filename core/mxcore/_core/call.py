"""The bound call, an operator bound to device, specs and kernel: it checks, begins, runs, commits, is observed.

Eager dispatch, programs, fused updates and loops use it; what differs is only who supplies the buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_not
from typing import Any, Protocol

import numpy as np

from . import infer, tables
from .array import Array, Like, Sparse
from .context import Context
from .engine import engine
from .errors import REFERENCE, caught, describe, error, in_a_line
from .kernels import Spec
from .op import Op
from .params import Params
from .transfer import guard_write, overlaps, together

__all__ = [
    "BoundCall",
    "OpContext",
    "Observer",
    "check_dtypes",
    "conform",
    "op_context",
    "eager_call",
    "ended",
    "listed",
    "observed",
    "unwatch",
    "watch",
]


class OpContext:
    """What a body may know of its call, which it gets as `k`.

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
    replaces : bool
        Whether sparse outputs take the place of the inputs that they update (:attr:`Op.alias`, ``out=``), which may be
        moved in their own memory then.
    keep : object or None
        In programs that infer, for a kernel whose attribute `keeps` is true: what lives as long as the bound step
        (:class:`mxcore.executor.keep.Keep`). None in all other calls.
    """

    __slots__ = (
        "xp",
        "device",
        "ctx",
        "is_train",
        "wanted",
        "key",
        "shapes",
        "replaces",
        "keep",
        "_ends",
        "_rng",
        "_left",
    )

    def __init__(
        self, ctx: Context, is_train: bool, wanted: tuple[bool, ...] | None = None, key: Any = None, ends: Any = None
    ) -> None:
        device = ctx.device
        self.device, self.ctx, self.is_train, self.wanted, self.key = device, ctx, is_train, wanted, key
        # Of the rule of a compiled block that is the last of a backward: where its inputs stand on the tape, and the
        # gradients of variables so far. It may write those of variables to where they are wanted, and return that.
        self._ends = ends
        self.xp, self.replaces, self.keep, self.shapes = device.xp, False, None, None
        self._rng: Any = None

    @property
    def rng(self) -> Any:
        """The random numbers of this call (:class:`mxcore.philox.Rng`): one stream, each draw goes on with it."""
        if self._rng is None:
            if self.key is None:
                raise error(RuntimeError, "k.rng is for operators declared with random=True")
            self._rng = self.device.rng(self.key, self.ctx.device_id)
        return self._rng


def op_context(ctx: Context, is_train: bool) -> OpContext:
    """What operators without random numbers share."""
    k = (kept := ctx.op_contexts).get(is_train)
    if k is None:
        k = kept[is_train] = OpContext(ctx, is_train)
        engine.it.note(ctx)
    return k


class Observer(Protocol):
    """Who watches calls: is given a function as it is bound, and returns one that does the same and looks.

    `ctx` is where it runs: of eager calls, which devices of one type share, the first. `node` is the name of a
    program's node, None in eager calls. `ins` and `outs` are specs; None where the function takes two small arrays or
    numbers, of which every nanosecond shows.
    """

    def __call__(
        self,
        fn: Callable[..., Any],
        name: str,
        ctx: Context,
        ins: Sequence[Spec] | None,
        outs: Sequence[Spec] | None,
        node: str | None,
    ) -> Callable[..., Any]: ...


#: Who watches now. It is exchanged whole, so that looking costs one load and forgetting is sure.
observers: tuple[Observer, ...] = ()


def watch(observer: Observer) -> None:
    """Let somebody see every call from now on, until :func:`unwatch`; who came first stands closest to the kernel.

    What eager calls have bound is forgotten; programs look whenever they run.

    Parameters
    ----------
    observer : Observer
        ``(fn, name, ctx, ins, outs, node) -> fn``.
    """
    global observers
    with tables.lock:
        observers = (*observers, observer)
        tables.forget_calls()


def unwatch(observer: Observer) -> None:
    """Let an observer see no further call.

    Parameters
    ----------
    observer : Observer
        As given to :func:`watch`; nothing happens if it sees no calls.
    """
    global observers
    with tables.lock:
        observers = tuple(o for o in observers if o is not observer)
        tables.forget_calls()


def observed(
    fn: Callable[..., Any], name: str, ctx: Context, ins: Any, outs: Any, node: str | None = None
) -> Callable[..., Any]:
    """A function as everybody who watches wants it bound."""
    for watcher in observers:
        try:
            fn = watcher(fn, name, ctx, ins, outs, node)
            if not callable(fn):
                raise TypeError(f"it gave {fn!r} in the place of a function")
        except BaseException as e:  # such as sys.exit()
            who = f"{watcher.__module__}.{getattr(watcher, '__qualname__', type(watcher).__qualname__)}"
            raise error(RuntimeError, f"{who}, which watches operator {name}: {in_a_line(caught(e))}") from e
    return fn


class BoundCall:
    """One operator bound to the specs of its inputs and to the kernel that is best for them on a device.

    Parameters
    ----------
    op : Op
    p : Params
    device : Device
    ins, specs : sequence of Spec
        Of inputs and outputs.
    fn : callable, optional
        What runs in the place of a kernel.

    Attributes
    ----------
    mutated : list of Spec
        Of the new values of inputs that it updates, which follow its outputs.
    work : float
        Estimated scalar operations.
    sync : bool
        It runs in the caller's thread at once: it keeps a state, or something is known only by running.
    densify : bool
        Inputs of other storage types are made dense first.
    lean : bool
        One dense output of known shape and no state: the common case, with a short way through `invoke`, by the next
        four.
    value : callable
        ``(k, p, *inputs) -> array``: the output, launched and allocated as the device wants it.
    place : str
        The type of device where what inputs give is.
    shape, dtype, array
        Of the output, and the class whose arrays tell by their `base` whether somebody shares their memory.
    """

    __slots__ = (
        "op",
        "fn",
        "out",
        "owner",
        "specs",
        "mutated",
        "n_out",
        "n_all",
        "visible",
        "work",
        "sync",
        "densify",
        "lean",
        "value",
        "shape",
        "dtype",
        "array",
        "place",
    )

    #: So many are kept of one operator.
    LIMIT = 512

    value: Callable[..., Any]
    shape: Any
    dtype: Any
    array: Any

    def __init__(
        self,
        op: Op,
        p: Params,
        device: Any,
        ins: Sequence[Spec],
        specs: Sequence[Spec],
        fn: Callable[..., Any] | None = None,
    ) -> None:
        sig = p._sig
        self.op, self.specs, self.lean, self.place = op, specs, False, device.computes_as or device.type
        self.n_out, self.n_all, self.visible = sig.n_out, sig.n_all, sig.visible
        self.densify = op.storage_rule is None and any(s.stype != "default" for s in ins)
        if self.densify:
            ins = [Spec(s.shape, s.dtype) for s in ins]
        check_dtypes(op, device, (*ins, *specs))
        self.fn, self.out, self.owner = _kernel(op, p, device, ins, specs) if fn is None else (fn, False, REFERENCE)
        self.mutated = [ins[i] for i in sig.mutates]
        self.sync = op.stateful or self.densify or not all(s.fixed for s in (*specs, *self.mutated))
        self.work = 0.0 if None in [s.shape for s in (*ins, *specs)] else infer.op_cost(op, p, ins, specs)

    # -- check -------------------------------------------------------------------------------------------------
    def check(self, outs: Sequence[Any], ctx: Context, read: Sequence[Any] = ()) -> None:
        """Refuse arrays given as `out` that do not fit, or must not be written, such as what a gradient will `read`."""
        name = self.op.name
        if not self.visible <= len(outs) <= self.n_out:
            raise error(ValueError, f"operator {name}: {len(outs)} arrays given as out, it has {self.visible} outputs")
        for o, spec in zip(outs, self.specs):
            if not isinstance(o, Array):
                raise error(TypeError, f"operator {name}: out must be an array, got {type(o).__name__}")
            if o._st.ctx is not ctx and not together(ctx, o._st.ctx):
                raise error(ValueError, f"operator {name}: out is on {o._st.ctx}, the operator runs on {ctx}")
            if spec.shape is not None and tuple(o._data.shape) != spec.shape:
                raise error(
                    ValueError, f"operator {name}: out has shape {tuple(o._data.shape)}, the result {spec.shape}"
                )
            if o._data.dtype != spec.dtype and self.op.input_slots:  # what has no inputs fills whatever it is given
                raise error(
                    TypeError,
                    f"operator {name}: out is {o._data.dtype}, the result {spec.dtype}; give an out of that dtype",
                )
            guard_write(o, f"operator {name} with out=", read)

    def usable(self, device: Any, sig: Any, outs: Sequence[Any], datas: Sequence[Any], mixed: bool) -> list[Any]:
        """The given outputs that a kernel may write directly: of the right kind, and not read by it unless declared.

        Of those that overlap one another, the later ones are written afterwards, in their order. `mixed`: different
        arrays may overlap.
        """
        alias = self.op.alias
        readers: dict[int, list[str]] = {}
        for d, name in zip(datas, sig.inputs):
            readers.setdefault(id(d), []).append(name)
        found: list[Any] = []
        written: dict[int, Any] = {}
        for o, spec, name in zip(outs, self.specs, sig.outputs):
            data = o._data
            free = (
                not isinstance(data, Sparse)
                and id(data) not in written
                and all(alias.get(n) == name for n in readers.get(id(data), ()))
            )
            if free and mixed:
                free = not overlaps(device, data, [d for d in (*datas, *written.values()) if d is not data])
            found.append(data if free and _same(data, spec) else None)
            written[id(data)] = data
        return found

    # -- run ---------------------------------------------------------------------------------------------------
    def run(
        self,
        k: OpContext,
        p: Params,
        datas: list[Any],
        given: Sequence[Any] | None = None,
        share: bool = False,
        mixed: bool = True,
    ) -> tuple[list[Any], Any]:
        """Run the kernel now.

        Parameters
        ----------
        k : OpContext
        p : Params
        datas : list
            The inputs' values.
        given : sequence, optional
            Arrays for a kernel that writes; None for those that are to be made.
        share : bool
            Results may be views of inputs.
        mixed : bool
            Different arrays may overlap.

        Returns
        -------
        list, state
            Outputs followed by mutated values, of declared dtype and shape; what a stateful operator keeps.
        """
        mutates, saved = p._sig.mutates, None
        if self.densify:
            datas = [d.todense(k.xp) if getattr(d, "stype", "default") != "default" else d for d in datas]
        mixed = bool(mutates) and (mixed or len({*map(id, datas)}) < len(datas))
        if mixed:  # what lies in memory that it updates is read from a copy
            updated = [datas[i] for i in mutates]
            datas = [
                d.copy()
                if i not in mutates and not isinstance(d, (Like, Sparse)) and overlaps(k.device, d, updated)
                else d
                for i, d in enumerate(datas)
            ]
        if self.out:
            return self._run_out(k, p, datas, given, mutates, mixed)
        r = self.fn(k, p, *datas)
        if self.op.stateful:
            r, saved = r
        values = listed(r, self.n_all)
        for i, v in enumerate(values):
            if v is None:
                self._none(i, k, p)
            else:
                values[i] = conform(
                    k,
                    v,
                    self.specs[i] if i < self.n_out else self.mutated[i - self.n_out],
                    datas,
                    share and self.op.view,
                )
        if self.n_out > 1 and not share:
            values[: self.n_out] = _parted(k.device, values[: self.n_out])
        return values, saved

    def _run_out(
        self,
        k: OpContext,
        p: Params,
        datas: list[Any],
        given: Sequence[Any] | None,
        mutates: Sequence[int],
        mixed: bool,
    ) -> tuple[list[Any], Any]:
        empty, index, wanted = k.device.empty, k.ctx.device_id, k.wanted
        outs: list[Any] = []
        for i, spec in enumerate(self.specs):
            place = given[i] if given is not None and i < len(given) else None
            if place is None and (wanted is None or wanted[i]):
                place = empty(spec.shape, spec.dtype, index)
            outs.append(place)
        if mixed:
            updated = [datas[i] for i in mutates]
            for j, i in enumerate(mutates):
                if overlaps(k.device, datas[i], updated[:j]):
                    datas[i] = datas[i].copy()  # written back afterwards
        outs += [datas[i] for i in mutates]
        before = [*outs]
        r = self.fn(k, p, outs, *datas)
        return (outs, r) if self.op.stateful else (kept(outs, before, r), None)

    def _none(self, i: int, k: OpContext, p: Params) -> None:
        if i < self.visible and (k.wanted is None or k.wanted[i]):
            raise error(ValueError, f"it returned None for output '{p._sig.outputs[i]}'")

    # -- bind --------------------------------------------------------------------------------------------------
    def bind(self, k: OpContext, p: Params, ins: Sequence[Any], outs: list[Any]) -> Callable[[], Any]:
        """A function without arguments that computes `outs` (its outputs, then what it updates) from `ins`.

        In both lists, others may take an array's place later.

        For dense values of known shapes, and an operator without state. Who calls it has ordered what it reads and
        writes, and made its device the active one.
        """
        return (
            _writing(self.fn, k, p, outs, ins)
            if self.out
            else (self._one if len(outs) == 1 else self._several)(k, p, ins, outs)
        )

    def _one(self, k: OpContext, p: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], Any]:
        fn, copy, spec = self.fn, k.device.copy, (self.specs[0] if self.n_out else self.mutated[0])
        cls, dtype, shape = outs[0].__class__, spec.dtype, spec.shape

        def call() -> None:
            v = fn(k, p, *ins)
            if v.__class__ is not cls or v.dtype is not dtype or v.shape != shape:
                v = conform(k, listed(v, 1)[0], spec, (), True)
            copy(v, outs[0])

        return call

    def _several(self, k: OpContext, p: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], Any]:
        fn, copy, specs, share = self.fn, k.device.copy, [*self.specs, *self.mutated], len(self.mutated) < 2

        def call() -> None:
            values, states = listed(fn(k, p, *ins), len(specs)), () if share else outs[self.n_out :]
            # All of them first: what one state becomes may lie where another one was.
            values = [v if v is None else conform(k, v, spec, states, share) for v, spec in zip(values, specs)]
            for i, (v, out) in enumerate(zip(values, outs)):
                if v is None:
                    self._none(i, k, p)
                elif out is not None and v is not out:
                    copy(v, out)

        return call


def eager_call(op: Op, p: Params, device: Any, ins: Sequence[Spec]) -> BoundCall:
    """Infer and bind for arrays that nobody has planned; raises errors that name operator, inputs and device."""
    sig = op.signature(p)
    _, shapes = infer.op_shapes(op, p, [s.shape for s in ins])
    _, dtypes = infer.op_dtypes(op, p, [s.dtype for s in ins])
    stypes = infer.op_stypes(op, p, [s.stype for s in ins])
    if any(t is None for t in dtypes):
        raise error(
            TypeError,
            f"operator {op.name}: the dtype of its output cannot be inferred from {describe(sig.inputs, ins)}",
        )
    specs = [Spec(s if infer.known(s) else None, t, st) for s, t, st in zip(shapes, dtypes, stypes)]
    call = BoundCall(op, p, device, ins, specs)
    if engine.it.naive:
        call.fn = ended(call.fn, Context(device.type, 0))
    call.fn = observed(call.fn, op.name, Context(device.type, 0), ins, specs)
    call.lean = not (call.sync or sig.random) and call.n_all == call.n_out == 1 and call.place == device.type
    if call.lean:
        call.shape, call.dtype, call.array = specs[0].shape, specs[0].dtype, device.array_type
        call.value = _value(call, device)
    return call


def _kernel(
    op: Op, p: Params, device: Any, ins: Sequence[Spec], specs: Sequence[Spec]
) -> tuple[Callable[..., Any], bool, str]:
    """The kernel that is best: function, whether it writes into given arrays, whose it is.

    The reference, where shapes that only running tells leave nothing to choose by, or a kernel that writes no places.
    """
    if op.body is None or None not in [s.shape for s in ins]:
        found = tables.kernels.resolve(op, device, p, ins)
        if not found[1] or all(s.fixed for s in specs):
            return found
        if op.body is None or device.xp is None:
            raise error(ValueError, f"operator {op.name}: a kernel with out=True needs known output shapes")
    return op.body, False, REFERENCE


def check_dtypes(op: Op, device: Any, specs: Sequence[Spec]) -> None:
    """Refuse what a device does not have."""
    has = device.dtypes
    if has is not None and any(s.dtype not in has for s in specs):
        missing = next(s.dtype for s in specs if s.dtype not in has)
        raise error(
            TypeError,
            f"operator {op.name}: device {device.type!r} has no {missing}; it has {', '.join(sorted(map(str, has)))}",
        )


def ended(fn: Callable[..., Any], ctx: Context) -> Callable[..., Any]:
    """A function, or a body whose `k` tells the index, that ends with the queue of its device."""
    device = ctx.device
    if not device.async_:
        return fn

    def call(*args: Any) -> Any:
        r = fn(*args)
        device.synchronize(args[0].ctx.device_id if args and args[0].__class__ is OpContext else ctx.device_id)
        return r

    return call


def _value(call: BoundCall, device: Any) -> Callable[..., Any]:
    """The function of the short way: allocates for kernels that write, makes the device of a queue the active one."""
    fn, shape, dtype, empty, activate = call.fn, call.shape, call.dtype, device.empty, device.activate

    def made(k: OpContext, p: Params, *datas: Any) -> Any:
        out = empty(shape, dtype, k.ctx.device_id)
        outs = [out]
        r = fn(k, p, outs, *datas)
        if r is not None or len(outs) != 1 or outs[0] is not out:
            kept(outs, [out], r)
        return out

    value = made if call.out else fn
    if not device.async_:
        return value

    def launched(k: OpContext, p: Params, *datas: Any) -> Any:
        activate(k.ctx.device_id)
        return value(k, p, *datas)

    return launched


def _writing(fn: Any, k: Any, p: Any, before: list[Any], ins: Sequence[Any]) -> Callable[[], Any]:
    # One array is the common case, and what a step costs beside its kernel is counted in tenths of a microsecond.
    def call() -> None:
        outs = [*before]
        r = fn(k, p, outs, *ins)
        if r is not None or any(map(is_not, outs, before)) or len(outs) != len(before):
            kept(outs, before, r)

    def one() -> None:
        out = before[0]
        outs = [out]
        r = fn(k, p, outs, *ins)
        if r is not None or len(outs) != 1 or outs[0] is not out:
            kept(outs, before, r)

    return one if len(before) == 1 else call


def _same(data: Any, spec: Spec) -> bool:
    # A kernel that writes gets whole arrays: it may look at them in another shape.
    return bool(
        data.shape == spec.shape
        and data.dtype == spec.dtype
        and getattr(getattr(data, "flags", None), "c_contiguous", True)
    )


def listed(r: Any, n: int) -> list[Any]:
    """What a body returned, as the list of the `n` values that are declared."""
    values = list(r) if isinstance(r, (tuple, list)) else [r]
    if len(values) != n:
        raise error(ValueError, f"it returned {len(values)} values; {n} are declared")
    return values


def kept(outs: list[Any], before: list[Any], r: Any) -> list[Any]:
    """The arrays that a kernel with ``out=True`` was given, unless it replaced one or returned another."""
    if (
        [*map(id, outs)] != [*map(id, before)]
        or r is not None
        and not {*map(id, r if isinstance(r, (tuple, list)) else [r])} <= {*map(id, before)}
    ):
        raise error(
            TypeError,
            "it replaced an array of `outs` or returned one, which would be lost; "
            "with out=True it writes into them: outs[0][...] = …",
        )
    return outs


def _parted(device: Any, values: list[Any]) -> list[Any]:
    """Outputs as a body returned them, with copies of those that lie in the memory of others."""
    dense = {i: v for i, v in enumerate(values) if v is not None and not isinstance(v, Sparse)}
    if all(map(device.owns, dense.values())) and len({*map(id, dense.values())}) == len(dense):
        return values
    return [
        v.copy() if i in dense and overlaps(device, v, [w for j, w in dense.items() if j != i]) else v
        for i, v in enumerate(values)
    ]


def conform(k: OpContext, v: Any, spec: Spec, datas: Sequence[Any], share: bool) -> Any:
    """A body's result as declared: cast, scalars given their shape, memory of its own in C order, for views of it."""
    if spec.stype != "default":
        return v
    dtype = getattr(v, "dtype", None)
    if isinstance(v, (np.generic, float, int)):
        v = k.xp.asarray(v, dtype=spec.dtype)
        return v.reshape(spec.shape) if spec.shape else v
    if (
        dtype is None
        or isinstance(v, Array)
        or getattr(dtype, "kind", "f") in "cmMOSU"
        or isinstance(v, np.ndarray)
        and v.__class__ is not np.ndarray
        and k.device.array_type is np.ndarray
    ):
        raise error(
            TypeError,
            f"it returned a {type(v).__name__}{f' of {dtype}' if dtype else ''}; "
            f"an array of k.xp is needed, of {spec.dtype}",
        )
    if dtype != spec.dtype:
        v = v.astype(spec.dtype)
    if spec.shape is not None and v.shape != spec.shape:
        if v.ndim == 0 and spec.size == 1 or v.shape == (1,) and spec.shape == ():
            v = v.reshape(spec.shape)
        else:
            raise error(
                ValueError,
                f"it returned shape {tuple(v.shape)}; {spec.shape} is declared, by "
                "its shape rule or, without one, by the shape of its inputs",
            )
    return (
        v
        if share
        or getattr(getattr(v, "flags", None), "c_contiguous", True)
        and k.device.writable(v)
        and not overlaps(k.device, v, datas)
        else v.copy()
    )
