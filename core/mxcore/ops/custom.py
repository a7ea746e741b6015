"""``Custom``: operators that users write in Python (``mx.operator``), on arrays and in graphs.

They run in the caller's thread once their inputs are ready, never on an engine worker, so they may call ``asnumpy``.
"""
from __future__ import annotations

from typing import Any

from .._core.array import Storage, faces
from .._core.errors import error, suggest
from .._core.op import op
from .._core.params import Params, Rest, Str
from .._core.state import state
from ..testing.sample import Sample

__all__ = ["PROPS", "prop_of"]

#: op_type -> class derived from ``mx.operator.CustomOpProp``.
PROPS: dict[str, type] = {}


def prop_of(p: Params) -> Any:
    """The property object of one set of parameters, made on first use."""
    found = p.__dict__.get("_prop")
    if found is None:
        op_type: str = p.op_type  # type: ignore[attr-defined]
        cls = PROPS.get(op_type)
        if cls is None:
            raise error(KeyError, f"Custom: no operator is registered as {op_type!r}{suggest(op_type, PROPS)}; "
                                  "decorate its CustomOpProp with mx.operator.register")
        found = p._prop = cls(**dict(p.rest))  # type: ignore[attr-defined]
    return found


def _array(data: Any, ctx: Any) -> Any:
    return faces["default"](data, Storage(ctx))


@op("Custom", inputs="data*", op_type=Str(), rest=Rest(), stateful=True,
    arg_names=lambda p: [*prop_of(p).list_arguments(), *prop_of(p).list_auxiliary_states()],
    outputs=lambda p: prop_of(p).list_outputs(), aux=lambda p: prop_of(p).list_auxiliary_states(),
    mutates=lambda p: prop_of(p).list_auxiliary_states(),
    samples=[Sample((2, 3), params={"op_type": "_sample_twice"}, mxnet="needs a registered class")])
def custom(k, p, *data):
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
    ins = [_array(d, k.ctx) for d in data[:n]]
    aux = [_array(d, k.ctx) for d in data[n:]]
    shapes = [list(x.shape) for x in ins]
    dtypes = [x.dtype for x in ins]
    _, out_shapes, _ = _infer(prop, shapes)
    out_types = prop.infer_type(dtypes)[1]
    worker = prop.create_operator(k.ctx, shapes, dtypes)
    xp = k.xp
    outs = [_array(xp.zeros(tuple(s), t), k.ctx) for s, t in zip(out_shapes, out_types)]
    was = (state.record, state.train)
    state.record, state.train = False, k.is_train
    try:
        worker.forward(is_train=k.is_train, req=["write"] * len(outs), in_data=ins, out_data=outs, aux=aux)
    finally:
        state.record, state.train = was
    for x in (*outs, *aux):
        x.wait_to_read()
    return [x._data for x in outs] + [None] * len(aux), (worker, ins, outs, aux)


@custom.backward
def _(k, p, saved, dys, ins, outs):
    worker, in_data, out_data, aux = saved
    grads = [_array(k.xp.zeros(x.shape, x._data.dtype), k.ctx) for x in in_data]
    was = (state.record, state.train)
    state.record, state.train = False, True
    try:
        worker.backward(req=["write"] * len(grads), out_grad=dys, in_data=in_data, out_data=out_data, in_grad=grads, aux=aux)
    finally:
        state.record, state.train = was
    for x in (*grads, *aux):
        x.wait_to_read()
    return grads + [None] * len(aux)


def _infer(prop: Any, shapes: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    found = tuple(prop.infer_shape(shapes))
    return found if len(found) == 3 else (*found, [])  # type: ignore[return-value]


@custom.shape
def _(p, ins, outs):
    prop = prop_of(p)
    n = len(prop.list_arguments())
    given = [[] if s is None else [0 if d == -1 else d for d in s] for s in ins[:n]]
    try:
        arg, out, aux = _infer(prop, given)
    except (IndexError, TypeError, AssertionError):
        if all(s is not None and -1 not in s for s in ins[:n]):
            raise
        return ins, outs  # it needs to know more

    def known(s):
        return None if s is None or (len(s) == 0 and not all(given)) else tuple(-1 if d == 0 and not all(given) else int(d) for d in s)

    return [known(s) for s in (*arg, *aux)], [known(s) for s in out]


@custom.dtype
def _(p, ins, outs):
    prop = prop_of(p)
    n = len(prop.list_arguments())
    if any(t is None for t in ins[:n]):
        return ins, outs
    import numpy as np

    found = tuple(prop.infer_type([t.type for t in ins[:n]]))
    arg, out, aux = found if len(found) == 3 else (*found, [])
    return [np.dtype(t) for t in (*arg, *aux)], [np.dtype(t) for t in out]


class _Twice:
    """What the sample above runs; written without the base classes, which sit above the operators."""

    list_arguments = staticmethod(lambda: ["data"])
    list_outputs = staticmethod(lambda: ["output"])
    list_auxiliary_states = staticmethod(list)
    infer_shape = staticmethod(lambda shapes: (shapes, [shapes[0]], []))
    infer_type = staticmethod(lambda types: (types, [types[0]], []))

    def create_operator(self, ctx, shapes, dtypes):
        return self

    def forward(self, is_train, req, in_data, out_data, aux):
        out_data[0][:] = in_data[0] * 2

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        in_grad[0][:] = out_grad[0] * 2


PROPS["_sample_twice"] = _Twice
