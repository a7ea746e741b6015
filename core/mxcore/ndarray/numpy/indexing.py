"""Reading and writing parts of arrays of ``mx.np``: NumPy's indexing, with MXNet's views.

A basic index (ints, slices, None, Ellipsis) that selects one run of memory gives a view, any other a copy. An index
with arrays, lists or truth values always copies. Outside of NumPy's meaning of shapes one element has the shape (1,).
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..._core import dispatch, tables, transfer
from ..._core.array import Array, Storage
from ..._core.errors import MXNetError, error
from ..._core.state import state
from ..._core.stream import commit
from ..._locks import lock_of
from ..._noting import check_readable
from ..._op_functions import mixed_faces
from ..indexing import check_mask, is_mask, pattern_of, put, put_recorded, write

__all__ = ["get_item", "set_item"]

_ALL = slice(None)
#: What errors of writes call them.
_NAME = "x[key] = value"
_BASIC = frozenset({int, slice, type(None), type(Ellipsis)})


def _plain(k: Any) -> Any:
    """One item of an index as an int, a slice, None, Ellipsis or an array of ints or truth values."""
    if k.__class__ in _BASIC:
        return k
    if isinstance(k, (bool, np.bool_)):
        return np.asarray(k)
    if isinstance(k, numbers.Integral):
        return int(k)
    if isinstance(k, slice):
        return k
    if isinstance(k, Array):
        return k
    if isinstance(k, np.ndarray):
        found = k
    elif isinstance(k, (list, tuple, range)):
        found = np.asarray(k)
        if not found.size:
            found = found.astype(np.int64)
    else:
        raise _no_index(k)
    if found.dtype.kind == "f" and found.size and bool((found == np.trunc(found)).all()):
        return found.astype(np.int64)  # numbers of lists are float32 in arrays of MXNet
    if found.dtype.kind not in "biu":
        raise _no_index(k)
    return found


def _no_index(k: Any) -> MXNetError:
    return error(
        IndexError,
        f"an index must be ints, slices, None, Ellipsis, or arrays of ints or truth values, got {k!r}"
        if isinstance(k, (str, float))
        else "an index must be ints, slices, None, Ellipsis, or arrays of ints or truth values, got "
        f"{type(k).__name__}",
    )


def _items(key: Any, shape: tuple[int, ...]) -> tuple[list[Any], bool]:
    """An index with an item for each dimension, None for new axes beside, and whether it is basic."""
    items = [*map(_plain, key)] if isinstance(key, tuple) else [_plain(key)]
    used, dots, basic = 0, -1, True
    for i, k in enumerate(items):
        if k is None:
            continue
        if k is Ellipsis:
            if dots >= 0:
                raise error(IndexError, "an index can have one Ellipsis ('...') only")
            dots = i
        elif isinstance(k, (int, slice)):
            used += 1
        else:
            basic = False
            used += len(k.shape) if is_mask(k) else 1
    if used > len(shape):
        raise error(IndexError, f"too many indices: {used} for an array of shape {shape}")
    fill: list[Any] = [_ALL] * (len(shape) - used)
    if dots < 0:
        items += fill
    else:  # one of no dimensions still stands between arrays
        items[dots : dots + 1] = fill or [Ellipsis] * (not basic)
    _check(items, shape)
    return items, basic


def _check(items: list[Any], shape: tuple[int, ...]) -> None:
    """Refuse ints out of range and masks of another shape, and write slices out in ints."""
    axis = 0
    for i, k in enumerate(items):
        if k is None or k is Ellipsis:
            continue
        if k.__class__ is int:
            if not -shape[axis] <= k < shape[axis]:
                raise error(
                    IndexError,
                    f"index {k} is out of bounds for axis {axis} with size {shape[axis]} (array of shape {shape})",
                )
            if k < 0:
                items[i] = k + shape[axis]
        elif k.__class__ is slice:
            items[i] = _slice(k)
        elif is_mask(k):
            check_mask(k, shape, axis)
            axis += len(k.shape)
            continue
        axis += 1


def _slice(k: slice) -> slice:
    try:
        parts = [None if v is None else int(v.__index__()) for v in (k.start, k.stop, k.step)]
    except (AttributeError, TypeError):
        raise error(TypeError, f"slice indices must be whole numbers or None, got {k!r}") from None
    if parts[2] == 0:
        raise error(ValueError, "slice step cannot be zero")
    return slice(*parts)


def _code(items: list[Any]) -> tuple[Any, ...]:
    """A hashable form of a basic index, for operator parameters."""
    return tuple([("s", k.start, k.stop, k.step) if k.__class__ is slice else k for k in items])


def _one_run(items: list[Any], shape: tuple[int, ...]) -> bool:
    """Whether a basic index selects one run of memory."""
    broken, axis = False, 0
    for k in items:
        if k is None:
            continue
        n = shape[axis]
        axis += 1
        if k.__class__ is int:
            count = 1
        else:
            r = range(n)[k]
            count = len(r)
            if count > 1 and r.step != 1:
                return False
        if broken and count != n:
            return False
        broken = broken or count > 1
    return True


def get_item(x: Any, key: Any) -> Any:
    """``x[key]``."""
    shape = x._data.shape
    items, basic = _items(key, shape)
    if not basic:
        x, pattern, arrays = pattern_of(x, items)
        return tables.ops.get("_advanced_index")(x, *arrays, index=pattern, num_args=len(arrays))
    if shape and not state.np_shape and all(k.__class__ is int for k in items):
        items[-1] = slice(items[-1], items[-1] + 1)  # one element has shape (1,)
    run = _one_run(items, shape)
    if run and not (state.record and x._entry is not None):
        return x.__class__(x._data[tuple(items) + (Ellipsis,)], x._st)
    return dispatch.call(tables.ops.get("_basic_index"), (x,), {"index": _code(items)}, share=run)


def set_item(x: Any, key: Any, value: Any) -> None:
    """``x[key] = value``, which waits for a thread that is about to write what it has read, as in ``x += 1``."""
    if isinstance(value, Array) and x.rules is not value.rules:
        raise mixed_faces(_NAME, x, value)
    if not isinstance(value, (Array, numbers.Real, np.ndarray, np.bool_)):
        value = _values(x, value)
    with lock_of(x._st):
        _set_item(x, key, value)


def _values(x: Any, value: Any) -> Any:
    """What NumPy makes of a value that is no array and no number, in the dtype of `x`."""
    try:
        return np.asarray(value, dtype=x._data.dtype)
    except (TypeError, ValueError) as e:
        raise error(
            type(e) if type(e) in (ValueError, TypeError) else ValueError,
            f"cannot write a {type(value).__name__} into an array of shape {x.shape}, {x._data.dtype}: {e}",
        ) from None


def _set_item(x: Any, key: Any, value: Any) -> None:
    shape = x._data.shape
    everything = key is Ellipsis or key.__class__ is slice and key == _ALL and bool(shape)
    items, basic = ([_ALL] * len(shape), True) if everything else _items(key, shape)
    recorded = isinstance(value, Array) and value._entry is not None
    if state.record and (x._entry is not None or recorded):
        transfer.guard_write(x, _NAME)
        if recorded:
            return _recorded(x, items, basic, value)
    if everything:
        write(x, value)
    elif basic:
        write(x.__class__(x._data[tuple(items) + (Ellipsis,)], x._st), value, False)
    else:
        _write_at(x, items, value)


def _recorded(x: Any, items: list[Any], basic: bool, value: Any) -> None:
    """A write of a value of the graph: recorded, so that gradients flow through the written array."""
    if basic:
        tables.ops.get("_slice_set")(x, value, index=_code(items), out=x)
        return
    put_recorded(x, value, items)


def _write_at(x: Any, items: list[Any], value: Any) -> None:
    """Write to the places of an index with arrays."""
    transfer.check_writable(x, _NAME)
    st, ctx = x._st, x._st.ctx
    wider, pattern, arrays = pattern_of(x.twin(), items)
    for a in arrays:
        check_readable(a)
        a._st.wait()
    if isinstance(value, Array):
        value._st.wait()
        v = (value if value._st.ctx is ctx else value.as_in_context(ctx))._data  # type: ignore[attr-defined]
        v = v if v.dtype == x._data.dtype else v.astype(x._data.dtype)
    elif isinstance(value, np.ndarray):
        v = ctx.device.from_host(np.ascontiguousarray(value, x._data.dtype).reshape(value.shape), ctx.device_id)
    else:
        v = np.asarray(value).astype(x._data.dtype)[()]
    st.wait_free()
    ctx.activate()
    target = x._data.reshape(wider.shape)  # a view: writing through it fills the array
    if ctx.device.async_ and arrays and not isinstance(v, np.generic):
        return put(x.__class__(target, st), x.__class__(v, Storage(ctx)), pattern, arrays)
    where = tuple(
        [
            k
            if k.__class__ is not tuple
            else slice(*k[1:])
            if k[0] == "s"
            else arrays[k[1]]._data.astype(np.int64, copy=False)
            for k in pattern
        ]
    )
    commit((st,))
    try:
        target[where] = v
    except (ValueError, IndexError) as e:
        raise error(type(e), f"{_NAME} on an array of shape {x.shape}: {e}") from None
    commit((st,))
