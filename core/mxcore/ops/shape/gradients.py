"""Gradients of the operators of :mod:`mxcore.ops.shape`."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Int, Shape
from ...typing import Array, Call, Operators
from ..common.bodies import silent, sum_over, wide
from ..common.rules import axis_of, undoing
from .rearrange import DIAG_PARAMS, diagonal_axes, diagonal_shape
from .repeat import PAD_PARAMS, REPEAT_PARAMS, margins, padded_shape, repeated_shape, tiled_shape, tiling

__all__: list[str] = []


@op(
    "_diag_spread",
    inputs="data like~",
    **DIAG_PARAMS,
    grad=lambda F, p, dy: (F.diag(dy, k=p.k, axis1=p.axis1, axis2=p.axis2), None),
)
def diag_spread(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Zeros like `like` with `data` on a diagonal: the gradient of `diag`.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used.
    k, axis1, axis2 : int
        As in `diag`.
    """
    xp, shape = k.xp, tuple(like.shape)
    if len(shape) == 1:
        return xp.diagonal(data, p.k).copy()
    i, j = diagonal_axes(p, len(shape))
    out = xp.zeros(shape, data.dtype)
    rows = xp.arange(data.shape[-1]) + max(-p.k, 0)
    moved = xp.moveaxis(out, (i, j), (-2, -1))  # a view: writing through it fills `out`
    moved[..., rows, rows + p.k] = data
    return out


diag_spread.shape(undoing(diagonal_shape))


@op(
    "_repeat_sum",
    inputs="data like~",
    **REPEAT_PARAMS,
    grad=lambda F, p, dy: (F.repeat(dy, repeats=p.repeats, axis=p.axis), None),
)
@silent
def repeat_sum(k: Call, p: Params, data: Array, like: Array) -> Array:
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
    return sum_over(data.reshape(shape[:at] + (p.repeats,) + shape[at:]), at)


repeat_sum.shape(undoing(repeated_shape))


@op("_tile_sum", inputs="data like~", reps=Shape(), grad=lambda F, p, dy: (F.tile(dy, reps=p.reps), None))
@silent
def tile_sum(k: Call, p: Params, data: Array, like: Array) -> Array:
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
    pairs = [x for pair in zip(*tiling(p.reps, shape)) for x in pair]
    return sum_over(data.reshape(pairs), tuple(range(0, len(pairs), 2))).reshape(shape)


tile_sum.shape(undoing(tiled_shape))


@op(
    "_backward_Pad",
    inputs="dy like~",
    **PAD_PARAMS,
    grad=lambda F, p, d_output: (F.Pad(d_output, mode=p.mode, pad_width=p.pad_width), None),
)
@silent
def backward_pad(k: Call, p: Params, dy: Array, like: Array) -> Array:
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
    dy = wide(dy)
    for axis, ((b, a), n) in enumerate(zip(margins(p, tuple(like.shape)), like.shape)):
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


backward_pad.shape(undoing(padded_shape))


def _joined(p: Params, ins: Any) -> Any:
    first = ins[0]
    if p.squeeze_axis:
        axis = axis_of(p.axis, len(first) + 1, " of the result")
        return [(*first[:axis], len(ins), *first[axis:])]
    axis = axis_of(p.axis, len(first))
    if any(s[:axis] + s[axis + 1 :] != first[:axis] + first[axis + 1 :] for s in ins):
        raise ValueError(f"the parts {', '.join(map(str, ins))} differ in other axes than {p.axis}")
    return [(*first[:axis], sum(s[axis] for s in ins), *first[axis + 1 :])]


@op(
    "_split_v2_backward",
    inputs="dys*",
    indices=Shape(()),
    axis=Int(1),
    squeeze_axis=Bool(False),
    sections=Int(0),
    grad=lambda F, p, dy, like_dys: [_parts(F, p, dy, len(like_dys))],
)
def split_v2_backward(k: Call, p: Params, *dys: Array) -> Array:
    """The gradient of `split_v2`: its parts joined.

    Parameters
    ----------
    dys : arrays
        Gradients of the parts.
    num_args : int
        How many; counted for you.
    indices, axis, squeeze_axis, sections
        As in `split_v2`.
    """
    axis = axis_of(p.axis, dys[0].ndim + p.squeeze_axis)
    return k.xp.stack(dys, axis) if p.squeeze_axis else k.xp.concatenate(dys, axis)


split_v2_backward.shape(_joined)


def _parts(F: Operators, p: Params, dy: Any, n: int) -> list[Any]:
    parts = F._split_v2(dy, indices=p.indices, axis=p.axis, squeeze_axis=p.squeeze_axis, sections=p.sections)
    return list(parts) if isinstance(parts, (list, tuple)) else [parts]
