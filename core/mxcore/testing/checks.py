"""The checks of the conformance kit. Each is a function of a :class:`Case` that raises AssertionError.

They are entered in :data:`CHECKS` in the order in which they make sense: an operator that fails an early one is not
worth trying on the later ones.
"""

from __future__ import annotations

import gc
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from .. import autograd
from .._core import rng, tables
from .._core.call import OpContext
from .._core.device import Device
from .._core.errors import MXNetError, in_rule
from .._core.gradplan import plan_of
from .._core.graph import topo, variable
from .._core.infer import known
from .._core.kernels import Spec
from .._core.transfer import overlaps
from ..array_api import ArrayAPINamespace
from ..composing import GraphF, Value
from ..executor.program import infer_all
from ..ndarray import NDArray
from ..parameters import GraphParam, strings, unwritten
from .case import Case
from .gradcheck import check_grads, grad_of
from .strict_xp import StrictDevice
from .tolerance import compare

__all__ = ["CHECKS", "check"]

#: Name -> check, in order.
CHECKS: dict[str, Callable[[Case], None]] = {}


def check(name: str) -> Callable[[Callable[[Case], None]], Callable[[Case], None]]:
    """Enter a check under a name."""

    def enter(fn: Callable[[Case], None]) -> Callable[[Case], None]:
        CHECKS[name] = fn
        return fn

    return enter


def _has_no_text(case: Case, name: str) -> bool:
    """Whether files do not hold a parameter."""
    return isinstance(case.op.params[name], GraphParam) or name in unwritten(case.op, case.p)


def _named(case: Case) -> list[str]:
    """Names of outputs, then of mutated inputs."""
    return [*case.sig.outputs, *[f"{case.sig.inputs[i]} (mutated)" for i in case.sig.mutates]]


def _wait(arrays: Sequence[NDArray]) -> None:
    for x in arrays:
        x.wait_to_read()


def _compare(case: Case, got: list[Any], want: list[Any], what: str, factor: float = 1.0) -> None:
    for name, a, b in zip(_named(case), got, want):
        if a is not None and b is not None:
            compare(a, b, case.dtype, f"{what}, {name}", case.sample.tol * case.widen * factor, step=case.sample.step)


def _same_bytes(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


@check("declared")
def declared(case: Case) -> None:
    """The operator runs; outputs have the declared shapes and dtypes; parameters survive the way through strings."""
    shapes, dtypes = case.declared()
    outs = case.run(case.arrays())
    for name, y, s, t in zip(case.sig.outputs, outs, shapes, dtypes):
        if s is not None and tuple(y.shape) != s:
            raise AssertionError(f"output {name} has shape {y.shape}, declared is {s}")
        if np.dtype(y.dtype) != t:
            raise AssertionError(f"output {name} has dtype {np.dtype(y.dtype)}, declared is {t}")
    texts = strings(case.op, case.p)
    # Files hold parameters as they were written; of other values than plain ones the parameter makes the text.
    for written in (
        () if case.op.parser.rest else (texts, {n: case.op.params[n].format(getattr(case.p, n)) for n in texts})
    ):
        again = case.op.parse({n: getattr(case.p, n) if _has_no_text(case, n) else text for n, text in written.items()})
        for n in case.op.params:
            a, b = getattr(case.p, n), getattr(again, n)
            if (
                not _has_no_text(case, n)
                and a != b
                and not (a is None or isinstance(a, float) and abs(a - b) < 1e-6 * abs(a))
            ):
                raise AssertionError(f"parameter {n}={a!r} becomes {b!r} on the way through strings")


@check("value")
def value(case: Case) -> None:
    """Outputs and mutated inputs are the reference body's in float64; random outputs are plausible and repeat."""
    inputs = case.arrays()
    outs = case.run(inputs)
    got: list[Any] = [y.asnumpy() for y in outs]
    if case.op.random:
        again = [y.asnumpy() for y in case.run(case.arrays())]
        if not all(_same_bytes(a, b) for a, b in zip(got, again)):
            raise AssertionError("the same random key gave other numbers")
    if case.sample.check is not None:
        case.sample.check(case.host, got)
    elif case.op.body is not None and not case.op.stateful:
        want = case.reference()
        got += [None] * (case.sig.n_out - len(got))
        _compare(case, [*got, *[inputs[i].asnumpy() for i in case.sig.mutates]], want, "value")


@check("kernels")
def kernels(case: Case) -> None:
    """Every kernel that fits gives declared shape and dtype, the reference's values, and leaves inputs alone."""
    shapes, dtypes = case.declared()
    specs = [Spec(a.shape, a.dtype) for a in case.host]
    for kernel in tables.kernels.fitting(case.op, case.device, case.p, specs):
        k = OpContext(case.ctx, case.sample.train, None, (7, 0, 0) if case.op.random else None)
        datas = [case.device.from_host(a, case.ctx.device_id) for a in case.host]
        if kernel.out:
            outs = [case.device.empty(s, t, case.ctx.device_id) for s, t in zip(shapes, dtypes)]
            outs += [datas[i] for i in case.sig.mutates]
            kernel.fn(k, case.p, outs, *datas)
        else:
            r = kernel.fn(k, case.p, *datas)
            r = r[0] if case.op.stateful else r
            outs = [r] if case.sig.n_all == 1 and not isinstance(r, (tuple, list)) else list(r)
            # A kernel of ``mx.nd`` gives the twins of its operator a number as an array of one.
            if shapes[:1] == [()] and tuple(outs[0].shape) == (1,):
                outs[0] = outs[0].reshape(())
        for name, y, s, t in zip(case.sig.outputs, outs, shapes, dtypes):
            if s is not None and tuple(y.shape) != s:
                raise AssertionError(f"{kernel} gave output {name} shape {tuple(y.shape)}, declared is {s}")
            if y.dtype != t:
                raise AssertionError(f"{kernel} gave output {name} dtype {y.dtype}, declared is {t}")
        if case.sample.check is None and case.op.body is not None:
            full = [y.todense(case.device.xp) if hasattr(y, "todense") else y for y in outs]
            _compare(case, [case.device.to_host(y) for y in full], case.reference(), f"{kernel}")
        _unchanged(case, datas, f"{kernel}")
        if kernel.out and getattr(kernel.fn, "binds", None) is not None and None not in shapes:
            _bound_twice(case, kernel, k, shapes, dtypes)


def _bound_twice(case: Case, kernel: Any, k: OpContext, shapes: Sequence[Any], dtypes: Sequence[Any]) -> None:
    """What a kernel makes of a step finds the arrays that stand in its lists whenever it runs."""

    def fresh() -> tuple[list[Any], list[Any]]:
        datas = [case.device.from_host(a, case.ctx.device_id) for a in case.host]
        outs = [case.device.empty(s, t, case.ctx.device_id) for s, t in zip(shapes, dtypes)]
        return datas, [*outs, *[datas[i] for i in case.sig.mutates]]

    ins, outs = fresh()
    call = kernel.fn.binds(k, case.p, ins, outs)
    if call is None:
        return
    call()
    first = [*outs]
    told = [case.device.to_host(y).copy() for y in first]
    ins[:], outs[:] = fresh()
    call()
    if not all(_same_bytes(case.device.to_host(y), before) for y, before in zip(first, told)):
        raise AssertionError(f"{kernel}: the call that its `binds` made wrote to arrays that had been exchanged")
    if case.sample.check is None and case.op.body is not None:
        _compare(case, [case.device.to_host(y) for y in outs], case.reference(), f"{kernel}, bound, other arrays")


def _unchanged(case: Case, datas: list[Any], who: str) -> None:
    for i, (a, d) in enumerate(zip(case.host, datas)):
        if i not in case.sig.mutates and not _same_bytes(case.device.to_host(d), a):
            raise AssertionError(
                f"{who} wrote to its input {case.sig.inputs[i]}, which it does not declare in mutates="
            )


@check("half")
def half(case: Case) -> None:
    """What runs in float32 also runs in float16, or says with a TypeError that it does not."""
    if case.dtype != "float32" or case.op.stateful:
        return
    small = Case(case.op, case.sample, "float16", case.ctx)
    small.widen = 4
    if small.missing():
        return
    try:
        declared(small)
    except TypeError:
        return
    value(small)
    kernels(small)


@check("pure")
def pure(case: Case) -> None:
    """Inputs keep their values, except those in ``mutates=``; outputs do not share their memory."""
    inputs = case.arrays()
    outs = case.run(inputs)
    _unchanged(case, [x._data for x in inputs], "the operator")
    for i, x in enumerate(inputs):
        for name, y in zip(case.sig.outputs, outs):
            if overlaps(case.device, y._data, [x._data]) and y._data.size:
                raise AssertionError(f"output {name} lies in the memory of input {case.sig.inputs[i]}")


@check("portable")
def portable(case: Case) -> None:
    """The reference body keeps to the device contract: listed functions only, no hidden copy to the host."""
    if case.op.body is None or case.op.stateful:  # stateful ones run programs and user code on a context
        return
    device: Device = StrictDevice()
    inputs = [device.from_host(a, 0) for a in case.host]
    try:
        case.body(device, inputs)
    except (AttributeError, TypeError) as e:
        raise AssertionError(f"the reference body does not run on a strict device: {type(e).__name__}: {e}") from e


@check("strided")
def strided(case: Case) -> None:
    """Inputs that are not contiguous give the same results."""
    if not any(a.ndim and a.size for a in case.host):
        return
    pairs = [case.view(a) if a.ndim else (case.array(a), None) for a in case.host]
    want = [y.asnumpy() for y in case.run(case.arrays())]
    got = [y.asnumpy() for y in case.run([x for x, _ in pairs])]
    _compare(case, got, want, "with inputs that are not contiguous", 4)


def _without_rows(host: Sequence[Any]) -> list[Any]:
    """Inputs without rows: the first one, and those that have as many."""
    return [a[:0] if a.ndim and len(a) == len(host[0]) else a for a in host]


@check("empty")
def empty(case: Case) -> None:
    """Without rows it gives results of the declared shape, or is refused: by the rules, or by a ValueError.

    Where other inputs are left, which may be indices, it may be an IndexError. Libraries of the array API refuse in
    words of their own what NumPy refuses by a ValueError.
    """
    if not case.host or not case.host[0].ndim or not case.host[0].size:
        return
    small = Case(case.op, case.sample, case.dtype, case.ctx)
    small.host = _without_rows(case.host)
    try:
        shapes, _ = small.declared()
    except MXNetError:  # the rules refuse it
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, about a mean of nothing
            outs = small.run(small.arrays())
    except (ValueError, IndexError) as e:
        if "it returned" in str(e) or isinstance(e, IndexError) and not any(a.size for a in small.host):
            raise
        return
    except MXNetError:
        if not isinstance(case.device.xp, ArrayAPINamespace) or not any(a.size for a in small.host):
            raise
        return
    for name, y, s in zip(case.sig.outputs, outs, shapes):
        if s is not None and tuple(y.shape) != s:
            raise AssertionError(f"without elements, output {name} has shape {y.shape}, declared is {s}")


@check("out")
def out(case: Case) -> None:
    """``out=`` gets the same values, also as a view, whose frame is left alone, and as an input by ``alias``."""
    want = [y.asnumpy() for y in case.run(case.arrays())]
    if not want:
        return
    given = [case.array(np.full_like(y, 3)) for y in want]
    case.run(case.arrays(), out=given if len(given) > 1 else given[0])
    _compare(case, [y.asnumpy() for y in given], want, "with out=", 4)
    if all(y.ndim for y in want):
        pairs = [case.view(np.full_like(y, 3)) for y in want]
        case.run(case.arrays(), out=[y for y, _ in pairs] if len(pairs) > 1 else pairs[0][0])
        _compare(case, [y.asnumpy() for y, _ in pairs], want, "with out= a view", 4)
        if any(frame.asnumpy()[..., ::2].any() for _, frame in pairs):
            raise AssertionError("with out= a view, elements beside the view were written")
    for source, target in case.op.alias.items():
        if source in case.sig.index and target in case.sig.outputs[: len(want)]:
            inputs = case.arrays()
            i, j = case.sig.index[source], case.sig.outputs.index(target)
            if inputs[i].shape == want[j].shape and inputs[i].dtype == want[j].dtype and len(want) == 1:
                case.run(inputs, out=inputs[i])
                _compare(case, [None] * j + [inputs[i].asnumpy()], want, f"with out={source}", 4)


#: Of eight elements, which are copied over which.
_OVER = [
    (slice(0, 6), slice(2, 8)),
    (slice(2, 8), slice(0, 6)),
    (slice(0, 4), slice(0, 8, 2)),
    (slice(4, 8), slice(0, 8, 2)),
]


def _copies_over_itself(case: Case, a: np.ndarray[Any, Any]) -> None:
    device, before = case.device, np.resize(a.reshape(-1), 8)
    case.ctx.activate()
    for source, target in _OVER:
        whole, want = device.from_host(before.copy(), case.ctx.device_id), before.copy()
        want[target] = before[source]
        device.copy(whole[source], whole[target])
        if not np.array_equal(device.to_host(whole), want, equal_nan=a.dtype.kind in "fc"):
            raise AssertionError(
                f"Device.copy of {device.type!r} gives other values where the two are views of one array that "
                "overlap: the target gets what the source was before"
            )


@check("overlap")
def overlap(case: Case) -> None:
    """``out=`` as another array over an input gets the same values; the device tells that they overlap, and copies."""
    want = [y.asnumpy() for y in case.run(case.arrays())]
    if len(want) != 1 or not want[0].size:
        return
    for i, a in enumerate(case.host):
        if a.dtype != want[0].dtype or i in case.sig.like or i in case.sig.mutates or not a.size:
            continue
        inputs = case.arrays()
        inputs[i], given = case.two_over_one(a, want[0].shape, min(1, a.size - 1))
        if not case.device.shares(inputs[i]._data, given._data):
            raise AssertionError(
                f"Device.shares of {case.device.type!r} does not tell "
                "that two views of one array have memory in common; override it"
            )
        _copies_over_itself(case, a)
        case.run(inputs, out=given)
        _compare(case, [given.asnumpy()], want, f"with out= in the memory of input {case.sig.inputs[i]}", 4)


@check("wanted")
def wanted(case: Case) -> None:
    """Outputs that are wanted alone have the values that they have together."""
    n = case.sig.n_out
    if n < 2 or case.op.random or case.sig.visible != n:
        return
    want = [y.asnumpy() for y in case.run(case.arrays())]
    for i in range(n):
        try:
            outs = case.run_wanted(case.arrays(), tuple(j == i for j in range(n)))
        except (TypeError, AttributeError, RuntimeError) as e:
            raise AssertionError(
                f"output {case.sig.outputs[i]} wanted alone: {e}; of a kernel with out=True, `outs` holds None for an "
                "output that nobody reads, and `k.wanted` says which are read"
            ) from e
        if outs[i] is None:
            raise AssertionError(f"output {case.sig.outputs[i]}, wanted alone, did not come")
        compare(
            outs[i].asnumpy(), want[i], case.dtype, f"output {case.sig.outputs[i]} wanted alone", 4 * case.sample.tol
        )


def _flow(case: Case) -> list[bool] | None:
    """Which inputs take part in gradient checks; None if there is nothing to check."""
    wants = [w and i not in case.sig.like for i, w in enumerate(case.wants())]
    if not any(wants) or case.op.grad_rule is None or not case.has_gradient():
        return None
    return wants


@check("gradient")
def gradient_(case: Case) -> None:
    """The gradient is the derivative: along one random direction, in float64."""
    if case.dtype != case.sample.dtypes[-1] or case.op.random and not case.sample.train:
        return
    wants = case.wants()
    if not any(wants):
        return
    if case.op.grad_rule is None:
        return
    if not case.has_gradient():
        raise AssertionError(
            "the sample asks for a gradient, but the operator has no gradient rule; declare one, or grad=False"
        )
    check_grads(
        lambda *xs: case.call(xs),
        case.host,
        wrt=wants,
        ctx=case.ctx,
        train=case.sample.train,
        redraw=lambda i: case.sample.arrays("float64", i),
        rtol=1e-5 * case.sample.tol,
        names=case.sig.inputs,
    )


@check("second gradient")
def second_gradient(case: Case) -> None:
    """So is the gradient of the gradient, unless the operators in it have no gradient, which they must say clearly."""
    wants = _flow(case)
    if wants is None or case.dtype != case.sample.dtypes[-1] or (case.op.random and not case.sample.train):
        return
    try:
        check_grads(
            lambda *xs: case.call(xs),
            case.host,
            wrt=wants,
            ctx=case.ctx,
            train=case.sample.train,
            order=(2,),
            redraw=lambda i: case.sample.arrays("float64", i),
            rtol=1e-5 * case.sample.tol,
            names=case.sig.inputs,
        )
    except NotImplementedError as e:
        if "not differentiable" not in str(e):
            raise


@check("grad_req")
def grad_req(case: Case) -> None:
    """'write' replaces, 'add' adds to, however often, and 'null' leaves the gradient."""
    wants = _flow(case)
    if wants is None:
        return
    found: dict[str, list[Any]] = {}
    for req in ("write", "add"):
        xs = case.arrays()
        for x, w in zip(xs, wants):
            if w:
                x.attach_grad(req)
                grad_of(x)[:] = 2
        for times in (1, 2):
            for i in case.sig.mutates:
                xs[i][:] = case.array(case.host[i])
            case.backward(case.record(xs, ["none"] * len(xs)))
            found[f"{req} {times}"] = [grad_of(x).asnumpy() for x, w in zip(xs, wants) if w]
    for first, again, once, twice in zip(*found.values()):
        compare(again, first, case.dtype, "gradient with grad_req='write' of a second backward", 4 * case.sample.tol)
        for times, got in ((1, once), (2, twice)):
            compare(
                got,
                times * first.astype(np.float64) + 2,
                case.dtype,
                f"gradient with grad_req='add' of {times} backward onto 2",
                4 * case.sample.tol,
            )
    xs = case.arrays()
    outs = case.record(xs, ["null" if w else "none" for w in wants])
    marked = [x for x, w in zip(xs, wants) if w and x.grad is not None]
    for x in marked:
        grad_of(x)[:] = 2
    case.backward(outs)
    if any((grad_of(x).asnumpy() != 2).any() for x in marked):
        raise AssertionError("a gradient with grad_req='null' was written")
    for i, first in enumerate(wants):
        if first and sum(wants) > 1:  # one variable alone: the other gradients must not be needed for it
            xs = case.arrays()
            case.backward(case.record(xs, ["write" if j == i else "none" for j in range(len(xs))]))
            compare(
                grad_of(xs[i]).asnumpy(),
                found["write 1"][sum(wants[:i])],
                case.dtype,
                f"gradient of {case.sig.inputs[i]} asked for alone",
                4 * case.sample.tol,
            )


@check("rule")
def rule(case: Case) -> None:
    """The gradient rule composes in a graph (it reads no shapes) and gives gradients of the inputs' shapes and dtypes.

    It uses ``like_x`` for shape-only inputs alone.
    """
    op = case.op
    if not op.grad_rule or op.backward_rule is not None:
        return
    plan = plan_of(op)
    F = GraphF("rule")
    ins = [Value((variable(n), 0), F) for n in case.sig.inputs]
    outs = [Value((variable(f"out_{n}"), 0), F) for n in case.sig.outputs]
    dys = [Value((variable(f"d_{n}"), 0), F) for n in case.sig.outputs]
    try:
        grads = plan.gradients(case.p, F, (True,) * len(ins), dys, ins, outs, None)
    except MXNetError as e:
        raise in_rule(e, op.name) from e.__cause__
    except (AttributeError, TypeError) as e:
        raise AssertionError(f"the gradient rule does not compose in a graph: {type(e).__name__}: {e}") from e
    for name, g in zip(case.sig.inputs, grads):
        if g is not None and not isinstance(g, Value):
            raise AssertionError(f"the gradient of input {name} is {g!r}; an array or None is needed")
    _gradients_fit(case, grads)
    likes = {id(v.entry[0]): n for v, n, s in zip(ins, case.sig.inputs, case.sig.slots) if s in plan.likes}
    heads = [g.entry for g in grads if g is not None]
    for head, _ in heads:
        if id(head) in likes:
            raise AssertionError(f"the gradient rule returns like_{likes[id(head)]}, which has a shape but no values")
    for n in topo(heads):
        for i, (m, _) in enumerate(n.inputs):
            if id(m) in likes and n.op is not None and i not in n.params._sig.like:
                raise AssertionError(
                    f"the gradient rule gives like_{likes[id(m)]} to input '{n.params._sig.inputs[i]}' of {n.op.name}, "
                    "which needs values; keep the input itself, or use an operator that takes it with '~'"
                )


def _gradients_fit(case: Case, grads: Sequence[Any]) -> None:
    """Gradients, as a graph over the variables of `rule`, have shape and dtype of inputs that have gradients."""
    shapes, dtypes = case.declared()
    facts: dict[str, Any] = {n: (a.shape, a.dtype) for n, a in zip(case.sig.inputs, case.host)}
    facts |= {f"{kind}_{n}": fact for n, *fact in zip(case.sig.outputs, shapes, dtypes) for kind in ("out", "d")}
    wants = case.wants()
    heads = [g.entry for g, w in zip(grads, wants) if g is not None and w]
    found, kinds, _ = infer_all(
        heads, {n: s for n, (s, _) in facts.items() if s is not None}, {n: t for n, (_, t) in facts.items()}, {}
    )
    for name, a, g, w in zip(case.sig.inputs, case.host, grads, wants):
        if g is None or not w:
            continue
        shape, dtype = found.get(g.entry), kinds.get(g.entry)
        if shape is not None and known(shape) and tuple(shape) != a.shape:
            raise AssertionError(f"the gradient of input {name} has shape {tuple(shape)}, the input {a.shape}")
        if dtype is not None and np.dtype(dtype) != a.dtype:
            raise AssertionError(f"the gradient of input {name} has dtype {np.dtype(dtype)}, the input {a.dtype}")


def _node(case: Case) -> tuple[list[str], Any]:
    """Names of variables, and a symbol that runs the operator on them."""
    from .. import symbol

    names = [f"in{i}" for i in range(len(case.host))]
    return names, symbol.compose(
        case.op.name, [symbol.Variable(n) for n in names], {**case.kwargs, "name": "node"}, case.op
    )


@check("graph")
def graph(case: Case) -> None:
    """In a graph, outputs and gradients are those of eager execution."""
    if case.sig.visible == 0 or any(a.size == 0 for a in case.host):  # a zero in a shape means unknown there
        return
    wants = _flow(case) or [False] * len(case.host)
    names, sym = _node(case)
    modes = {case.sample.train, True} if any(wants) else {case.sample.train}
    for train in modes:  # gradients of a graph need the training mode
        xs = case.arrays()
        outs = case.record(xs, ["write" if w else "none" for w in wants], train)
        args = dict(zip(names, case.arrays()))
        aux = {n: args.pop(n) for n in sym.list_auxiliary_states()}
        reqs = {n: "write" if w else "null" for n, w in zip(names, wants) if n in args}
        room = {n: case.array(np.zeros_like(a)) for n, a in zip(names, case.host) if reqs.get(n) == "write"}
        bound = sym.bind(case.ctx, args, args_grad=room or None, grad_req=reqs, aux_states=aux)
        rng.seed(7)
        got = [y.asnumpy() for y in bound.forward(is_train=train)]
        for name, a, b in zip(case.sig.outputs, got, outs):
            compare(a, b.asnumpy(), case.dtype, f"output {name} in a graph", 4 * case.sample.tol)
        if train and any(wants):
            case.backward(outs, train)
            bound.backward(case.head_grads(outs))
            for i in (i for i, w in enumerate(wants) if w):
                compare(
                    room[names[i]].asnumpy(),
                    grad_of(xs[i]).asnumpy(),
                    case.dtype,
                    f"gradient of {case.sig.inputs[i]} in a graph",
                    4 * case.sample.tol,
                )


@check("fused")
def fused(case: Case) -> None:
    """Compiled into a chain, also over few elements, outputs and gradients are those of single operators."""
    if "expr" not in case.op.facets or case.sig.visible != 1 or case.sig.mutates or any(a.size == 0 for a in case.host):
        return
    from ..executor import passes_off

    names, sym = _node(case)
    chain = sym * 0.5 + 1
    found = []
    device, was = case.device, case.device.__dict__.get("fused_from")
    device.fused_from = 0
    try:
        for unfused in (nullcontext(), passes_off("fuse")):
            with unfused:
                args = dict(zip(names, case.arrays()))
                room = (
                    {n: case.array(np.zeros_like(a)) for n, a in zip(names, case.host) if a.dtype.kind == "f"}
                    if _flow(case)
                    else {}
                )
                bound = chain.bind(
                    case.ctx,
                    args,
                    args_grad=room or None,
                    grad_req={n: "write" if n in room else "null" for n in names},
                )
            y = bound.forward(is_train=bool(room))[0]  # compiles, where `fused_from` counts
            if room:
                bound.backward([case.array(np.ones(y.shape, y.dtype))])
            found.append([y.asnumpy(), *(room[n].asnumpy() for n in room)])
    finally:
        if was is None:
            del device.fused_from
        else:
            device.fused_from = was
    for a, b in zip(*found):
        compare(
            a, b, case.dtype, "in a fused chain, where `expr` stands for the body", 4 * case.sample.tol * case.widen
        )


@check("elsewhere")
def elsewhere(case: Case) -> None:
    """On a device with several queues it runs where its arrays are, whatever index the thread made active last."""
    device, here = case.device, case.ctx.device_id
    if not device.async_ or device.count() < 2:
        return
    other = 1 if here == 0 else 0
    wants = _flow(case) or [False] * len(case.host)
    want = [y.asnumpy() for y in case.run(case.arrays())]
    xs = case.arrays()
    device.activate(other)
    outs = case.run(xs)
    _compare(case, [y.asnumpy() for y in outs], want, f"while {device.type}({other}) is active", 4)
    if any(wants):
        xs = case.arrays()
        device.activate(other)
        outs = case.record(xs, ["write" if w else "none" for w in wants])
        heads = [y for y in outs if y._entry is not None and y._entry[0].flows]
        device.activate(other)
        if heads:
            autograd.backward(heads, train_mode=case.sample.train)
    if case.sig.visible and not any(a.size == 0 for a in case.host):
        names, sym = _node(case)
        args = dict(zip(names, case.arrays()))
        aux = {n: args.pop(n) for n in sym.list_auxiliary_states()}
        device.activate(other)
        bound = sym.bind(case.ctx, args, grad_req="null", aux_states=aux)
        device.activate(other)
        [y.wait_to_read() for y in bound.forward(is_train=case.sample.train)]


@check("bound grad_req")
def bound_grad_req(case: Case) -> None:
    """The same in a bound graph, of two forwards and backwards each."""
    wants = _flow(case)
    if (
        wants is None
        or case.dtype != case.sample.dtypes[-1]
        or case.sig.visible == 0
        or any(a.size == 0 for a in case.host)
    ):
        return
    names, sym = _node(case)
    found: dict[str, list[Any]] = {}
    for req in ("write", "add", "null"):
        room = {n: case.array(np.full_like(a, 2)) for n, a, w in zip(names, case.host, wants) if w}
        args = dict(zip(names, case.arrays()))
        states = {n: args.pop(n) for n in sym.list_auxiliary_states()}
        bound = sym.bind(
            case.ctx, args, args_grad=room, grad_req={n: req if n in room else "null" for n in args}, aux_states=states
        )
        for _ in range(2):
            for i in case.sig.mutates:
                {**args, **states}[names[i]][:] = case.array(case.host[i])
            rng.seed(7)
            outs = bound.forward(is_train=True)
            bound.backward(case.head_grads(outs))
        found[req] = [g.asnumpy() for g in room.values()]
    for name, wrote, added, left in zip([n for n, w in zip(case.sig.inputs, wants) if w], *found.values()):
        compare(
            added,
            2 * wrote.astype(np.float64) + 2,
            case.dtype,
            f"gradient of {name} with grad_req='add', twice onto 2",
            4 * case.sample.tol,
        )
        if (left != 2).any():
            raise AssertionError(f"the gradient of {name} with grad_req='null' was written in a graph")


def _gradients(case: Case) -> list[NDArray]:
    wants = _flow(case)
    if wants is None:
        return []
    xs = case.arrays()
    outs = case.record(xs, ["write" if w else "none" for w in wants])
    heads = [y for y in outs if y._entry is not None and y._entry[0].flows]
    with case.ctx:
        return autograd.grad(heads, [x for x, w in zip(xs, wants) if w]) if heads else []


@check("owned")
def owned(case: Case) -> None:
    """What a call gives is its caller's, who may write to it: that of the next one lies elsewhere, gradients too."""
    ways: dict[str, Callable[[], list[NDArray]]] = {
        "results": lambda: case.run(case.arrays()),
        "gradients": lambda: _gradients(case),
    }
    for what, make in ways.items():
        first, second = ([y._data for y in make() if y.stype == "default" and y.size] for _ in range(2))
        if any(case.device.shares(a, b) for a in first for b in second):
            raise AssertionError(
                f"{what} of two calls lie in the same memory: who writes to one changes the other; a body, a kernel or "
                "a rule that keeps an array must give a copy of it"
            )


@check("leak")
def leak(case: Case) -> None:
    """When the last output is dropped, no buffer of the call or of its gradients stays alive."""
    wants = _flow(case) or [False] * len(case.host)
    case.backward(case.record(case.arrays(), ["write" if w else "none" for w in wants]))  # fill the caches
    was = gc.isenabled()
    gc.disable()
    try:
        xs = case.arrays()
        outs = case.record(xs, ["write" if w else "none" for w in wants])
        _wait(outs)  # no loop variable here, which would hold the last one
        watched = [(f"input {n}", _ref(x)) for n, x in zip(case.sig.inputs, xs)]
        watched += [(f"output {n}", _ref(y)) for n, y in zip(case.sig.outputs, outs)]
        case.backward(outs)
        del xs, outs
        for name, refs in watched:
            for _ in range(50):  # what still runs on the device may hold its arguments for a moment
                if all(r() is None for r in refs):
                    break
                case.device.synchronize(case.ctx.device_id)
                time.sleep(0.001)
            else:
                raise AssertionError(f"the buffer of {name} is still held after everything was dropped")
    finally:
        if was:
            gc.enable()


def _ref(x: Any) -> list[Any]:
    refs = [weakref.ref(x)]
    try:
        refs.append(weakref.ref(x._data))
    except TypeError:  # the device's arrays take no weak references
        pass
    return refs
