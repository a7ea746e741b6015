"""Elements repeated: repeat, tile, Pad, broadcasting to a shape."""

from __future__ import annotations

from typing import Any

from ..._core.infer import known
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Enum, Float, Int, Shape
from ...typing import Array, Call
from ..common.bodies import silent
from ..common.rules import axes_of, axis_of, partly, size_of, times
from .reshape import reshape_like

__all__: list[str] = []


def _wide(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(p.shape) != len(shape):
        raise ValueError(f"shape {p.shape} must have as many dimensions as the array, {len(shape)}")
    out = tuple(d if t == 0 else t for d, t in zip(shape, p.shape))
    bad = [i for i, (d, t) in enumerate(zip(shape, out)) if d not in (t, 1, -1)]
    if bad:
        raise ValueError(f"dimension {bad[0]} of {shape} cannot be broadcast to {p.shape}")
    return out


@op(
    "broadcast_to",
    inputs="data",
    shape=Shape(()),
    expr="data",
    identity=True,
    grad=lambda F, dy, like_data: F._sum_like(dy, like_data),
)
def broadcast_to(k: Call, p: Params, data: Array) -> Array:
    """Repeat along dimensions of length 1.

    Parameters
    ----------
    data : array
    shape : tuple of int
        The result's; 0 keeps a length.
    """
    return k.xp.broadcast_to(data, _wide(p, data.shape)).copy()


@broadcast_to.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    return ins, [outs[0] if ins[0] is None else _wide(p, ins[0])]


@op(
    "broadcast_like",
    inputs="lhs rhs~",
    lhs_axes=Shape(None),
    rhs_axes=Shape(None),
    expr="lhs",
    identity=True,
    grad=lambda F, dy, like_lhs: (F._sum_like(dy, like_lhs), None),
)
def broadcast_like(k: Call, p: Params, lhs: Array, rhs: Array) -> Array:
    """Repeat `lhs` along dimensions of length 1 up to the shape of `rhs`.

    Parameters
    ----------
    lhs : array
    rhs : array
        Only its shape is used.
    lhs_axes, rhs_axes : tuple of int, optional
        Which dimensions take their length from which; all, in order, unless told.
    """
    return k.xp.broadcast_to(lhs, _broadcast_like(p, tuple(lhs.shape), tuple(rhs.shape))).copy()


def _broadcast_like(p: Params, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if (p.lhs_axes is None) != (p.rhs_axes is None) or len(p.lhs_axes or ()) != len(p.rhs_axes or ()):
        raise ValueError(f"lhs_axes={p.lhs_axes} and rhs_axes={p.rhs_axes} must be given together and have one length")
    if p.lhs_axes is None:
        if len(a) > len(b) or any(x not in (y, 1) for x, y in zip(a[::-1], b[::-1])):
            raise ValueError(f"{a} cannot be broadcast to {b}")
        return b
    out = list(a)
    for i, j in zip(p.lhs_axes, p.rhs_axes):
        i, j = axis_of(i, len(a)), axis_of(j, len(b))
        if a[i] not in (1, b[j]):
            raise ValueError(f"dimension {i} of {a} cannot be broadcast to {b[j]}")
        out[i] = b[j]
    return tuple(out)


@broadcast_like.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    return ins, [_broadcast_like(p, *ins) if known(ins[0]) and known(ins[1]) else None]


broadcast_like.dtype(reshape_like.dtype_rule)

REPEAT_PARAMS = {"repeats": Int(ge=0), "axis": Int(None)}


@op(
    "repeat",
    inputs="data",
    labels="inputs",
    **REPEAT_PARAMS,
    grad=lambda F, p, dy, like_data: F._repeat_sum(dy, like_data, repeats=p.repeats, axis=p.axis),
)
def repeat(k: Call, p: Params, data: Array) -> Array:
    """Repeat each element, one after the other.

    Parameters
    ----------
    data : array
    repeats : int
        How often.
    axis : int, optional
        Along which axis; of the flattened array unless told.
    """
    return k.xp.repeat(data, p.repeats, None if p.axis is None else axis_of(p.axis, data.ndim))


def repeated_shape(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape after repeat, flat without an axis; -1 stays unknown."""
    if p.axis is None:
        return (-1 if -1 in shape else size_of(shape) * p.repeats,)
    axis = axis_of(p.axis, len(shape))
    return shape[:axis] + (times(p.repeats, shape[axis]),) + shape[axis + 1 :]


repeat.shape(partly(repeated_shape))


def tiling(reps: tuple[int, ...], shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Repetitions and lengths, filled up with leading ones to one rank."""
    n = max(len(reps), len(shape))
    return (1,) * (n - len(reps)) + reps, (1,) * (n - len(shape)) + shape


@op(
    "tile",
    inputs="data",
    labels="inputs",
    reps=Shape(),
    grad=lambda F, p, dy, like_data: F._tile_sum(dy, like_data, reps=p.reps),
)
def tile(k: Call, p: Params, data: Array) -> Array:
    """Repeat the whole array.

    Parameters
    ----------
    data : array
    reps : tuple of int
        How often along each axis, counted from the last; more items than axes add leading axes.
    """
    if len(p.reps) > 1:  # it works axis by axis: a size beyond all memory is an error before any work
        k.xp.empty(tiled_shape(p, data.shape), data.dtype)
    return k.xp.tile(data, p.reps)


def tiled_shape(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape after tile; -1 stays unknown."""
    if any(r < 0 for r in p.reps):
        raise ValueError(f"reps {p.reps} must not be negative")
    return tuple(times(r, d) for r, d in zip(*tiling(p.reps, shape)))


tile.shape(partly(tiled_shape))

PAD_PARAMS = {"mode": Enum("constant edge reflect"), "pad_width": Shape(), "constant_value": Float(0.0)}


def margins(p: Params, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """(before, after) for each axis."""
    w = p.pad_width
    if len(w) != 2 * len(shape):
        raise ValueError(f"pad_width {w} needs two numbers for each of the {len(shape)} dimensions")
    if any(n < 0 for n in w):
        raise ValueError(f"pad_width {w} must not be negative")
    pairs = list(zip(w[::2], w[1::2]))
    for i, (d, (b, a)) in enumerate(zip(shape, pairs)):
        if p.mode != "constant" and d != -1 and (b or a) and max(b, a) >= (d if p.mode == "reflect" else max(b, a) + d):
            raise ValueError(f"mode '{p.mode}' cannot pad axis {i} of length {d} by ({b}, {a})")
    return pairs


@op(
    "Pad",
    "pad",
    inputs="data",
    labels="inputs outputs",
    **PAD_PARAMS,
    grad=lambda F, p, dy, like_data: F._backward_Pad(dy, like_data, mode=p.mode, pad_width=p.pad_width),
)
@silent
def pad(k: Call, p: Params, data: Array) -> Array:
    """Add margins to an array.

    Parameters
    ----------
    data : array
    mode : {'constant', 'edge', 'reflect'}
        Fill them with a number, with the nearest element, or with the mirrored array without its edge.
    pad_width : tuple of int
        Width before and after, for each axis in turn.
    constant_value : float
        The number of mode 'constant'.
    """
    pairs = margins(p, data.shape)
    if p.mode == "constant":
        return k.xp.pad(data, pairs, mode="constant", constant_values=p.constant_value)
    return k.xp.pad(data, pairs, mode=p.mode)


def padded_shape(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with its margins; -1 stays unknown."""
    return tuple(-1 if d == -1 else b + d + a for d, (b, a) in zip(shape, margins(p, shape)))


pad.shape(partly(padded_shape))


def _stretched(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(p.axis) != len(p.size):
        raise ValueError(f"axis {p.axis} and size {p.size} have different lengths")
    out = list(shape)
    axes_of(p.axis, len(shape))
    for a, n in zip(p.axis, p.size):
        i = axis_of(a, len(shape))
        if n < 0:
            raise ValueError(f"size {p.size} must not be negative")
        if shape[i] != 1:
            raise ValueError(f"axis {a} has length {shape[i]}; only axes of length 1 can be broadcast")
        out[i] = n
    return tuple(out)


@op(
    "broadcast_axis",
    "broadcast_axes",
    inputs="data",
    axis=Shape(()),
    size=Shape(()),
    expr="data",
    identity=True,
    grad=lambda F, dy, like_data: F._sum_like(dy, like_data),
)
def broadcast_axis(k: Call, p: Params, data: Array) -> Array:
    """Repeat along axes of length 1.

    Parameters
    ----------
    data : array
    axis : int or tuple of int
    size : int or tuple of int
        The lengths that these axes get.
    """
    return k.xp.broadcast_to(data, _stretched(p, data.shape)).copy()


broadcast_axis.shape(lambda p, ins: [_stretched(p, ins[0])])
