"""Arrays joined and split."""

from __future__ import annotations

from typing import Any

from ..._core.errors import error
from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Int, Shape
from ...typing import Array, Call, Operators
from ..common.rules import axis_of, cut_along, partly

__all__ = ["concat"]


def _join_shape(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
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
        return (*common[:axis], -1 if n is None else n, *common[axis + 1 :])

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
def concat(k: Call, p: Params, *data: Array) -> Array:
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
def split_like(k: Call, p: Params, data: Array, *likes: Array) -> Any:
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


def _split_axis(p: Params, shape: tuple[int, ...]) -> int:
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
def slice_channel(k: Call, p: Params, data: Array) -> Any:
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
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
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
def stack(k: Call, p: Params, *data: Array) -> Array:
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


def _unstack(F: Operators, p: Params, dy: Any) -> list[Any]:
    parts = F.SliceChannel(dy, num_outputs=p.num_args, axis=p.axis, squeeze_axis=True)
    return list(parts) if isinstance(parts, (list, tuple)) else [parts]


@stack.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
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


def _flat_join(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
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
def rnn_param_concat(k: Call, p: Params, *data: Array) -> Array:
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


def _cuts(p: Params, n: int) -> list[tuple[int, int]]:
    """(begin, end) of each part along an axis of length n."""
    if p.sections > 0:
        small, more = divmod(n, p.sections)
        begins = [i * small + min(i, more) for i in range(p.sections)]
    else:
        begins = list(p.indices)
    ends = [*begins[1:], n]
    for b, e in zip(begins, ends):
        if not 0 <= b <= e <= n:
            raise ValueError(f"indices {p.indices} must rise and lie in an axis of length {n}")
    return list(zip(begins, ends))


def parts(p: Params, name: str = "_split_v2") -> list[str]:
    """The outputs of a split, which is an operator of this name."""
    n = p.sections if p.sections > 0 else len(p.indices)
    if not n:
        raise error(ValueError, f"operator {name}: needs indices, or a positive number of sections")
    return ["output"] if n == 1 else [f"output{i}" for i in range(n)]


def _joined(F: Operators, p: Params, dys: Any, like: Any) -> Any:
    """The gradient of a split: the parts side by side, and zeros before the first."""
    whole = F.stack(*dys, axis=p.axis) if p.squeeze_axis else F.Concat(*dys, dim=p.axis)
    first = 0 if p.sections > 0 else p.indices[0]
    return F._slice_axis_spread(whole, like, axis=p.axis, begin=first, end=None) if first else whole


@op(
    "_split_v2",
    inputs="data",
    labels="inputs",
    indices=Shape(),
    axis=Int(1),
    squeeze_axis=Bool(False),
    sections=Int(0, le=2**16),
    outputs=lambda p: parts(p),
    grad=lambda F, p, dys, like_data: _joined(F, p, dys, like_data),
)
def split_v2(k: Call, p: Params, data: Array) -> Any:
    """Split along an axis at indices, or into sections as equal as can be.

    Parameters
    ----------
    data : array
    indices : tuple of int
        Where each part begins; what lies before the first is left out.
    axis : int
    squeeze_axis : bool
        Drop the axis; its parts must have length 1.
    sections : int
        Number of parts, if positive; then `indices` has no effect.
    """
    axis = axis_of(p.axis, data.ndim)
    parts = [data[cut_along(data.ndim, axis, slice(b, e))].copy() for b, e in _cuts(p, data.shape[axis])]
    return [x.squeeze(axis) for x in parts] if p.squeeze_axis else parts


def _part_shapes(p: Params, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    axis = axis_of(p.axis, len(shape))
    if shape[axis] == -1:
        return [shape[:axis] + shape[axis + p.squeeze_axis :]] * len(parts(p))
    lengths = [e - b for b, e in _cuts(p, shape[axis])]
    if p.squeeze_axis:
        if any(n != 1 for n in lengths):
            raise ValueError(f"squeeze_axis needs parts of length 1, they have {lengths}")
        return [shape[:axis] + shape[axis + 1 :]] * len(lengths)
    return [shape[:axis] + (n,) + shape[axis + 1 :] for n in lengths]


split_v2.shape(partly(_part_shapes))
