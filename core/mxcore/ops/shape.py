"""Shape and layout: reshape, transpose, slice, join, split, repeat."""

from __future__ import annotations

from typing import Any

from .._core.infer import known, merge_shape
from .._core.op import op
from ..parameters import Bool, Int, Shape
from .reshape_codes import resolve_shape
from .rules import axis_of, gradient_of, size_of

__all__ = ["RANGE", "ranges_of", "sliced"]


def _target(p: Any) -> tuple[tuple[int, ...], bool]:
    """The codes of a Reshape: `shape`, or MXNet 0.x's `target_shape` (0 infers, `keep_highest` copies the first)."""
    if p.shape or not p.target_shape:
        return p.shape, p.reverse
    codes = tuple(-1 if d == 0 else d for d in p.target_shape)
    return ((0, *codes[1:]) if p.keep_highest else codes), False


@op(
    "Reshape",
    "reshape",
    inputs="data",
    role="other shape",
    expr="data",
    identity=True,
    shape=Shape(()),
    reverse=Bool(False),
    target_shape=Shape((), optional=True),
    keep_highest=Bool(False),
    view=True,
    grad=lambda F, dy, like_data: F.reshape_like(dy, like_data),
)
def reshape(k, p, data):
    """Give the elements another shape.

    Parameters
    ----------
    data : array
    shape : tuple of int
        Lengths, or codes: 0 copies a dimension, -1 is inferred, -2 copies all that remain, -3 merges two, -4 splits
        one.
    reverse : bool
        Read the codes from right to left; the two lengths of a -4 then stand before it.
    target_shape, keep_highest
        The spelling of MXNet 0.x.
    """
    return data.reshape(resolve_shape(data.shape, *_target(p)))


@reshape.shape
def _(p, ins, outs):
    codes, reverse = _target(p)
    (src,), (dst,) = ins, outs
    if src is not None:
        dst = merge_shape(dst, resolve_shape(src, codes, reverse))
    elif not any(c <= 0 for c in codes):
        dst = tuple(codes)
    if src is not None and dst is not None and src.count(-1) == 1 and known(dst):
        rest = size_of(d for d in src if d != -1)
        if rest and size_of(dst) % rest == 0:
            src = tuple(size_of(dst) // rest if d == -1 else d for d in src)
    return [src], [dst]


@op(
    "reshape_like",
    inputs="lhs rhs~",
    lhs_begin=Int(None),
    lhs_end=Int(None),
    rhs_begin=Int(None),
    rhs_end=Int(None),
    view=True,
    expr="lhs",
    identity=True,
    grad=lambda F, dy, like_lhs: (F.reshape_like(dy, like_lhs), None),
)
def reshape_like(k, p, lhs, rhs):
    """Reshape `lhs` to the shape of `rhs`, or a range of its dimensions to a range of those of `rhs`.

    Parameters
    ----------
    lhs : array
    rhs : array
        Only its shape is used.
    lhs_begin, lhs_end, rhs_begin, rhs_end : int, optional
        The ranges of dimensions.
    """
    return lhs.reshape(_like_shape(p, tuple(lhs.shape), tuple(rhs.shape)))


def _like_shape(p: Any, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    (ab, ae), (bb, be) = _dimensions(p, "lhs", len(a)), _dimensions(p, "rhs", len(b))
    out = a[:ab] + b[bb:be] + a[ae:]
    if size_of(out) != size_of(a):
        raise ValueError(f"{a} cannot be reshaped to {out}")
    return out


def _dimensions(p: Any, side: str, ndim: int) -> tuple[int, int]:
    """The range of dimensions that `<side>_begin` and `<side>_end` give."""
    found = []
    for name, default in (("begin", 0), ("end", ndim)):
        d = getattr(p, f"{side}_{name}")
        if d is not None and not -ndim <= d <= ndim:
            raise ValueError(f"{side}_{name}={d} is out of range for the {ndim} dimensions of {side}")
        found.append(default if d is None else d + ndim if d < 0 else d)
    if found[0] > found[1]:
        raise ValueError(f"{side}_begin={found[0]} lies behind {side}_end={found[1]}")
    return found[0], found[1]


@reshape_like.shape
def _(p, ins, outs):
    a, b = ins
    return ins, [_like_shape(p, a, b) if known(a) and known(b) else None]


reshape_like.dtype(lambda p, ins, outs: ([ins[0] or outs[0], ins[1]], [ins[0] or outs[0]]))


@op(
    "Flatten",
    "flatten",
    inputs="data",
    view=True,
    expr="data",
    identity=True,
    grad=lambda F, dy, like_data: F.reshape_like(dy, like_data),
)
def flatten(k, p, data):
    """Collapse all dimensions but the first.

    Parameters
    ----------
    data : array
    """
    return data.reshape(data.shape[0], size_of(data.shape[1:]))


flatten.shape(lambda p, ins: [(ins[0][0], size_of(ins[0][1:]))])


def ranges_of(p: Any, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The slices of begin, end, step; MXNet clips ends as Python does."""
    if len(p.begin) != len(p.end):
        raise ValueError(f"begin {p.begin} and end {p.end} have different lengths")
    if len(p.begin) > len(shape):
        raise ValueError(f"begin {p.begin} has more items than the {len(shape)} dimensions")
    step = p.step or ()
    if len(step) > len(p.begin):
        raise ValueError(f"step {step} has more items than begin {p.begin}")
    if 0 in step:
        raise ValueError(f"step {step} holds a zero")
    step += (None,) * (len(p.begin) - len(step))
    return tuple(slice(b, e, s) for b, e, s in zip(p.begin, p.end, step))


def sliced(shape: tuple[int, ...], ranges: tuple[slice, ...]) -> tuple[int, ...]:
    """The shape that slices of the leading dimensions leave."""
    return (*(len(range(d)[s]) if d != -1 else -1 for d, s in zip(shape, ranges)), *shape[len(ranges) :])


#: Parameters of operators over ranges of all dimensions.
RANGE = {"begin": Shape(none=True), "end": Shape(none=True), "step": Shape((), none=True, optional=True)}


@op(
    "slice",
    "crop",
    "_sparse_slice",
    inputs="data",
    **RANGE,
    view=True,
    grad=lambda F, p, dy, like_data: F._slice_spread(dy, like_data, begin=p.begin, end=p.end, step=p.step),
)
def slice_(k, p, data):
    """A range of each dimension.

    Parameters
    ----------
    data : array
    begin, end : tuple of int or None
        One item per leading dimension.
    step : tuple of int or None, optional
    """
    return data[ranges_of(p, data.shape)]


@slice_.shape
def _(p, ins, outs):
    return ins, [None if ins[0] is None else sliced(ins[0], ranges_of(p, ins[0]))]


@op(
    "_slice_spread",
    inputs="data like~",
    **RANGE,
    grad=lambda F, p, dy: (F.slice(dy, begin=p.begin, end=p.end, step=p.step), None),
)
def slice_spread(k, p, data, like):
    """Zeros like `like` with `data` in the given range: the gradient of `slice`.

    Parameters
    ----------
    data, like : array
    begin, end, step : tuple
    """
    out = k.xp.zeros(tuple(like.shape), data.dtype)
    out[ranges_of(p, tuple(like.shape))] = data
    return out


slice_spread.shape(gradient_of(lambda p, ins: sliced(ins[0], ranges_of(p, ins[0]))))


def _join_shape(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    seen = next((s for s in (*ins, *outs) if s is not None), None)
    if seen is None:
        return ins, outs
    axis = axis_of(p.dim, len(seen))
    common: Any = None
    for s in (*ins, *outs):
        if s is not None:
            common = merge_shape(common, s[:axis] + (-1,) + s[axis + 1 :])
    lengths = [None if s is None or s[axis] == -1 else s[axis] for s in ins]
    total = None if outs[0] is None or outs[0][axis] == -1 else outs[0][axis]
    unknown = [i for i, n in enumerate(lengths) if n is None]
    if not unknown:
        total = sum(lengths)  # type: ignore[arg-type]
    elif len(unknown) == 1 and total is not None:
        lengths[unknown[0]] = total - sum(n for n in lengths if n is not None)

    def full(n: Any) -> tuple[int, ...]:
        return common[:axis] + (-1 if n is None else n,) + common[axis + 1 :]

    return [full(n) for n in lengths], [full(total)]


@op(
    "Concat",
    "concat",
    "_sparse_concat",
    inputs="data*",
    labels="outputs",
    recompute=False,
    num_args=Int(ge=1, le=1 << 16),
    dim=Int(1),
    grad=lambda F, p, dy, like_data: F._split_like(dy, *like_data, dim=p.dim),
)
def concat(k, p, *data):
    """Join arrays along an existing axis.

    Parameters
    ----------
    data : arrays
        Alike but in the joined axis.
    num_args : int
        How many; counted for you.
    dim : int
        The axis.
    """
    return k.xp.concatenate(data, axis_of(p.dim, data[0].ndim))


concat.shape(_join_shape)


@op(
    "_split_like",
    inputs="data likes~*",
    dim=Int(1),
    outputs=lambda p: [f"output{i}" for i in range(p.num_args)],
    grad=lambda F, p, dys: [F.Concat(*dys, dim=p.dim), [None] * len(dys)],
)
def split_like(k, p, data, *likes):
    """Split along an axis into parts as long as the arrays `likes`: the gradient of `Concat`.

    Parameters
    ----------
    data : array
    likes : arrays
        Only their shapes are used.
    num_args : int
    dim : int
        The axis.
    """
    axis = axis_of(p.dim, data.ndim)
    parts, at = [], 0
    for x in likes:
        n = x.shape[axis]
        parts.append(data[(slice(None),) * axis + (slice(at, at + n),)].copy())
        at += n
    return parts


split_like.shape(lambda p, ins: list(ins[1:]))


def _split_axis(p: Any, shape: tuple[int, ...]) -> int:
    axis = axis_of(p.axis, len(shape))
    if shape[axis] != -1 and shape[axis] % p.num_outputs:
        raise ValueError(f"axis {p.axis} has length {shape[axis]}, not a multiple of num_outputs={p.num_outputs}")
    return axis


@op(
    "SliceChannel",
    "split",
    inputs="data",
    labels="inputs gradients outputs",
    num_outputs=Int(ge=1, le=1 << 16),
    axis=Int(1),
    squeeze_axis=Bool(False),
    outputs=lambda p: [f"output{i}" for i in range(p.num_outputs)],
    grad=lambda F, p, dys: F.stack(*dys, axis=p.axis) if p.squeeze_axis else F.Concat(*dys, dim=p.axis),
)
def slice_channel(k, p, data):
    """Split along an axis into equal parts.

    Parameters
    ----------
    data : array
    num_outputs : int
    axis : int
    squeeze_axis : bool
        Drop the axis; its parts must have length 1.
    """
    axis = _split_axis(p, data.shape)
    n = data.shape[axis] // p.num_outputs
    parts = [data[(slice(None),) * axis + (slice(i * n, (i + 1) * n),)] for i in range(p.num_outputs)]
    if p.squeeze_axis:
        parts = [x.squeeze(axis) for x in parts]
    return [x.copy() for x in parts]


@slice_channel.shape
def _(p, ins, outs):
    src, part = ins[0], None
    for s in outs:
        part = merge_shape(part, s)
    if src is not None:
        axis = _split_axis(p, src)
        n = -1 if src[axis] == -1 else src[axis] // p.num_outputs
        if p.squeeze_axis:
            if n not in (1, -1):
                raise ValueError(
                    f"squeeze_axis needs parts of length 1; axis {p.axis} of length {src[axis]} gives parts of {n}"
                )
            part = merge_shape(part, src[:axis] + src[axis + 1 :])
        else:
            part = merge_shape(part, src[:axis] + (n,) + src[axis + 1 :])
    if part is not None:
        if p.squeeze_axis:
            axis = axis_of(p.axis, len(part) + 1, " of the result")
            src = merge_shape(src, part[:axis] + (p.num_outputs,) + part[axis:])
        else:
            axis = axis_of(p.axis, len(part))
            n = part[axis]
            src = merge_shape(src, part[:axis] + (-1 if n == -1 else n * p.num_outputs,) + part[axis + 1 :])
    return [src], [part] * len(outs)


@op("stack", inputs="data*", axis=Int(0), num_args=Int(ge=1), grad=lambda F, p, dy: [_unstack(F, p, dy)])
def stack(k, p, *data):
    """Join arrays along a new axis.

    Parameters
    ----------
    data : arrays
        Of one shape.
    num_args : int
        How many; counted for you.
    axis : int
        Where the new axis goes.
    """
    return k.xp.stack(data, axis_of(p.axis, data[0].ndim + 1, " of the result"))


def _unstack(F: Any, p: Any, dy: Any) -> list[Any]:
    parts = F.SliceChannel(dy, num_outputs=p.num_args, axis=p.axis, squeeze_axis=True)
    return list(parts) if isinstance(parts, (list, tuple)) else [parts]


@stack.shape
def _(p, ins, outs):
    one = None
    for s in ins:
        one = merge_shape(one, s)
    out = outs[0]
    if out is not None:
        axis = axis_of(p.axis, len(out))
        one = merge_shape(one, out[:axis] + out[axis + 1 :])
    if one is not None:
        axis = axis_of(p.axis, len(one) + 1, " of the result")
        out = one[:axis] + (p.num_args,) + one[axis:]
    return [one] * len(ins), [out]


def _permutation(p: Any, n: int) -> tuple[int, ...]:
    axes = tuple(axis_of(a, n) for a in p.axes) if p.axes else tuple(reversed(range(n)))
    if sorted(axes) != list(range(n)):
        raise ValueError(f"axes {p.axes} are no permutation of {n} dimensions")
    return axes


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axes.index(i) for i in range(len(axes)))


@op(
    "transpose",
    inputs="data",
    axes=Shape(()),
    grad=lambda F, p, dy: F.transpose(dy, axes=_inverse(tuple(a % len(p.axes) for a in p.axes))),
)
def transpose(k, p, data):
    """Permute the axes.

    Parameters
    ----------
    data : array
    axes : tuple of int, optional
        Reversed unless told.
    """
    return k.xp.ascontiguousarray(data.transpose(_permutation(p, data.ndim)))


@transpose.shape
def _(p, ins, outs):
    src, dst = ins[0], outs[0]
    if src is not None:
        axes = _permutation(p, len(src))
        return [src], [tuple(src[a] for a in axes)]
    if dst is not None:
        axes = _inverse(_permutation(p, len(dst)))
        return [tuple(dst[a] for a in axes)], [dst]
    return ins, outs


@op(
    "expand_dims",
    inputs="data",
    axis=Int(),
    view=True,
    expr="data",
    grad=lambda F, dy, like_data: F.reshape_like(dy, like_data),
)
def expand_dims(k, p, data):
    """Insert a dimension of length 1.

    Parameters
    ----------
    data : array
    axis : int
        Where, in the result.
    """
    axis = axis_of(p.axis, data.ndim + 1, " of the result")
    return data.reshape(data.shape[:axis] + (1,) + data.shape[axis:])


@expand_dims.shape
def _(p, ins, outs):
    if ins[0] is not None:
        axis = axis_of(p.axis, len(ins[0]) + 1, " of the result")
        return ins, [ins[0][:axis] + (1,) + ins[0][axis:]]
    if outs[0] is not None:
        axis = axis_of(p.axis, len(outs[0]))
        return [outs[0][:axis] + outs[0][axis + 1 :]], outs
    return ins, outs


def _wide(p: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
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
def broadcast_to(k, p, data):
    """Repeat along dimensions of length 1.

    Parameters
    ----------
    data : array
    shape : tuple of int
        The result's; 0 keeps a length.
    """
    return k.xp.broadcast_to(data, _wide(p, data.shape)).copy()


@broadcast_to.shape
def _(p, ins, outs):
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
def broadcast_like(k, p, lhs, rhs):
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


def _broadcast_like(p: Any, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
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
def _(p, ins, outs):
    return ins, [_broadcast_like(p, *ins) if known(ins[0]) and known(ins[1]) else None]


broadcast_like.dtype(reshape_like.dtype_rule)
