"""``Custom``: operators that users write in Python (``mx.operator``), on arrays and in graphs.

They run in the caller's thread once their inputs are ready, never on an engine worker, so they may call ``asnumpy``.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._core.array import Storage, faces
from ..._core.errors import error, suggest
from ..._core.op import op
from ..._core.params import Params
from ..._core.state import state
from ..._interrupts import let_through
from ...parameters import Rest, Str
from ...typing import Array, Call

__all__ = ["PROPS", "enter", "prop_of"]


#: op_type -> class derived from ``mx.operator.CustomOpProp``.
PROPS: dict[str, type] = {}


def prop_of(p: Params) -> Any:
    """The property object of one set of parameters, made on first use."""
    found = p.__dict__.get("_prop")
    if found is None:
        op_type: str = p.op_type
        cls = PROPS.get(op_type)
        if cls is None:
            raise error(
                KeyError,
                f"Custom: no operator is registered as {op_type!r}{suggest(op_type, PROPS)}; "
                "decorate its CustomOpProp with mx.operator.register",
            )
        given = dict(p.rest)
        try:
            found = p._prop = cls(**given)
        except (TypeError, ValueError) as e:
            raise error(
                type(e), f"Custom: {cls.__name__} of {op_type!r} cannot be made from {given or 'no parameters'}: {e}"
            ) from e
        for method in ("list_arguments", "list_outputs", "list_auxiliary_states"):
            with _user_code(p, method):
                names = getattr(found, method)()
                if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
                    raise TypeError(f"it must return a list of names, got {names!r}")
    return found


def enter(op_type: str, cls: type) -> None:
    """Register a class; an older one of the same name is forgotten."""
    PROPS[op_type] = cls
    custom.parser.cache.clear()
    custom.bound = {}


def _array(data: Any, ctx: Any) -> Any:
    """A value as user code sees it: an array of ``mx.np`` where this thread's are those."""
    x: Any = faces["default"](data, Storage(ctx))
    return x.as_np_ndarray() if state.extra.get("np_array") else x


@contextlib.contextmanager
def _user_code(p: Params, what: str, otherwise: type[Exception] = RuntimeError) -> Iterator[None]:
    """What a user's method runs in: an error names operator and method, and tells where it was raised."""
    try:
        yield
    except Exception as e:
        let_through(e)
        kind = next(
            (c for c in (ValueError, TypeError, IndexError, KeyError, NotImplementedError) if isinstance(e, c)),
            otherwise,
        )
        where = "".join(
            traceback.format_list([f for f in traceback.extract_tb(e.__traceback__) if f.filename != __file__])
        )
        raise error(
            kind,
            f"{what} of the custom operator {p.op_type!r} ({type(prop_of(p)).__name__}) raised "
            f"{type(e).__name__}: {e}\n{where.rstrip()}",
        ) from e


@contextlib.contextmanager
def _unrecorded(ctx: Any, train: bool) -> Iterator[None]:
    """What user code runs in: nothing is recorded, new arrays are made where the operator runs."""
    was = (state.record, state.train)
    state.record, state.train = False, train
    try:
        with ctx:
            yield
    finally:
        state.record, state.train = was


@op(
    "Custom",
    inputs="data*",
    labels="outputs",
    op_type=Str(),
    rest=Rest(),
    stateful=True,
    arg_names=lambda p: [*prop_of(p).list_arguments(), *prop_of(p).list_auxiliary_states()],
    outputs=lambda p: prop_of(p).list_outputs(),
    aux=lambda p: prop_of(p).list_auxiliary_states(),
    mutates=lambda p: prop_of(p).list_auxiliary_states(),
)
def custom(k: Call, p: Params, *data: Array) -> Any:
    """Apply an operator written in Python.

    Parameters
    ----------
    data : arrays
        As the operator's ``list_arguments`` and ``list_auxiliary_states`` name them.
    num_args : int
        How many; counted for you.
    op_type : str
        The name under which it was registered.
    rest : str
        Further keywords go to the constructor of its CustomOpProp, as strings.
    """
    prop = prop_of(p)
    n = len(prop.list_arguments())
    # A program uses its memory again, and user code may keep what it gets.
    arrays = [
        _array(d.copy() if k.shapes is not None and i < n and not k.device.owns(d) else d, k.ctx)
        for i, d in enumerate(data)
    ]
    ins, aux = arrays[:n], arrays[n:]
    shapes, dtypes = [list(x.shape) for x in arrays], [x.dtype for x in arrays]
    out_shapes, out_types = _infer(p, "shape", shapes[:n])[1], _infer(p, "type", dtypes[:n])[1]
    # In a program the parameters belong to one executor, which has one operator for its life.
    kept = p.__dict__ if k.shapes is not None else {}
    worker = kept.get("_worker")
    if worker is None:
        _check_storage(p, prop, n)
        with _user_code(p, "create_operator"):
            worker = kept["_worker"] = prop.create_operator(k.ctx, shapes, dtypes)
        _ignores_grads(p)  # says what is wrong with it, as in graphs
    outs = [_array(k.xp.zeros(tuple(s), t), k.ctx) for s, t in zip(out_shapes, out_types)]
    with _unrecorded(k.ctx, k.is_train), _user_code(p, "forward"):
        # The lists are the user's: `backward` gets the arrays again, whatever stands in them then.
        worker.forward(is_train=k.is_train, req=["write"] * len(outs), in_data=[*ins], out_data=outs, aux=[*aux])
        values = _dense(outs, "out_data", len(out_shapes))
        for x in (*values, *aux):
            x.wait_to_read()
    return [x._data for x in values] + [None] * len(aux), (worker, ins, outs)


def _dense(given: list[Any], name: str, n: int) -> list[Any]:
    """What user code has left in a list, as dense arrays: programs have no place for others."""
    if len(given) != n or not all(hasattr(x, "stype") for x in given):
        raise ValueError(f"{name} must stay a list of {n} arrays, it holds {[type(x).__name__ for x in given][:8]}")
    return [x if x.stype == "default" else x.tostype("default") for x in given]


def _ignores_grads(p: Params) -> bool:
    """Whether the user's backward is a loss's, as ``declare_backward_dependency`` says."""
    prop = prop_of(p)
    n, n_out = len(prop.list_arguments()), len(prop.list_outputs())
    dys, ins, outs = list(range(n_out)), list(range(n_out, n_out + n)), list(range(n_out + n, 2 * n_out + n))
    with _user_code(p, "declare_backward_dependency"):
        found = {*prop.declare_backward_dependency(dys, ins, outs)}
        if not found <= {*dys, *ins, *outs}:
            raise ValueError(
                f"it must return some of the numbers {dys} of gradients, {ins} of inputs and {outs} of outputs, got "
                f"{sorted(found, key=str)}"
            )
        return found.isdisjoint(dys)


custom.loss_rule = _ignores_grads


@custom.backward
def _(k: Call, p: Params, saved: Any, dys: list[Any], ins: list[Any], outs: list[Any]) -> Any:
    worker, in_data, out_data = saved
    for x in (*dys, *ins):
        x.wait_to_read()
    # As they are now: forward may have been repeated on copies of them.
    aux = [_array(x._data, k.ctx) for x in ins[len(in_data) :]]
    grads = [_array(k.xp.zeros(x.shape, x._data.dtype), k.ctx) for x in in_data]
    req = ["write" if wanted else "null" for wanted in (k.wanted or [True] * len(grads))[: len(grads)]]
    # Others get the same ones, and `backward` may write to them.
    dys = [_array(g._data.copy(), k.ctx) if g.stype == "default" else g for g in dys]
    with _unrecorded(k.ctx, state.train), _user_code(p, "backward"):
        worker.backward(req=req, out_grad=dys, in_data=[*in_data], out_data=[*out_data], in_grad=grads, aux=[*aux])
        grads = _dense(grads, "in_grad", len(in_data))
        for x in (*grads, *aux):
            x.wait_to_read()
    return grads + [None] * len(aux)


def _check_storage(p: Params, prop: Any, n: int) -> None:
    """Raise an error if the user's ``infer_storage_type`` asks for sparse arrays."""
    rule = getattr(prop, "infer_storage_type", None)
    if rule is None:
        return
    with _user_code(p, "infer_storage_type"):
        asked = sorted({t for listed in rule(["default"] * n) for t in listed} - {"default"})
    if asked:
        op_type = p.op_type
        raise ValueError(
            f"infer_storage_type of the custom operator {op_type!r} asks for {', '.join(asked)}; "
            "custom operators get and give dense arrays, use tostype() inside"
        )


def _infer(p: Params, what: str, given: list[Any]) -> list[list[Any]]:
    """What the user's ``infer_<what>`` says of arguments, outputs and auxiliary states."""
    prop = prop_of(p)
    with _user_code(p, f"infer_{what}", ValueError):
        found = [list(v) for v in getattr(prop, f"infer_{what}")(given)]
    found += [[]] * (3 - len(found))
    names = prop.list_arguments(), prop.list_outputs(), prop.list_auxiliary_states()
    for told, wanted, kind in zip(found, names, ("arguments", "outputs", "auxiliary states")):
        if len(told) != len(wanted):
            raise ValueError(
                f"infer_{what} of {type(prop).__name__} returned {len(told)} {what}s of {kind}, there are "
                f"{len(wanted)}: {wanted}"
            )
    return found


def _rule(what: str, show: Any, read: Any) -> Any:
    """The rule for shapes or dtypes: the user's own, asked as soon as something is known."""

    def rule(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        given = [show(v) for v in ins[: len(prop_of(p).list_arguments())]]
        if given and all(v is None for v in ins[: len(given)]):
            return ins, outs
        whole = all(full for _, full in given)
        try:
            arg, out, aux = _infer(p, what, [v for v, _ in given])
        except Exception as e:
            let_through(e)
            if whole:
                raise
            return ins, outs  # it needs to know more
        return [read(v, whole) for v in (*arg, *aux)], [read(v, whole) for v in out]

    return rule


def _show_shape(s: Any) -> tuple[list[int], bool]:
    return ([], False) if s is None else ([max(d, 0) for d in s], -1 not in s)


def _read_shape(s: Any, whole: bool) -> Any:
    """A shape from the user; until all arguments are known, () and 0 mean that it does not know."""
    if s is None or not whole and len(s) == 0:
        return None
    return tuple(-1 if d == 0 and not whole else int(d) for d in s)


custom.shape(_rule("shape", _show_shape, _read_shape))
custom.dtype(
    _rule(
        "type",
        lambda t: (None if t is None else t.type, t is not None),
        lambda t, whole: None if t is None else np.dtype(t),
    )
)
