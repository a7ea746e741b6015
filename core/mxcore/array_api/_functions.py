"""NumPy's functions out of the standard's, over an :class:`ArrayAPINamespace` (`xp`).

Names, signatures and meanings are the contract's, which a test compares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from ..typing import Array
from .indexing import add_at, linear

if TYPE_CHECKING:
    from .namespace import ArrayAPINamespace as Namespace

__all__ = ["FOURIER", "FUNCTIONS", "LINEAR"]

Fn = TypeVar("Fn", bound=Callable[..., Any])
Shape: TypeAlias = int | Sequence[int]
Axis: TypeAlias = int | Sequence[int] | None

#: NumPy's name -> function of the namespace and the arguments.
FUNCTIONS: dict[str, Callable[..., Any]] = {}
LINEAR: dict[str, Callable[..., Any]] = {}
FOURIER: dict[str, Callable[..., Any]] = {}


def given(fn: Fn) -> Fn:
    """Enter a function under its name."""
    FUNCTIONS[fn.__name__.rstrip("_")] = fn
    return fn


def _axes(a: Any, axis: Any) -> tuple[int, ...]:
    """Dimensions, from zero on."""
    if axis is None:
        return tuple(range(a.ndim))
    found = []
    for d in axis if hasattr(axis, "__iter__") else (axis,):
        d = int(d)
        if not -a.ndim <= d < a.ndim:
            raise np.exceptions.AxisError(d, a.ndim)
        found.append(d % a.ndim)
    return tuple(found)


def _axis(a: Any, axis: Any, flat: bool = True) -> tuple[Any, int]:
    """An array and one of its dimensions; flat for None."""
    return (xp_ravel(a), 0) if axis is None and flat else (a, _axes(a, axis)[0])


def xp_ravel(a: Any) -> Any:
    """In one dimension."""
    return a if a.ndim == 1 else a.xp.reshape(a, (-1,))


# ---- creation ---------------------------------------------------------------------------------------------------
def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(map(int, shape)) if isinstance(shape, (tuple, list)) else (int(shape),)


@given
def arange(xp: Namespace, start: float, stop: float | None = None, step: float = 1, dtype: Any = None) -> Array:
    start, stop = (0, start) if stop is None else (start, stop)
    start, stop, step = (v.item() if hasattr(v, "item") else v for v in (start, stop, step))
    if dtype is None:
        dtype = np.int64 if all(isinstance(v, int) for v in (start, stop, step)) else np.float64
    if step and (stop - start) / step <= 0:  # PyTorch knows no empty range that runs the other way
        return xp.zeros((0,), dtype)
    return xp.made("arange", start, stop, step, dtype=dtype)


@given
def array(xp: Namespace, a: Array, dtype: Any = None) -> Array:
    found = xp.asarray(a, dtype)
    return found.copy() if found is a else found


@given
def asarray(xp: Namespace, a: Array, dtype: Any = None) -> Array:
    if isinstance(a, xp.Array):
        return a if dtype is None or a.dtype == dtype else xp.cast(a, dtype)
    if isinstance(a, (list, tuple)) and any(isinstance(v, xp.Array) for v in a):
        return xp.stack([xp.asarray(v, dtype) for v in a])
    host = np.array(a, dtype, order="C")
    xp.need(host.dtype)
    return xp.Array(xp.standard("asarray")(host, **xp.place))


@given
def ascontiguousarray(xp: Namespace, a: Array, dtype: Any = None) -> Array:
    a = xp.asarray(a, dtype)
    return xp.same(a, xp.standard("contiguous")(a.value))


@given
def empty(xp: Namespace, shape: Shape, dtype: Any = np.float64) -> Array:
    return xp.made("empty", _shape(shape), dtype=dtype)


@given
def zeros(xp: Namespace, shape: Shape, dtype: Any = np.float64) -> Array:
    return xp.made("zeros", _shape(shape), dtype=dtype)


@given
def ones(xp: Namespace, shape: Shape, dtype: Any = np.float64) -> Array:
    return xp.made("ones", _shape(shape), dtype=dtype)


@given
def full(xp: Namespace, shape: Shape, fill_value: Any, dtype: Any = None) -> Array:
    if isinstance(fill_value, xp.Array):
        return xp.broadcast_to(xp.asarray(fill_value, dtype), _shape(shape)).copy()
    dtype = np.asarray(fill_value).dtype if dtype is None else np.dtype(dtype)
    return xp.made("full", _shape(shape), xp.plain(fill_value, dtype), dtype=dtype)


@given
def empty_like(xp: Namespace, a: Array, dtype: Any = None) -> Array:
    return xp.empty(a.shape, dtype or a.dtype)


@given
def zeros_like(xp: Namespace, a: Array, dtype: Any = None) -> Array:
    return xp.zeros(a.shape, dtype or a.dtype)


@given
def ones_like(xp: Namespace, a: Array, dtype: Any = None) -> Array:
    return xp.ones(a.shape, dtype or a.dtype)


@given
def full_like(xp: Namespace, a: Array, fill_value: Any, dtype: Any = None) -> Array:
    return xp.full(a.shape, fill_value, dtype or a.dtype)


@given
def eye(xp: Namespace, N: int, M: int | None = None, k: int = 0, dtype: Any = np.float64) -> Array:
    return (xp.arange(N)[:, None] + k == xp.arange(N if M is None else M)).astype(dtype)


@given
def tri(xp: Namespace, N: int, M: int | None = None, k: int = 0, dtype: Any = np.float64) -> Array:
    return (xp.arange(N)[:, None] + k >= xp.arange(N if M is None else M)).astype(dtype)


@given
def linspace(
    xp: Namespace, start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None
) -> Array:
    parts = num - 1 if endpoint else num
    y = xp.arange(num, dtype=np.float64) * ((stop - start) / parts if parts > 0 else 0.0) + float(start)
    if endpoint and num > 1:
        y[-1] = stop
    return y if dtype is None else xp.floor(y).astype(dtype) if np.dtype(dtype).kind in "iu" else y.astype(dtype)


@given
def indices(xp: Namespace, dimensions: Sequence[int], dtype: Any = np.int64) -> Array:
    n = len(dimensions)
    one = [
        xp.reshape(xp.arange(d, dtype=dtype), (1,) * i + (d,) + (1,) * (n - i - 1)) for i, d in enumerate(dimensions)
    ]
    return xp.stack([xp.broadcast_to(a, dimensions) for a in one]) if one else xp.zeros((0,), dtype)


@given
def meshgrid(xp: Namespace, *xi: Array, indexing: str = "xy") -> list[Array]:
    n = len(xi)
    order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else range(n)
    return broadcast_arrays(
        xp, *[xp.reshape(a, tuple(-1 if j == i else 1 for j in range(n))) for a, i in zip(xi, order)]
    )


# ---- elementwise ------------------------------------------------------------------------------------------------
FUNCTIONS["add.at"] = add_at


def _alike(xp: Any, *args: Any) -> list[Any]:
    """Arrays of one dtype, that of NumPy's promotion."""
    dtype = xp.near(np.result_type(*[a.dtype if isinstance(a, xp.Array) else a for a in args]))
    return [
        xp.cast(a, dtype) if isinstance(a, xp.Array) else xp.Array(xp.number(xp.plain(a, dtype), xp.raw[dtype]))
        for a in args
    ]


@given
def where(xp: Namespace, condition: Array, x: Array, y: Array) -> Array:
    x, y = _alike(xp, x, y)
    return xp.Array(xp.standard("where")(xp.cast(condition, np.bool_).value, x.value, y.value))


@given
def clip(xp: Namespace, a: Array, a_min: Any, a_max: Any) -> Array:
    a = a if a_min is None else xp.maximum(a, a_min)
    return a if a_max is None else xp.minimum(a, a_max)


@given
def isclose(
    xp: Namespace, a: Array, b: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Array:
    near = (xp.abs(a - b) <= atol + rtol * xp.abs(b)) & xp.isfinite(b) | (a == b)
    return near | xp.isnan(a) & xp.isnan(b) if equal_nan else near


@given
def nan_to_num(
    xp: Namespace, x: Array, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    if x.dtype.kind != "f":
        return x.copy()
    most = float(np.finfo(x.dtype).max)
    x = xp.where(xp.isnan(x), nan, x)
    x = xp.where(x == np.inf, most if posinf is None else posinf, x)
    return xp.where(x == -np.inf, -most if neginf is None else neginf, x)


# ---- reductions -------------------------------------------------------------------------------------------------
def _summed(xp: Any, a: Any, dtype: Any) -> Any:
    """In the dtype in which NumPy adds."""
    return xp.cast(
        a,
        xp.near(
            np.add.resolve_dtypes((None, a.dtype, None), reduction=True)[-1]
            if dtype is None and a.dtype != bool
            else np.dtype(np.int64 if dtype is None else dtype)
        ),
    )


def _reduced(xp: Any, name: str, a: Any, axis: Any, keepdims: bool) -> Any:
    axes, dtype = _axes(a, axis), a.dtype
    if not axes:
        return a.copy()
    r = xp.Array(xp.standard(name)(a.value, axis=axes, keepdims=keepdims))
    return r if r.dtype == dtype else xp.cast(r, dtype)


def _sum(name: str, xp: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return _reduced(xp, name, _summed(xp, a, dtype), axis, keepdims)


def _nansum(name: str, one: float, xp: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return _sum(name, xp, xp.where(xp.isnan(a), one, a) if a.dtype.kind == "f" else a, axis, dtype, keepdims)


def _most(name: str, xp: Any, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if any(not a.shape[d] for d in _axes(a, axis)):
        raise ValueError(f"xp.{name} of no elements: the array has shape {a.shape}")
    if a.dtype == bool:
        return xp.cast(_most(name, xp, xp.cast(a, np.uint8), axis, keepdims), np.bool_)
    return _reduced(xp, name, a, axis, keepdims)


def _truth(name: str, xp: Any, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _reduced(xp, name, xp.cast(a, np.bool_), axis, keepdims)


def _where_most(name: str, xp: Any, a: Any, axis: Any = None) -> Any:
    a, d = _axis(a, axis)
    a = xp.cast(a, np.uint8) if a.dtype == bool else a
    return xp.cast(xp.Array(xp.standard(name)(a.value, axis=d)), np.int64)


def _running(name: str, xp: Any, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    a, d = _axis(a, axis)
    a = _summed(xp, a, dtype)
    return xp.cast(xp.Array(xp.standard(name)(a.value, axis=d)), a.dtype)


FUNCTIONS.update(
    sum=partial(_sum, "sum"),
    prod=partial(_sum, "prod"),
    nansum=partial(_nansum, "sum", 0),
    nanprod=partial(_nansum, "prod", 1),
    max=partial(_most, "max"),
    min=partial(_most, "min"),
    amax=partial(_most, "max"),
    amin=partial(_most, "min"),
    all=partial(_truth, "all"),
    any=partial(_truth, "any"),
    argmax=partial(_where_most, "argmax"),
    argmin=partial(_where_most, "argmin"),
    cumsum=partial(_running, "cumulative_sum"),
    cumprod=partial(_running, "cumulative_prod"),
)


@given
def mean(xp: Namespace, a: Array, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    a = xp.cast(a, dtype if dtype is not None else np.float64 if a.dtype.kind in "iub" else a.dtype)
    return _reduced(xp, "mean", a, axis, keepdims)


@given
def var(xp: Namespace, a: Array, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> Array:
    a = xp.cast(a, np.float64) if a.dtype.kind in "iub" else a
    n = math.prod(a.shape[d] for d in _axes(a, axis))
    return xp.sum(xp.square(a - xp.mean(a, axis, keepdims=True)), axis, keepdims=keepdims) / max(n - ddof, 0)


@given
def std(xp: Namespace, a: Array, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> Array:
    return xp.sqrt(xp.var(a, axis, ddof, keepdims))


@given
def count_nonzero(xp: Namespace, a: Array, axis: Axis = None) -> Array:
    return xp.sum(xp.cast(a, np.bool_), axis)


# ---- shapes -----------------------------------------------------------------------------------------------------
@given
def reshape(xp: Namespace, a: Array, shape: Shape) -> Array:
    return xp.same(a, xp.standard("reshape")(a.value, _shape(shape)))


@given
def ravel(xp: Namespace, a: Array) -> Array:
    return xp.reshape(a, (-1,))


@given
def atleast_1d(xp: Namespace, a: Array) -> Array:
    return a if a.ndim else xp.reshape(a, (1,))


@given
def transpose(xp: Namespace, a: Array, axes: Any = None) -> Array:
    return xp.same(
        a, xp.standard("permute_dims")(a.value, tuple(range(a.ndim))[::-1] if axes is None else _axes(a, axes))
    )


@given
def swapaxes(xp: Namespace, a: Array, axis1: int, axis2: int) -> Array:
    order = [*range(a.ndim)]
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return xp.transpose(a, order)


@given
def moveaxis(xp: Namespace, a: Array, source: Axis, destination: Axis) -> Array:
    source, destination = _axes(a, source), _axes(a, destination)
    order = [d for d in range(a.ndim) if d not in source]
    for to, d in sorted(zip(destination, source)):
        order.insert(to, d)
    return xp.transpose(a, order)


@given
def expand_dims(xp: Namespace, a: Array, axis: Axis) -> Array:
    n = a.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    at = {d % n for d in (axis if isinstance(axis, (tuple, list)) else (axis,))}
    rest = iter(a.shape)
    return xp.reshape(a, tuple(1 if d in at else next(rest) for d in range(n)))


@given
def squeeze(xp: Namespace, a: Array, axis: Axis = None) -> Array:
    at = [d for d in range(a.ndim) if a.shape[d] == 1] if axis is None else _axes(a, axis)
    if any(a.shape[d] != 1 for d in at):
        raise ValueError(f"xp.squeeze: dimensions {axis} of shape {a.shape} are not of length 1")
    return xp.reshape(a, tuple(n for d, n in enumerate(a.shape) if d not in at))


@given
def broadcast_to(xp: Namespace, a: Array, shape: Shape) -> Array:
    shape = _shape(shape)
    return a if a.shape == shape else xp.Array(xp.standard("broadcast_to")(a.value, shape))


@given
def broadcast_arrays(xp: Namespace, *args: Array) -> list[Array]:
    shape = np.broadcast_shapes(*[a.shape for a in args])
    return [xp.broadcast_to(a, shape) for a in args]


@given
def concatenate(xp: Namespace, arrays: Sequence[Array], axis: Axis = 0) -> Array:
    arrays = _alike(xp, *arrays)
    return xp.Array(xp.standard("concat")([a.value for a in arrays], axis=_axes(arrays[0], axis)[0]))


@given
def stack(xp: Namespace, arrays: Sequence[Array], axis: Axis = 0) -> Array:
    return xp.concatenate([xp.expand_dims(a, axis) for a in arrays], axis)


@given
def split(xp: Namespace, a: Array, sections: Any, axis: Axis = 0) -> list[Array]:
    d = _axes(a, axis)[0]
    if isinstance(sections, int) and a.shape[d] % sections:
        raise ValueError(f"xp.split: {a.shape[d]} elements are not {sections} equal parts")
    return array_split(xp, a, sections, d)


@given
def array_split(xp: Namespace, a: Array, sections: Any, axis: Axis = 0) -> list[Array]:
    d = _axes(a, axis)[0]
    n = a.shape[d]
    if isinstance(sections, int):
        sections = [*accumulate(n // sections + (i < n % sections) for i in range(sections))][:-1]
    return [a[(slice(None),) * d + (slice(i, j),)] for i, j in zip([0, *sections], [*sections, n])]


@given
def tile(xp: Namespace, a: Array, reps: Shape) -> Array:
    reps = _shape(reps)
    shape = (1,) * (len(reps) - a.ndim) + a.shape
    reps = (1,) * (len(shape) - len(reps)) + reps
    a = xp.reshape(a, tuple(m for n in shape for m in (1, n)))
    a = xp.broadcast_to(a, tuple(m for r, n in zip(reps, shape) for m in (r, n)))
    return xp.reshape(a.copy(), tuple(r * n for r, n in zip(reps, shape)))


@given
def repeat(xp: Namespace, a: Array, repeats: Any, axis: Axis = None) -> Array:
    a, d = _axis(a, axis)
    shape = a.shape
    if isinstance(repeats, xp.Array):
        ends = xp.cumsum(xp.broadcast_to(repeats, (shape[d],)))
        total = ends[-1].item() if shape[d] else 0
        return xp.take_raw(a, xp.searchsorted(ends, xp.arange(total), "right"), d)
    a = xp.broadcast_to(xp.expand_dims(a, d + 1), (*shape[: d + 1], int(repeats), *shape[d + 1 :]))
    return xp.reshape(a.copy(), (*shape[:d], shape[d] * int(repeats), *shape[d + 1 :]))


@given
def flip(xp: Namespace, a: Array, axis: Axis = None) -> Array:
    axes = _axes(a, axis)
    return xp.Array(xp.standard("flip")(a.value, axis=axes)) if axes else a


@given
def roll(xp: Namespace, a: Array, shift: Any, axis: Axis = None) -> Array:
    if axis is None:
        return xp.reshape(roll(xp, xp_ravel(a), shift, 0), a.shape)
    axes = _axes(a, axis)
    for d, by in zip(axes, shift if isinstance(shift, (tuple, list)) else [shift] * len(axes)):
        by = by % max(a.shape[d], 1)
        before, n = (slice(None),) * d, a.shape[d]
        last, first = (*before, slice(n - by, None)), (*before, slice(0, n - by))
        a = xp.concatenate([a[last], a[first]], d)
    return a


@given
def pad(xp: Namespace, array: Array, pad_width: Any, mode: Any = "constant", constant_values: float = 0) -> Array:
    pairs = [tuple(map(int, p)) for p in np.broadcast_to(np.asarray(pad_width), (array.ndim, 2))]
    if mode == "constant":
        out = xp.full(tuple(n + i + j for n, (i, j) in zip(array.shape, pairs)), constant_values, array.dtype)
        out[tuple(slice(i, i + n) for n, (i, _) in zip(array.shape, pairs))] = array
        return out
    for d, pair in enumerate(pairs):
        if pair != (0, 0) and mode in ("maximum", "minimum"):
            margin = (xp.max if mode == "maximum" else xp.min)(array, d, keepdims=True)
            array = xp.concatenate([margin] * pair[0] + [array] + [margin] * pair[1], d)
        elif pair != (0, 0):
            array = xp.take_raw(array, xp.asarray(np.pad(np.arange(array.shape[d]), pair, mode)), d)
    return array


@given
def diag(xp: Namespace, v: Array, k: int = 0) -> Array:
    if v.ndim == 2:
        return xp.diagonal(v, k).copy()
    v = xp.concatenate([v, xp.zeros((abs(k),), v.dtype)]) if k else v
    n = v.shape[0]
    return xp.where(xp.eye(n, n, k, np.bool_), v[:, None] if k >= 0 else v, xp.zeros((), v.dtype))


@given
def diagonal(xp: Namespace, a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    a = xp.moveaxis(a, (axis1, axis2), (-2, -1))
    n = max(min(a.shape[-2] + min(offset, 0), a.shape[-1] - max(offset, 0)), 0)
    i = xp.arange(n)
    return a[..., i + max(-offset, 0), i + max(offset, 0)]


@given
def tril(xp: Namespace, m: Array, k: int = 0) -> Array:
    return xp.where(xp.tri(m.shape[-2], m.shape[-1], k, np.bool_), m, xp.zeros((), m.dtype))


@given
def triu(xp: Namespace, m: Array, k: int = 0) -> Array:
    return xp.where(xp.tri(m.shape[-2], m.shape[-1], k - 1, np.bool_), xp.zeros((), m.dtype), m)


@given
def diff(xp: Namespace, a: Array, n: int = 1, axis: Axis = -1) -> Array:
    before = (slice(None),) * _axes(a, axis)[0]
    upper, lower = (*before, slice(1, None)), (*before, slice(0, -1))
    for _ in range(n):
        x, y = a[upper], a[lower]
        a = x != y if a.dtype == bool else x - y
    return a


# ---- order and counts -------------------------------------------------------------------------------------------
@given
def argsort(xp: Namespace, a: Array, axis: Axis = -1, kind: str | None = None) -> Array:
    a, d = _axis(a, axis)
    a = xp.cast(a, np.uint8) if a.dtype == bool else a
    return xp.cast(xp.Array(xp.standard("argsort")(a.value, axis=d, stable=True)), np.int64)


@given
def sort(xp: Namespace, a: Array, axis: Axis = -1) -> Array:
    a, d = _axis(a, axis)
    if a.dtype == bool:
        return xp.cast(sort(xp, xp.cast(a, np.uint8), d), np.bool_)
    return xp.Array(xp.standard("sort")(a.value, axis=d))


@given
def partition(xp: Namespace, a: Array, kth: int, axis: Axis = -1) -> Array:
    return xp.sort(a, axis)


@given
def argpartition(xp: Namespace, a: Array, kth: int, axis: Axis = -1) -> Array:
    return xp.argsort(a, axis)


@given
def searchsorted(xp: Namespace, a: Array, v: Array, side: str = "left") -> Array:
    a, v = _alike(xp, a, v)
    return xp.cast(
        xp.reshape(xp.Array(xp.standard("searchsorted")(a.value, xp.reshape(v, (-1,)).value, side=side)), v.shape),
        np.int64,
    )


@given
def nonzero(xp: Namespace, a: Array) -> tuple[Array, ...]:
    return tuple(xp.cast(xp.Array(i), np.int64) for i in xp.standard("nonzero")(xp.cast(a, np.bool_).value))


@given
def flatnonzero(xp: Namespace, a: Array) -> Array:
    return xp.nonzero(xp_ravel(a))[0]


@given
def unique(
    xp: Namespace, ar: Array, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False
) -> Array | tuple[Array, ...]:
    a = xp_ravel(ar)
    order = xp.argsort(a)
    s = xp.take(a, order)
    new = s[1:] != s[:-1]
    if a.dtype.kind == "f":
        new = new & ~(xp.isnan(s[1:]) & xp.isnan(s[:-1]))
    new = xp.concatenate([xp.ones((min(a.size, 1),), np.bool_), new]) if a.size else xp.zeros((0,), np.bool_)
    first = xp.nonzero(new)[0]
    found = [s[first]]
    if return_index:
        found.append(order[first])
    if return_inverse:
        found.append(xp.reshape(xp.take(xp.cumsum(new) - 1, xp.argsort(order)), ar.shape))
    if return_counts:
        found.append(xp.diff(xp.concatenate([first, xp.asarray([a.size])])))
    return tuple(found) if len(found) > 1 else found[0]


@given
def bincount(xp: Namespace, x: Array, weights: Array = None, minlength: int = 0) -> Array:
    n = max(int(xp.max(x).item()) + 1 if x.size else 0, minlength)
    out = xp.zeros((n,), np.int64 if weights is None else np.float64)
    add_at(xp, out, x, 1 if weights is None else weights)
    return out


@given
def histogram(xp: Namespace, a: Array, bins: Array) -> tuple[Array, Array]:
    s = xp.sort(xp_ravel(a))
    below = xp.concatenate([xp.searchsorted(s, bins[:-1]), xp.searchsorted(s, bins[-1:], "right")])
    return xp.diff(below), bins


# ---- indices ----------------------------------------------------------------------------------------------------
@given
def take(xp: Namespace, a: Array, indices: Array, axis: Axis = None) -> Array:
    a, d = _axis(a, axis)
    indices = xp.asarray(indices)
    flat = linear(xp, [xp_ravel(indices)], [a.shape[d]])
    return xp.reshape(xp.take_raw(a, flat, d), (*a.shape[:d], *indices.shape, *a.shape[d + 1 :]))


@given
def take_along_axis(xp: Namespace, arr: Array, indices: Array, axis: Axis) -> Array:
    arr, d = _axis(arr, axis)
    n = arr.shape[d]
    indices = linear(xp, [indices], [n])
    shape = [
        *np.broadcast_shapes((*arr.shape[:d], 1, *arr.shape[d + 1 :]), (*indices.shape[:d], 1, *indices.shape[d + 1 :]))
    ]
    arr, indices = (xp.broadcast_to(v, (*shape[:d], v.shape[d], *shape[d + 1 :])) for v in (arr, indices))
    return xp.Array(xp.standard("take_along_axis")(arr.value, indices.value, axis=d))


@given
def put_along_axis(xp: Namespace, arr: Array, indices: Array, values: Array, axis: Axis) -> None:
    if axis is None:
        arr, axis = xp.reshape(arr, (-1,)), 0
    d = _axes(arr, axis)[0]
    places = [
        indices if i == d else xp.reshape(xp.arange(n), (-1, *[1] * (arr.ndim - i - 1)))
        for i, n in enumerate(arr.shape)
    ]
    arr[tuple(places)] = values


@given
def ravel_multi_index(xp: Namespace, multi_index: Sequence[Array], dims: Sequence[int]) -> Array:
    return linear(xp, multi_index, dims)


@given
def unravel_index(xp: Namespace, indices: Array, shape: Shape) -> tuple[Array, ...]:
    found = []
    for n in _shape(shape)[::-1]:
        found.append(indices % n)
        indices = indices // n
    return tuple(found[::-1])


# ---- products ---------------------------------------------------------------------------------------------------
@given
def tensordot(xp: Namespace, a: Array, b: Array, axes: Any = 2) -> Array:
    of_a, of_b = (range(a.ndim - axes, a.ndim), range(axes)) if isinstance(axes, int) else axes
    of_a, of_b = _axes(a, of_a), _axes(b, of_b)
    keep_a, keep_b = [d for d in range(a.ndim) if d not in of_a], [d for d in range(b.ndim) if d not in of_b]
    n = math.prod(a.shape[d] for d in of_a)
    left = xp.reshape(xp.transpose(a, (*keep_a, *of_a)), (math.prod(a.shape[d] for d in keep_a), n))
    right = xp.reshape(xp.transpose(b, (*of_b, *keep_b)), (n, math.prod(b.shape[d] for d in keep_b)))
    return xp.reshape(xp.matmul(left, right), (*[a.shape[d] for d in keep_a], *[b.shape[d] for d in keep_b]))


@given
def dot(xp: Namespace, a: Array, b: Array) -> Array:
    if not (a.ndim and b.ndim):
        return a * b
    return (
        xp.matmul(a, b) if b.ndim == 1 or a.ndim == b.ndim == 2 else xp.tensordot(a, b, ((a.ndim - 1,), (b.ndim - 2,)))
    )


@given
def outer(xp: Namespace, a: Array, b: Array) -> Array:
    return xp_ravel(a)[:, None] * xp_ravel(b)


# ---- types ------------------------------------------------------------------------------------------------------
@given
def can_cast(xp: Namespace, from_: Any, to: Any) -> bool:
    return np.can_cast(from_, to)


@given
def result_type(xp: Namespace, *arrays_and_dtypes: Any) -> np.dtype[Any]:
    return np.result_type(*[a.dtype if isinstance(a, xp.Array) else a for a in arrays_and_dtypes])


# ---- what methods of arrays need --------------------------------------------------------------------------------
def copy(xp: Namespace, a: Array) -> Array:
    """Contiguous, of its own memory."""
    out = xp.Array(xp.standard("empty")(a.shape, dtype=a.value.dtype, **xp.place))
    out.value[...] = a.value
    return out


def conj(xp: Namespace, a: Array) -> Array:
    """The conjugates."""
    return xp.Array(xp.standard("conj")(a.value)) if a.dtype.kind == "c" else a


def as_bytes_of(xp: Namespace, a: Array, dtype: np.dtype[Any]) -> Array:
    """The same bytes as another dtype."""
    kinds = a.dtype.kind + dtype.kind
    if a.dtype == dtype:
        return a
    if kinds == "cf" and a.itemsize == 2 * dtype.itemsize:
        pairs = [xp.Array(xp.standard(part)(a.value)) for part in ("real", "imag")]
        return xp.reshape(xp.stack(pairs, -1), (*a.shape[:-1], 2 * a.shape[-1]))
    if kinds == "fc" and 2 * a.itemsize == dtype.itemsize:
        real, imag = (xp.cast(a[..., i::2], dtype) for i in (0, 1))
        return real + imag * 1j
    if kinds == "uu" and (a.itemsize, dtype.itemsize) == (8, 4):
        low = np.uint64(0xFFFFFFFF)
        return xp.reshape(xp.stack([a & low, a >> np.uint64(32)], -1), (*a.shape[:-1], 2 * a.shape[-1])).astype(dtype)
    if {*kinds} <= {"i", "u"} and a.itemsize == dtype.itemsize:
        return xp.cast(a, dtype)
    raise TypeError(f"a.view: {a.dtype} as {dtype} is not in the contract of arrays")


# ---- linear algebra and Fourier transforms ----------------------------------------------------------------------
def _linear(name: str, xp: Any, *args: Any, **kw: Any) -> Any:
    args = tuple(xp.cast(a, np.float64) if a.dtype.kind in "iub" else a for a in args)
    if args[0].dtype == np.float16:
        raise TypeError(f"xp.linalg.{name} is for float32 and float64, got float16")
    try:
        found = xp.standard(f"linalg.{name}")(*[a.value for a in args], **kw)
    except Exception as e:
        if "LinAlgError" in type(e).__name__:
            raise np.linalg.LinAlgError(str(e)) from None
        raise
    return tuple(map(xp.Array, found)) if isinstance(found, tuple) else xp.Array(found)


def _of_one(name: str) -> Callable[..., Any]:
    return lambda xp, a: _linear(name, xp, a)


LINEAR.update({n: _of_one(n) for n in "cholesky det eigh eigvalsh inv qr slogdet".split()})


def _norm(xp: Namespace, x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    return xp.sqrt(xp.sum(xp.square(xp.cast(x, np.float64) if x.dtype.kind in "iub" else x), axis, keepdims=keepdims))


LINEAR.update(
    norm=_norm,
    solve=lambda xp, a, b: _linear("solve", xp, *_alike(xp, a, b)),
    svd=lambda xp, a, full_matrices=True: _linear("svd", xp, a, full_matrices=full_matrices),
)


def _fourier(name: str, xp: Any, a: Any) -> Any:
    wide = (
        a.dtype
        if a.dtype.kind == "c"
        else np.complex128
        if a.dtype == np.float64 or a.dtype.kind in "iub"
        else np.complex64
    )
    return xp.Array(xp.standard(f"fft.{name}")(xp.cast(a, wide).value))


FOURIER.update(fft=partial(_fourier, "fft"), ifft=partial(_fourier, "ifft"))
