"""The operators of ``mx.np`` that give elements another shape or order."""

from __future__ import annotations

from typing import Any

from ..._core.infer import known, merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Int, Shape, Str
from ...twins import twin
from ...typing import Array, Call, Operators
from ..common.rules import axes_of, axis_of, size_of
from ..elementwise import casts
from . import rearrange
from .reshape_codes import resolve_npx_shape

__all__: list[str] = []

copy = twin(
    "_np_copy",
    casts.copy,
    inputs="a",
    expr="a",
    grad=lambda F, dy: dy,
    doc="""A copy.

    Parameters
    ----------
    a : array
    """,
)


def _new_shape(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that NumPy gives: lengths, of which one may be -1."""
    if p.order != "C":
        raise ValueError(f"order '{p.order}' is none of an array here; it must be 'C'")
    target: tuple[int, ...] = p.newshape
    total = size_of(shape)
    if target.count(-1) > 1 or min(target, default=0) < -1:
        raise ValueError(f"newshape {target} must hold lengths, of which one may be -1")
    if -1 in shape:
        return target
    rest = size_of(d for d in target if d != -1)
    if -1 in target and rest and total % rest == 0:
        return tuple(total // rest if d == -1 else d for d in target)
    if -1 in target or rest != total:
        raise ValueError(f"an array of size {total}, shape {shape}, cannot be reshaped to {target}")
    return target


def _npx_shape(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    if p.order != "C":
        raise ValueError(f"order '{p.order}' is none of an array here; it must be 'C'")
    return resolve_npx_shape(shape, p.newshape, p.reverse)


def _reshaping(name: str, resolved: Any, doc: str, **params: Any) -> Any:
    @op(
        name,
        inputs="a",
        newshape=Shape(),
        **params,
        order=Str("C"),
        view=True,
        expr="a",
        identity=True,
        grad=lambda F, dy, like_a: F.reshape_like(dy, like_a),
        doc=doc,
    )
    def body(k: Call, p: Params, a: Array) -> Array:
        return a.reshape(resolved(p, tuple(a.shape)))

    @body.shape
    def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        src, dst = ins[0], outs[0]
        if src is not None:
            dst = merge_shape(dst, resolved(p, src))
        elif min(p.newshape, default=0) >= 0:
            dst = p.newshape
        if src is not None and src.count(-1) == 1 and known(dst):
            rest = size_of(d for d in src if d != -1)
            if rest and size_of(dst) % rest == 0:
                src = tuple(size_of(dst) // rest if d == -1 else d for d in src)
        return [src], [dst]

    return body


reshape = _reshaping(
    "_np_reshape",
    _new_shape,
    """The elements in another shape.

    Parameters
    ----------
    a : array
    newshape : tuple of int
        Lengths; one may be -1, and is as long as it takes.
    order : {'C'}
    """,
)
npx_reshape = _reshaping(
    "_npx_reshape",
    _npx_shape,
    """The elements in another shape, told by codes.

    Parameters
    ----------
    a : array
    newshape : tuple of int
        Lengths, or codes: -1 is inferred, -2 copies a dimension, -3 drops one of length 1, -4 copies all that remain,
        -5 merges two, -6 splits one into the next two.
    reverse : bool
        Read the codes from right to left.
    order : {'C'}
    """,
    reverse=Bool(False),
)


class _Axes(Shape):
    """A permutation of axes; () for their reverse, which MXNet's files write as None."""

    def parse(self, value: Any) -> Any:
        return () if value is None or isinstance(value, str) and value == "None" else super().parse(value)


def _transposed(k: Call, p: Params, a: Array) -> Array:
    """Permute the axes.

    Parameters
    ----------
    a : array
    axes : tuple of int, optional
        Reversed unless told.
    """
    return a.transpose(rearrange.permutation(p, a.ndim)).copy()


transpose = twin(
    "_np_transpose",
    rearrange.transpose,
    body=_transposed,
    doc=_transposed.__doc__,
    inputs="a",
    params={"axes": _Axes((), optional=True)},
    grad=lambda F, p, dy: F._np_transpose(dy, axes=rearrange.inverse(tuple(a % len(p.axes) for a in p.axes))),
)


def _moved(p: Params, n: int) -> tuple[int, ...]:
    """The order in which the axes stand after some have moved."""
    if len(p.source) != len(p.destination):
        raise ValueError(f"source {p.source} and destination {p.destination} must name as many axes")
    src, dst = ([axis_of(a, n) for a in axes] for axes in (p.source, p.destination))
    for name, given, found in (("source", p.source, src), ("destination", p.destination, dst)):
        if len(set(found)) != len(found):
            raise ValueError(f"{name} {given} names one axis twice")
    order = [a for a in range(n) if a not in src]
    for to, a in sorted(zip(dst, src)):
        order.insert(to, a)
    return tuple(order)


@op(
    "_np_moveaxis",
    inputs="a",
    source=Shape(),
    destination=Shape(),
    grad=lambda F, p, dy: F._np_moveaxis(dy, source=p.destination, destination=p.source),
)
def moveaxis(k: Call, p: Params, a: Array) -> Array:
    """Move axes to other places; the others keep their order.

    Parameters
    ----------
    a : array
    source, destination : tuple of int
        Which, and where each goes.
    """
    return a.transpose(_moved(p, a.ndim)).copy()


moveaxis.shape(lambda p, ins: [tuple(ins[0][a] for a in _moved(p, len(ins[0])))])


def _squeezed(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    if p.axis is None:
        return tuple(d for d in shape if d != 1)
    axes = axes_of(p.axis, len(shape)) if p.axis else ()
    for a in axes:
        if shape[a] not in (1, -1):
            raise ValueError(f"axis {a} has length {shape[a]}; only axes of length 1 can be removed")
    return tuple(d for i, d in enumerate(shape) if i not in axes)


@op(
    "_np_squeeze",
    inputs="a",
    axis=Shape(None),
    view=True,
    expr="a",
    grad=lambda F, dy, like_a: F.reshape_like(dy, like_a),
)
def squeeze(k: Call, p: Params, a: Array) -> Array:
    """Remove dimensions of length 1.

    Parameters
    ----------
    a : array
    axis : int or tuple of int, optional
        Which; all of length 1 unless told.
    """
    return a.reshape(_squeezed(p, tuple(a.shape)))


squeeze.shape(lambda p, ins: [_squeezed(p, ins[0])])


def _wide(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    lead = len(p.shape) - len(shape)
    if lead < 0 or any(d not in (t, 1) or t < 0 for d, t in zip(shape, p.shape[lead:])) or min(p.shape, default=0) < 0:
        raise ValueError(f"an array of shape {shape} cannot be broadcast to {p.shape}")
    return tuple(p.shape)


@op(
    "_npi_broadcast_to",
    inputs="array",
    shape=Shape(()),
    expr="array",
    identity=True,
    grad=lambda F, dy, like_array: F._sum_like(dy, like_array),
)
def broadcast_to(k: Call, p: Params, array: Array) -> Array:
    """Repeat along dimensions of length 1, and along new ones before the first.

    Parameters
    ----------
    array : array
    shape : tuple of int
        The result's.
    """
    return k.xp.broadcast_to(array, _wide(p, tuple(array.shape))).copy()


broadcast_to.shape(lambda p, ins: [_wide(p, ins[0])])


def _shifts(p: Params, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """How far to roll along which axes; None for the flattened array."""
    shift = p.shift or ()
    if not shift:
        raise ValueError("the parameter shift is missing")
    if p.axis is None:
        return (sum(shift),), None
    axes = tuple(axis_of(a, ndim) for a in p.axis)
    n = max(len(shift), len(axes))
    if len(shift) not in (1, n) or len(axes) not in (1, n):
        raise ValueError(f"shift {p.shift} and axis {p.axis} must have as many items")
    return shift * (n if len(shift) == 1 else 1), axes * (n if len(axes) == 1 else 1)


@op(
    "_np_roll",
    inputs="data",
    shift=Shape(None),
    axis=Shape(None),
    grad=lambda F, p, dy: F._np_roll(dy, shift=tuple(-s for s in p.shift), axis=p.axis),
)
def roll(k: Call, p: Params, data: Array) -> Array:
    """Shift the elements along axes; those that leave at one end come in at the other.

    Parameters
    ----------
    data : array
    shift : int or tuple of int
        How far, for each axis.
    axis : int or tuple of int, optional
        Along which axes; the flattened array unless told.
    """
    shift, axes = _shifts(p, data.ndim)
    if axes is None:
        return k.xp.roll(data.reshape(-1), shift[0]).reshape(data.shape)
    for s, a in zip(shift, axes):
        data = k.xp.roll(data, s, a)
    return data


@roll.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    shape = merge_shape(ins[0], outs[0])
    if shape is not None:
        _shifts(p, len(shape))
    return [shape], [shape]


def _flipped(p: Params, ndim: int) -> tuple[int, ...]:
    return axes_of(p.axis, ndim) if p.axis != () else ()


@op("_npi_flip", inputs="data", axis=Shape(None), grad=lambda F, p, dy: F._npi_flip(dy, axis=p.axis))
def flip(k: Call, p: Params, data: Array) -> Array:
    """Reverse the order along axes.

    Parameters
    ----------
    data : array
    axis : int or tuple of int, optional
        All unless told.
    """
    axes = _flipped(p, data.ndim)
    parts = [slice(None, None, -1) if i in axes else slice(None) for i in range(data.ndim)]
    return data[tuple(parts) + (Ellipsis,)].copy()


@flip.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    shape = merge_shape(ins[0], outs[0])
    if shape is not None:
        _flipped(p, len(shape))
    return [shape], [shape]


def _plane(p: Params, ndim: int) -> tuple[int, int]:
    axes = (0, 1) if p.axes is None else p.axes
    if len(axes) != 2:
        raise ValueError(f"axes {axes} must be two")
    i, j = (axis_of(a, ndim) for a in axes)
    if i == j:
        raise ValueError(f"axes {axes} must differ")
    return i, j


@op(
    "_npi_rot90", inputs="data", k=Int(1), axes=Shape(None), grad=lambda F, p, dy: F._npi_rot90(dy, k=-p.k, axes=p.axes)
)
def rot90(k: Call, p: Params, data: Array) -> Array:
    """Turn the plane of two axes by right angles.

    Parameters
    ----------
    data : array
    k : int
        How often, from the first axis towards the second.
    axes : (int, int), optional
        The plane: of the first two axes unless told.
    """
    i, j = _plane(p, data.ndim)
    turns = p.k % 4
    order = [*range(data.ndim)]
    if turns % 2:
        order[i], order[j] = j, i
    backwards = {1: (j,), 2: (i, j), 3: (i,), 0: ()}[turns]
    flips = tuple(slice(None, None, -1) if a in backwards else slice(None) for a in range(data.ndim))
    return data[flips].transpose(order).copy()


@rot90.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    i, j = _plane(p, len(ins[0]))
    out = list(ins[0])
    if p.k % 2:
        out[i], out[j] = out[j], out[i]
    return [tuple(out)]


def _at_least(n: int) -> Any:
    def filled(shape: tuple[int, ...]) -> tuple[int, ...]:
        if n == 3 and 0 < len(shape) < 3:  # a vector is a row, a matrix has depth 1
            return (1, *shape, 1)[-3:] if len(shape) == 1 else (*shape, 1)
        return (1,) * (n - len(shape)) + shape

    @op(
        f"_np_atleast_{n}d",
        inputs="arys*",
        outputs=lambda p: [f"output{i}" for i in range(p.num_args)] if p.num_args > 1 else ["output"],
        num_args=Int(ge=1),
        arg_names=lambda p: [f"ary{i}" for i in range(p.num_args)],
        grad=lambda F, dys, like_arys: [_like_each(F, dys, like_arys)],
        doc=f"""Arrays of {n} dimension{"s" * (n > 1)} or more.

    Parameters
    ----------
    arys : arrays
    num_args : int
        How many; counted for you.
    """,
    )
    def body(k: Call, p: Params, *arys: Array) -> Any:
        return [a.reshape(filled(tuple(a.shape))).copy() for a in arys]

    body.shape(lambda p, ins: [filled(s) for s in ins])
    body.dtype(lambda p, ins, outs: ([a or b for a, b in zip(ins, outs)], [a or b for a, b in zip(ins, outs)]))
    return body


def _like_each(F: Operators, dys: Any, likes: Any) -> list[Any]:
    return [None if dy is None else F.reshape_like(dy, like) for dy, like in zip(dys, likes)]


AT_LEAST = [_at_least(n) for n in (1, 2, 3)]
