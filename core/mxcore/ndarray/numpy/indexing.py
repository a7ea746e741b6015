"""Reading and writing parts of arrays of ``mx.np``: NumPy's indexing, with MXNet's views.

A basic index (ints, slices, None, Ellipsis) that selects one run of memory gives a view, any other a copy. An index
with arrays, lists or truth values always copies. Outside of NumPy's meaning of shapes one element has the shape (1,).
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..._core import dispatch, tables, transfer
from ..._core.array import Array
from ..._core.errors import MXNetError, error
from ..._core.state import state
from ..._locks import writing
from ..._op_functions import mixed_faces
from ..indexing import (
    code,
    guard_item,
    is_itself,
    items_of,
    of_graph,
    one_run,
    pattern_of,
    put_recorded,
    refuse_view,
    slice_of,
    spared,
    write,
    write_at,
)

__all__ = ["get_item", "set_item"]

_ALL = slice(None)
#: What errors of writes call them.
_NAME = "x[key] = value"
_BASIC = frozenset({int, type(None), type(Ellipsis)})


def _plain(k: Any) -> Any:
    """One item of an index as an int, a slice, None, Ellipsis or an array of ints or truth values."""
    if k.__class__ in _BASIC:
        return k
    if k.__class__ is slice:
        return _slice(k)
    if isinstance(k, (bool, np.bool_)):
        return np.asarray(k)
    if isinstance(k, numbers.Integral):
        return int(k)
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


def _slice(k: slice) -> slice:
    try:
        parts = [None if v is None else int(v.__index__()) for v in (k.start, k.stop, k.step)]
    except (AttributeError, TypeError):
        raise error(TypeError, f"slice indices must be whole numbers or None, got {k!r}") from None
    return slice_of(*parts)


def get_item(x: Any, key: Any) -> Any:
    """``x[key]``."""
    shape = x._data.shape
    if is_itself(key, shape):
        return x
    items, basic = items_of(key, shape, _plain)
    if not basic:
        x, pattern, arrays = pattern_of(x, items)
        return tables.ops.get("_advanced_index")(x, *arrays, index=pattern, num_args=len(arrays))
    if shape and not state.np_shape and all(k.__class__ is int for k in items):
        items[-1] = slice(items[-1], items[-1] + 1)  # one element has shape (1,)
    run = one_run(items, shape)
    if run and not (state.record and x._entry is not None):
        return x.__class__(x._data[tuple(items) + (Ellipsis,)], x._st)
    return dispatch.call(tables.ops.get("_basic_index"), (x,), {"index": code(items)}, share=run)


def set_item(x: Any, key: Any, value: Any) -> None:
    """``x[key] = value``, which waits for a thread that is about to write what it has read, as in ``x += 1``."""
    if isinstance(value, Array) and x.rules is not value.rules:
        raise mixed_faces(_NAME, x, value)
    if not isinstance(value, (Array, numbers.Real, np.ndarray, np.bool_)):
        value = _values(x, value)
    writing(x, spared, x, _set_item, key, value)


def _values(x: Any, value: Any) -> Any:
    """What NumPy makes of a value that is no array and no number, in the dtype of `x`."""
    try:
        return np.asarray(value, dtype=x._data.dtype)
    except (TypeError, ValueError) as e:
        raise error(
            type(e) if type(e) in (ValueError, TypeError) else ValueError,
            f"cannot write a {type(value).__name__} into an array of shape {x.shape}, {x._data.dtype}: {e}",
        ) from None


def _set_item(x: Any, key: Any, value: Any) -> bool:
    shape = x._data.shape
    everything = key is Ellipsis or key.__class__ is slice and key == _ALL and bool(shape)
    items, basic = ([_ALL] * len(shape), True) if everything else items_of(key, shape, _plain)
    if everything and value is x:  # as in ``x[:] += 1``
        return False
    looked = bool(state.record) and guard_item(x, value, items, basic)
    if state.record and of_graph(value):
        refuse_view(x, value, items, basic)
        _recorded(x, items, basic, value)
    elif everything:
        write(x, value)
    elif basic:
        write(x.__class__(x._data[tuple(items) + (Ellipsis,)], x._st), value, False)
    else:
        if not isinstance(value, (Array, np.ndarray)):
            value = np.asarray(value).astype(x._data.dtype)[()]
        write_at(x, items, value)
    return looked


def _recorded(x: Any, items: list[Any], basic: bool, value: Any) -> None:
    """A write of a value of the graph: recorded, so that gradients flow through the written array."""
    if basic:
        # Nothing of a view is left that is written to as a whole: the others were refused.
        tables.ops.get("_slice_set")(x.twin() if transfer.is_view(x) else x, value, index=code(items), out=x)
        return
    put_recorded(x, value, items)
