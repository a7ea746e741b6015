"""Repeating and joining elements: repeat, tile, Pad, broadcast_axis, add_n."""

from __future__ import annotations

from typing import Any

from .._core.infer import merge_shape
from .._core.op import op
from ..parameters import Enum, Float, Int, Shape
from .rules import axes_of, axis_of, partly, size_of, times, undoing
from .silent import silent

__all__: list[str] = []


_TIMES = {"repeats": Int(ge=0), "axis": Int(None)}


@op(
    "repeat",
    inputs="data",
    labels="inputs",
    **_TIMES,
    grad=lambda F, p, dy, like_data: F._repeat_sum(dy, like_data, repeats=p.repeats, axis=p.axis),
)
def repeat(k, p, data):
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


def _repeated(p: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    if p.axis is None:
        return (-1 if -1 in shape else size_of(shape) * p.repeats,)
    axis = axis_of(p.axis, len(shape))
    return shape[:axis] + (times(p.repeats, shape[axis]),) + shape[axis + 1 :]


repeat.shape(partly(_repeated))


@op(
    "_repeat_sum",
    inputs="data like~",
    **_TIMES,
    grad=lambda F, p, dy: (F.repeat(dy, repeats=p.repeats, axis=p.axis), None),
)
@silent
def repeat_sum(k, p, data, like):
    """Sum over the repetitions that `repeat` made: its gradient.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used: the one before the repetition.
    repeats, axis : int
        As in `repeat`.
    """
    shape = tuple(like.shape)
    at = len(shape) if p.axis is None else axis_of(p.axis, len(shape)) + 1
    return data.reshape(shape[:at] + (p.repeats,) + shape[at:]).sum(at)


repeat_sum.shape(undoing(_repeated))


def _tiled(reps: tuple[int, ...], shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
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
def tile(k, p, data):
    """Repeat the whole array.

    Parameters
    ----------
    data : array
    reps : tuple of int
        How often along each axis, counted from the last; more items than axes add leading axes.
    """
    if len(p.reps) > 1:  # it works axis by axis: a size beyond all memory is an error before any work
        k.xp.empty(_tiled_shape(p, data.shape), data.dtype)
    return k.xp.tile(data, p.reps)


def _tiled_shape(p: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    if any(r < 0 for r in p.reps):
        raise ValueError(f"reps {p.reps} must not be negative")
    return tuple(times(r, d) for r, d in zip(*_tiled(p.reps, shape)))


tile.shape(partly(_tiled_shape))


@op("_tile_sum", inputs="data like~", reps=Shape(), grad=lambda F, p, dy: (F.tile(dy, reps=p.reps), None))
@silent
def tile_sum(k, p, data, like):
    """Sum over the repetitions that `tile` made: its gradient.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used: the one before the repetition.
    reps : tuple of int
        As in `tile`.
    """
    shape = tuple(like.shape)
    pairs = [x for pair in zip(*_tiled(p.reps, shape)) for x in pair]
    return data.reshape(pairs).sum(tuple(range(0, len(pairs), 2))).reshape(shape)


tile_sum.shape(undoing(_tiled_shape))


_PAD = {"mode": Enum("constant edge reflect"), "pad_width": Shape(), "constant_value": Float(0.0)}


def _margins(p: Any, shape: tuple[int, ...]) -> list[tuple[int, int]]:
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
    **_PAD,
    grad=lambda F, p, dy, like_data: F._backward_Pad(dy, like_data, mode=p.mode, pad_width=p.pad_width),
)
@silent
def pad(k, p, data):
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
    pairs = _margins(p, data.shape)
    if p.mode == "constant":
        return k.xp.pad(data, pairs, mode="constant", constant_values=p.constant_value)
    return k.xp.pad(data, pairs, mode=p.mode)


def _padded(p: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-1 if d == -1 else b + d + a for d, (b, a) in zip(shape, _margins(p, shape)))


pad.shape(partly(_padded))


@op(
    "_backward_Pad",
    inputs="dy like~",
    **_PAD,
    grad=lambda F, p, dy: (F.Pad(dy, mode=p.mode, pad_width=p.pad_width), None),
)
@silent
def backward_pad(k, p, dy, like):
    """Bring the gradient of the margins back to the elements that filled them.

    Parameters
    ----------
    dy : array
        Gradient of the output of `Pad`.
    like : array
        The unpadded array; only its shape is used.
    mode, pad_width, constant_value
        As in `Pad`.
    """
    for axis, ((b, a), n) in enumerate(zip(_margins(p, tuple(like.shape)), like.shape)):
        if not b and not a:
            continue

        def part(i: int, j: int, axis: int = axis) -> tuple[slice, ...]:
            return (slice(None),) * axis + (slice(i, j),)

        core = dy[part(b, b + n)].copy()
        if p.mode == "edge":
            core[part(0, 1)] += dy[part(0, b)].sum(axis, keepdims=True)
            core[part(n - 1, n)] += dy[part(b + n, b + n + a)].sum(axis, keepdims=True)
        elif p.mode == "reflect":
            core[part(1, b + 1)] += k.xp.flip(dy[part(0, b)], axis)
            core[part(n - 1 - a, n - 1)] += k.xp.flip(dy[part(b + n, b + n + a)], axis)
        dy = core
    return dy


backward_pad.shape(undoing(_padded))


def _stretched(p: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
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
def broadcast_axis(k, p, data):
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


#: Terms of a sum that one expression holds; more operands than this make no chain.
_TERMS = 24


@op(
    "add_n",
    "ElementWiseSum",
    "_sparse_add_n",
    "_sparse_ElementWiseSum",
    inputs="args*",
    params={"num_args": Int(ge=1, le=1 << 16)},
    expr=lambda p: " + ".join(f"arg{i}" for i in range(p.num_args)) if p.num_args <= _TERMS else None,
    grad=lambda F, p, dy: [[dy] * p.num_args],
)
def add_n(k, p, *args):
    """Sum arrays of one shape.

    Parameters
    ----------
    args : arrays
    num_args : int
        How many; counted for you.
    """
    if len(args) == 1:
        return args[0].copy()
    total = args[0] + args[1]
    for x in args[2:]:
        total += x
    return total


def _flat_join(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Shapes of a joint vector of parameters; inputs may have any rank that the consumer decides.

    Where the whole is known, open inputs share what is left in equal parts: of a recurrent layer they are the weights
    of both directions for an input whose size nobody told.
    """
    if any(s is None for s in ins):
        return ins, outs
    axis, whole = axis_of(p.dim, len(ins[0])), outs[0]
    common: Any = None
    for s in ins:
        common = merge_shape(common, s[:axis] + (-1,) + s[axis + 1 :])
    sizes = [s[axis] for s in ins]
    rest, n = (whole[axis] if whole is not None else -1) - sum(i for i in sizes if i >= 0), sizes.count(-1)
    if n and rest >= 0 and rest % n == 0:
        sizes = [rest // n if i < 0 else i for i in sizes]
    full = -1 if -1 in sizes else sum(sizes)
    return [common[:axis] + (i,) + common[axis + 1 :] for i in sizes], [common[:axis] + (full,) + common[axis + 1 :]]


@op(
    "_rnn_param_concat",
    inputs="data*",
    labels="outputs",
    num_args=Int(ge=1, le=1 << 16),
    dim=Int(1),
    grad=lambda F, p, dy, like_data: F._split_like(dy, *like_data, dim=p.dim),
)
def rnn_param_concat(k, p, *data):
    """Join the parameters of a recurrent layer into one vector.

    Parameters
    ----------
    data : arrays
    num_args : int
        How many; counted for you.
    dim : int
        The axis.
    """
    return k.xp.concatenate(data, axis_of(p.dim, data[0].ndim))


rnn_param_concat.shape(_flat_join)
