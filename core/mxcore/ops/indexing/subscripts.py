"""Reading and writing parts of arrays: what stands behind ``x[key]`` and ``x[key] = value``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params, literal
from ...parameters import Any_
from ...typing import Array, Call, Operators
from ..common.rules import first_dtype, size_of

__all__: list[str] = []


class Index(Any_):
    """A coded index: a tuple of ints, None, Ellipsis, ``("s", start, stop, step)`` and ``("a", place of an array)``."""

    kind = "index"

    def convert(self, value: Any) -> Any:
        found = literal(value) if isinstance(value, str) else value
        if not isinstance(found, tuple):
            raise TypeError(f"must be a tuple, got {value!r}")
        return found

    def format(self, value: Any) -> str:
        return str(value).replace("Ellipsis", "...")


def decoded(index: Any, arrays: Any = ()) -> tuple[Any, ...]:
    """The NumPy index that a coded one stands for: None, ints, ("s", start, stop, step), ("a", place of an array)."""
    return tuple(
        k if not isinstance(k, tuple) else slice(*k[1:]) if k[0] == "s" else _whole(arrays[k[1]]) for k in index
    )


def _whole(a: Any) -> Any:
    """An index array as integers."""
    return a if a.dtype.kind in "iu" else a.astype(np.int64)


def basic_shape(index: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of ``x[index]`` with None, integers, slices and an Ellipsis only."""
    if Ellipsis in index:
        dots, used = index.index(Ellipsis), sum(k is not None for k in index) - 1
        index = (*index[:dots], *[("s", None, None, None)] * (len(shape) - used), *index[dots + 1 :])
    out: list[int] = []
    axis = 0
    for k in index:
        if k is None:
            out.append(1)
            continue
        if axis >= len(shape):
            raise ValueError(f"index {index} has more items than the {len(shape)} dimensions")
        if isinstance(k, tuple):
            out.append(len(range(shape[axis])[slice(*k[1:])]))
        elif not -shape[axis] <= k < shape[axis]:
            raise IndexError(f"index {k} is out of bounds for axis {axis} of length {shape[axis]}")
        axis += 1
    return (*out, *shape[axis:])


def as_slices(index: Any) -> list[tuple[str, dict[str, Any]]] | None:
    """MXNet's operators for a basic index: a slice, a reshape which drops dimensions, and what inserts some.

    None where there are none: behind an Ellipsis, dimensions would have to be counted from the last.
    """
    if index and index[-1] is Ellipsis:
        index = index[:-1]
    if Ellipsis in index:
        return None
    found: list[tuple[str, dict[str, Any]]] = []
    parts = [k[1:] if isinstance(k, tuple) else (k, k + 1 or None, 1) for k in index if k is not None]
    if any(part != (None, None, None) for part in parts):
        begin, end, step = (list(v) for v in zip(*parts))
        steps = {} if all(s in (None, 1) for s in step) else {"step": tuple(step)}
        found.append(("slice", {"begin": tuple(begin), "end": tuple(end), **steps}))
    if any(isinstance(k, int) for k in index):
        codes = [-2 if isinstance(k, tuple) else -3 for k in index if k is not None]
        found.append(("_npx_reshape", {"newshape": (*codes, -4)}))
    kept = [k for k in index if not isinstance(k, int)]
    return found + [("expand_dims", {"axis": axis}) for axis, k in enumerate(kept) if k is None]


def advanced_shape(index: Any, shape: tuple[int, ...], arrays: Any) -> tuple[int, ...]:
    """The shape of ``x[index]`` with index arrays of the given shapes, by asking NumPy on memory-less stand-ins."""
    empty = np.broadcast_to(np.int8(0), shape)
    stand_in = [np.broadcast_to(np.int64(0), s) for s in arrays]
    # A dimension of length 0 has no valid index, yet an index of length 0 into it is fine.
    if 0 in shape:
        empty = np.broadcast_to(
            np.int8(0),
            tuple(
                max(d, 1) if isinstance(k, tuple) and k[0] == "a" else d
                for d, k in zip(shape, _per_axis(index, len(shape)))
            ),
        )
    return tuple(empty[decoded(index, stand_in)].shape)


def _per_axis(index: Any, ndim: int) -> list[Any]:
    items = [k for k in index if k is not None and k is not Ellipsis]
    return items + [("s", None, None, None)] * (ndim - len(items))


@op(
    "_basic_index",
    inputs="data",
    index=Index(),
    view=True,
    written_as=lambda p: as_slices(p.index),
    grad=lambda F, p, dy, like_data: F._basic_index_spread(dy, like_data, index=p.index),
)
def basic_index(k: Call, p: Params, data: Array) -> Array:
    """The part of `data` that an index of ints, slices and None selects.

    Parameters
    ----------
    data : array
    index : tuple
        Ints, ``("s", start, stop, step)`` for slices, None for new axes, at most one Ellipsis.
    """
    return data[decoded(p.index)]


basic_index.shape(lambda p, ins: [basic_shape(p.index, ins[0])])


@op(
    "_advanced_index",
    inputs="data indices*",
    index=Index(),
    grad=lambda F, p, dy, like_data, indices: (
        F._advanced_index_spread(dy, like_data, *indices, index=p.index),
        [None] * len(indices),
    ),
)
def advanced_index(k: Call, p: Params, data: Array, *indices: Array) -> Array:
    """The elements of `data` that index arrays select, with NumPy's meaning; an index out of range is an error.

    Parameters
    ----------
    data : array
    indices : arrays
        Integers, or floats that are whole numbers; their shapes broadcast.
    num_args : int
        How many; counted for you.
    index : tuple
        Ints, ``("s", start, stop, step)`` for slices, None for new axes, ``("a", i)`` for the i-th index array.
    """
    return data[decoded(p.index, indices)]


advanced_index.shape(lambda p, ins: [advanced_shape(p.index, ins[0], ins[1:])])
advanced_index.dtype(first_dtype)


def _part_of_rhs(F: Operators, part: Any, like_rhs: Any) -> Any:
    """The gradient of a written value: that of the part, summed where the value was broadcast."""
    return F._cast_like(F._sum_like(part, like_rhs), like_rhs)


@op(
    "_slice_set",
    inputs="lhs rhs",
    index=Index(),
    alias="lhs->output",
    grad=lambda F, p, dy, like_rhs: (
        F._slice_set(dy, F.zeros_like(like_rhs), index=p.index),
        _part_of_rhs(F, F._basic_index(dy, index=p.index), like_rhs),
    ),
)
def slice_set(k: Call, p: Params, lhs: Array, rhs: Array) -> Array:
    """`lhs` with the indexed part replaced by `rhs`.

    Parameters
    ----------
    lhs : array
    rhs : array
        Broadcast to the part.
    index : tuple
        As in `_basic_index`.
    """
    out = lhs.copy()
    out[decoded(p.index)] = rhs.reshape(_fitting(rhs.shape, basic_shape(p.index, lhs.shape)))
    return out


def _fitting(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without the leading ones that the target lacks."""
    extra = len(shape) - len(target)
    return tuple(shape[extra:]) if extra > 0 and all(d == 1 for d in shape[:extra]) else tuple(shape)


slice_set.shape(lambda p, ins: [ins[0]])
slice_set.dtype(first_dtype)


@op(
    "_advanced_set",
    inputs="lhs rhs indices*",
    index=Index(),
    alias="lhs->output",
    grad=lambda F, p, dy, like_rhs, indices: (
        F._advanced_set(dy, F.zeros_like(like_rhs), *indices, index=p.index),
        _part_of_rhs(F, F._backward_advanced_set(dy, *indices, index=p.index), like_rhs),
        [None] * len(indices),
    ),
)
def advanced_set(k: Call, p: Params, lhs: Array, rhs: Array, *indices: Array) -> Array:
    """`lhs` with the elements at the indexed places replaced by `rhs`; of equal places the last wins.

    Parameters
    ----------
    lhs : array
    rhs : array
        Broadcast to the places.
    indices : arrays
    num_args : int
        How many; counted for you.
    index : tuple
        As in `_advanced_index`.
    """
    out = lhs.copy()
    out[decoded(p.index, indices)] = rhs
    return out


advanced_set.shape(lambda p, ins: [ins[0]])
advanced_set.dtype(first_dtype)


@op(
    "_backward_advanced_set",
    inputs="dy indices*",
    index=Index(),
    grad=lambda F, p, d_output, like_dy, indices: (
        F._advanced_set(F.zeros_like(like_dy), d_output, *indices, index=p.index),
        [None] * len(indices),
    ),
)
def backward_advanced_set(k: Call, p: Params, dy: Array, *indices: Array) -> Array:
    """The gradient of the values that `_advanced_set` writes: of those for equal places, the last one's only.

    Parameters
    ----------
    dy : array
    indices : arrays
    num_args : int
        How many; counted for you.
    index : tuple
        As in `_advanced_index`.
    """
    key = decoded(p.index, indices)
    part = dy[key]
    order = k.xp.arange(size_of(part.shape)).reshape(part.shape)
    writer = k.xp.zeros(tuple(dy.shape), order.dtype)
    writer[key] = order
    return k.xp.where(writer[key] == order, part, k.xp.zeros((), part.dtype))


backward_advanced_set.shape(lambda p, ins: [advanced_shape(p.index, ins[0], ins[1:])])
backward_advanced_set.dtype(first_dtype)
