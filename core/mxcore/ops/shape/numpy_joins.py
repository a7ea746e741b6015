"""The operators of ``mx.np`` that join, split and pad arrays, and put elements in or leave them out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import known
from ..._core.op import op
from ..._core.params import Param, Params, literal
from ...parameters import Enum, Float, Int, Str
from ...twins import twin
from ...typing import Array, Call, Operators
from ..common.bodies import silent, wide
from ..common.rules import axis_of, cut_along, first_dtype, size_of
from ..elementwise.numpy_operators import common_dtype
from . import join

__all__: list[str] = []


def _common(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Dtypes of arrays that are joined: the common one; what is not known yet is like the rest."""
    found = [t for t in ins if t is not None]
    if not found:
        return [outs[0]] * len(ins), outs
    t = common_dtype(*found)
    return [t if s is None else s for s in ins], [t]


def _cast(arrays: Any) -> list[Any]:
    t = common_dtype(*[a.dtype for a in arrays])
    return [a.astype(t, copy=False) for a in arrays]


def _at_least(n: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with `n` dimensions or more: a vector is a row, a matrix has depth 1."""
    shape = (1,) * (min(n, 2) - len(shape)) + shape
    return (*shape, *(1,) * (n - len(shape)))


def _along(p: Params, ndim: int) -> int:
    return 0 if p.axis is None else axis_of(p.axis, ndim)


def _flat_or_not(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    return (size_of(shape),) if p.axis is None else shape


def _with_axis(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    axis = axis_of(p.axis, len(shape) + 1, " of the result")
    return (*shape[:axis], 1, *shape[axis:])


def _column(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) > 1 else (*(shape or (1,)), 1)


#: Operator -> in what shape it sees each array, along which axis it joins what it sees, what it does.
_JOINS: dict[str, tuple[Any, Any, str]] = {
    "_npi_concatenate": (_flat_or_not, _along, "Join arrays along an existing axis."),
    "_npi_stack": (_with_axis, _along, "Join arrays along a new axis."),
    "_npi_vstack": (lambda p, s: _at_least(2, s), lambda p, n: 0, "Join arrays row by row; vectors are rows."),
    "_npi_hstack": (
        lambda p, s: s or (1,),
        lambda p, n: 0 if n == 1 else 1,
        "Join arrays along their second axis, vectors along their only one.",
    ),
    "_npi_dstack": (lambda p, s: _at_least(3, s), lambda p, n: 2, "Join arrays along their third axis."),
    "_npi_column_stack": (_column, lambda p, n: 1, "Join arrays column by column; vectors are columns."),
}
#: MXNet names what these take and give as `Concat` does.
_NAMED: dict[str, Any] = dict.fromkeys(
    ("_npi_concatenate", "_npi_hstack", "_npi_dstack"),
    {"arg_names": lambda p: [f"data{i}" for i in range(p.num_args)], "outputs": "out"},
)
_AXES = {"_npi_concatenate": Int(0, optional=True), "_npi_stack": Int(0)}


@op(
    "_npi_unjoin",
    inputs="data likes~*",
    of=Enum([*_JOINS]),
    axis=Int(None),
    outputs=lambda p: [f"output{i}" for i in range(p.num_args)],
    grad=lambda F, p, dys: [getattr(F, p.of)(*dys, **({"axis": p.axis} if p.of in _AXES else {})), [None] * len(dys)],
)
def unjoin(k: Call, p: Params, data: Array, *likes: Array) -> Any:
    """The parts of an array that was joined of others like `likes`: the gradient of joining.

    Parameters
    ----------
    data : array
    likes : arrays
        Only their shapes are used.
    num_args : int
        How many; counted for you.
    of : str
        The operator that joined them.
    axis : int, optional
        Its parameter.
    """
    seen, along, _ = _JOINS[p.of]
    axis, parts, at = along(p, data.ndim), [], 0
    for x in likes:
        n = seen(p, tuple(x.shape))[axis]
        parts.append(data[cut_along(data.ndim, axis, slice(at, at + n))].reshape(x.shape).copy())
        at += n
    return parts


unjoin.shape(lambda p, ins: list(ins[1:]))
unjoin.dtype(lambda p, ins, outs: (ins, [ins[0]] * (len(ins) - 1)))


def _joined_shape(shapes: list[tuple[int, ...]], axis: int) -> tuple[int, ...]:
    first = shapes[0]
    for i, s in enumerate(shapes):
        if len(s) != len(first) or any(a != b for j, (a, b) in enumerate(zip(s, first)) if j != axis):
            raise ValueError(f"array {i}, seen as {s}, must be like the first, {first}, but for axis {axis}")
    return (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])


def _joining(name: str) -> Any:
    seen, along, doc = _JOINS[name]
    params = {"axis": _AXES[name]} if name in _AXES else {}

    def gradient(F: Operators, p: Params, dy: Any, like_data: Any) -> list[Any]:
        told = {"axis": p.axis} if params else {}
        parts = F._npi_unjoin(dy, *like_data, of=name, **told)
        parts = parts if isinstance(parts, (list, tuple)) else [parts]
        return [[F._cast_like(part, like) for part, like in zip(parts, like_data)]]

    @op(
        name,
        inputs="data*",
        labels="outputs",
        **_NAMED.get(name, {}),
        num_args=Int(ge=1, le=1 << 16),
        params=params,
        recompute=False,
        grad=gradient,
        doc=f"""{doc}

    Parameters
    ----------
    data : arrays
        Their dtypes may differ.
    num_args : int
        How many; counted for you.
    """
        + ("axis : int\n        Along which; of flattened arrays if None.\n    " if params else ""),
    )
    def body(k: Call, p: Params, *data: Array) -> Array:
        arrays = [a.reshape(seen(p, tuple(a.shape))) for a in _cast(data)]
        return k.xp.concatenate(arrays, along(p, arrays[0].ndim))

    @body.shape
    def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        if not all(map(known, ins)):
            return ins, outs
        shapes = [seen(p, s) for s in ins]
        return ins, [_joined_shape(shapes, along(p, len(shapes[0])))]

    body.dtype(_common)
    return body


JOINS = [_joining(name) for name in _JOINS]

hsplit, dsplit = (
    twin(name, join.split_v2, outputs=lambda p, name=name: join.parts(p, name))
    for name in ("_npi_hsplit", "_npi_dsplit")
)


class _Pairs(Param):
    """A pair of lengths for each axis, before and after."""

    kind = "tuple of pairs of ints"

    def convert(self, value: Any) -> tuple[tuple[int, int], ...]:
        value = literal(value.replace("L", "")) if isinstance(value, str) else value
        try:
            return tuple((int(b), int(a)) for b, a in value)
        except (TypeError, ValueError):
            raise TypeError(f"must be a {self.kind}, such as ((1, 1), (0, 2)), got {value!r}") from None


_PAD = {
    "pad_width": _Pairs(),
    "mode": Enum("constant edge maximum minimum reflect symmetric wrap", "constant"),
    "constant_value": Float(0.0),
    "reflect_type": Str("even"),
}


def _margins(p: Params, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    if len(p.pad_width) != len(shape):
        raise ValueError(f"pad_width {p.pad_width} must have a pair for each of the {len(shape)} dimensions")
    if any(n < 0 for pair in p.pad_width for n in pair):
        raise ValueError(f"pad_width {p.pad_width} must not be negative")
    if p.reflect_type != "even":
        raise ValueError(f"reflect_type '{p.reflect_type}' is not supported; it must be 'even'")
    for d, pair in zip(shape, p.pad_width):
        if d == 0 and p.mode != "constant" and any(pair):
            raise ValueError(f"mode '{p.mode}' cannot pad a dimension of length 0, which shape {shape} has")
    return p.pad_width  # type: ignore[no-any-return]


def _padded(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(b + d + a for d, (b, a) in zip(shape, _margins(p, shape)))


@op(
    "_npi_pad",
    inputs="data",
    **_PAD,
    grad=lambda F, p, dy, data: F._npi_unpad(dy, data, pad_width=p.pad_width, mode=p.mode),
)
@silent
def pad(k: Call, p: Params, data: Array) -> Array:
    """Add margins to an array.

    Parameters
    ----------
    data : array
    pad_width : tuple of (int, int)
        Width before and after, for each axis.
    mode : {'constant', 'edge', 'maximum', 'minimum', 'reflect', 'symmetric', 'wrap'}
        Fill them with a number, the nearest element, the greatest or least along the axis, the mirrored array without
        or with its edge, or its other end.
    constant_value : float
        The number of mode 'constant'.
    reflect_type : {'even'}
    """
    width = _margins(p, tuple(data.shape))
    if not width:
        return data.copy()
    if p.mode == "constant":
        return k.xp.pad(data, width, mode="constant", constant_values=p.constant_value)
    return k.xp.pad(data, width, mode=p.mode)


pad.shape(lambda p, ins: [_padded(p, ins[0])])


def _chosen(x: Any, mode: str, axis: int, dtype: Any) -> Any:
    """How much of the margin of an axis each element is: all or, of equal ones, its share."""
    most = (x.max if mode == "maximum" else x.min)(axis, keepdims=True)
    found = (x == most).astype(dtype)
    return found / found.sum(axis, keepdims=True)


def _pad_again(F: Operators, p: Params, d_output: Any, data: Any) -> Any:
    if p.mode in ("maximum", "minimum"):
        return F._npi_pad_as(d_output, data, pad_width=p.pad_width, mode=p.mode), None
    return F._npi_pad(d_output, pad_width=p.pad_width, mode=p.mode), None


@op(
    "_npi_pad_as",
    inputs="data by",
    **_PAD,
    grad=lambda F, p, dy, by: (F._npi_unpad(dy, by, pad_width=p.pad_width, mode=p.mode), None),
)
@silent
def pad_as(k: Call, p: Params, data: Array, by: Array) -> Array:
    """Add margins from the places where another array is greatest or least: the gradient of `_npi_unpad`.

    Parameters
    ----------
    data : array
    by : array
        Of the shape of `data`.
    pad_width, mode, constant_value, reflect_type
        As in `_npi_pad`.
    """
    width, data = _margins(p, tuple(data.shape)), wide(data)
    for axis in range(data.ndim):
        x = k.xp.pad(by, (*width[:axis], *((0, 0),) * (data.ndim - axis)), mode=p.mode)
        margin = (data * _chosen(x, p.mode, axis, data.dtype)).sum(axis, keepdims=True)
        b, a = width[axis]
        data = k.xp.concatenate([margin] * b + [data] + [margin] * a, axis)
    return data


pad_as.shape(lambda p, ins: [_padded(p, ins[0])])
pad_as.dtype(first_dtype)


@op("_npi_unpad", inputs="dy data", **_PAD, grad=_pad_again)
@silent
def backward_pad(k: Call, p: Params, dy: Array, data: Array) -> Array:
    """Bring the gradient of the margins back to the elements that filled them.

    Parameters
    ----------
    dy : array
        Gradient of the output of `_npi_pad`.
    data : array
        The unpadded array.
    pad_width, mode, constant_value, reflect_type
        As in `_npi_pad`.
    """
    width, dy = _margins(p, tuple(data.shape)), wide(dy)
    for axis in reversed(range(data.ndim)):  # margins of later axes are filled from those of earlier ones
        b, a = width[axis]
        if not b and not a:
            continue
        n = data.shape[axis]

        def part(i: int, j: int, axis: int = axis) -> tuple[slice, ...]:
            return (slice(None),) * axis + (slice(i, j),)

        core = dy[part(b, b + n)].copy()
        if p.mode in ("maximum", "minimum"):
            before = (*width[:axis], *((0, 0),) * (data.ndim - axis))
            x = k.xp.pad(data, before, mode=p.mode)
            margin = dy.sum(axis, keepdims=True) - core.sum(axis, keepdims=True)
            core += _chosen(x, p.mode, axis, dy.dtype) * margin
        elif p.mode != "constant":
            source = np.pad(np.arange(n), (b, a), mode=p.mode)
            for at in (*range(b), *range(b + n, b + n + a)):
                i = int(source[at])
                core[part(i, i + 1)] += dy[part(at, at + 1)]
        dy = core
    return dy


@backward_pad.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if ins[0] != _padded(p, ins[1]):
        raise ValueError(f"dy {ins[0]} must have the shape of the padded array, {_padded(p, ins[1])}")
    return [ins[1]]


backward_pad.dtype(first_dtype)
