"""Reading and writing parts of arrays with MXNet's view rules.

A basic index (ints, slices, None, Ellipsis) that selects one run of memory gives a view; any other gives a copy. An
advanced index (arrays, lists) always copies. Writing never replaces memory.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .._core import dispatch, tables, transfer
from .._core.array import Array, Storage
from .._core.errors import error
from .._core.state import state
from .._core.stream import commit, ordered
from .._core.tape import Leaf
from .._locks import writing
from .._noting import check_readable, noted
from ..crossing import to_context
from ..elementwise import true_bools, wrapped
from .operators import flows

__all__ = [
    "code",
    "get_item",
    "guard_item",
    "is_all",
    "is_itself",
    "is_mask",
    "items_of",
    "of_graph",
    "one_run",
    "pattern_of",
    "put",
    "put_recorded",
    "refuse_view",
    "row_range",
    "set_item",
    "slice_of",
    "slices",
    "spared",
    "write",
    "write_at",
]

_BASIC = frozenset({int, type(None), type(Ellipsis)})
_ALL: Any = slice(None)
#: What errors of writes call them.
_NAME = "x[key] = value"


def slices(begin: Any, end: Any, step: Any = None) -> tuple[slice, ...]:
    """The slices that MXNet's begin, end, step tuples stand for."""
    begin, end = _tuple(begin), _tuple(end)
    step = _tuple(step) if step not in (None, ()) else (None,) * len(begin)
    return tuple(slice(b, e, s) for b, e, s in zip(begin, end, step))


def _tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _is_int(k: Any) -> bool:
    return isinstance(k, numbers.Integral) and not isinstance(k, (bool, np.bool_))


def _plain(k: Any) -> Any:
    """One item of an index as an int, a slice of ints, None, Ellipsis or an array of ints or truth values."""
    if isinstance(k, slice):
        return slice_of(*[None if v is None else int(v) for v in (k.start, k.stop, k.step)])
    if k.__class__ in _BASIC or isinstance(k, Array):
        return k
    if _is_int(k):
        return int(k)
    host = np.asarray(k)
    if host.dtype.kind not in "biu":
        if not host.ndim or (host.size and host.dtype.kind != "f"):
            raise error(IndexError, f"an index must be ints, slices or arrays of ints, got {type(k).__name__}")
        host = host.astype(np.int64)
    return host


def slice_of(start: int | None, stop: int | None, step: int | None) -> slice:
    """A slice of an index, whose step is none of 0."""
    if step == 0:
        raise error(ValueError, "slice step cannot be zero")
    return slice(start, stop, step)


def is_mask(k: Any) -> bool:
    """Whether an item of an index is an array of truth values."""
    if isinstance(k, Array):
        k = k._data
    elif not isinstance(k, np.ndarray):
        return False
    return bool(k.dtype.kind == "b")


def items_of(key: Any, shape: tuple[int, ...], plain: Callable[[Any], Any]) -> tuple[list[Any], bool]:
    """An index with an item for each dimension or mask, None for new axes beside, and whether it is basic.

    Parameters
    ----------
    key : object
    shape : tuple of int
        Of the array.
    plain : callable
        Makes an item an int, a slice of ints, None, Ellipsis, or an array of ints or truth values.

    Examples
    --------
    >>> items_of((..., -1), (2, 3), lambda k: k)
    ([slice(None, None, None), 2], True)
    """
    items = [*map(plain, key)] if isinstance(key, tuple) else [plain(key)]
    used, dots, basic = 0, -1, True
    for i, k in enumerate(items):
        if k is None:
            continue
        if k is Ellipsis:
            if dots >= 0:
                raise error(IndexError, "an index can have one Ellipsis ('...') only")
            dots = i
        elif k.__class__ is int or k.__class__ is slice:
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
    """Refuse ints out of range and masks of another shape, and count from the first place."""
    axis = 0
    for i, k in enumerate(items):
        if k is None or k is Ellipsis:
            continue
        if k.__class__ is int:
            n = shape[axis]
            if not -n <= k < n:
                raise error(
                    IndexError, f"index {k} is out of bounds for axis {axis} with size {n} (array of shape {shape})"
                )
            if k < 0:
                items[i] = k + n
        elif k.__class__ is not slice and is_mask(k):
            part = shape[axis : axis + len(k.shape)]
            if tuple(k.shape) != part:
                raise error(
                    IndexError,
                    f"a mask of shape {tuple(k.shape)} selects from dimensions of shape {part}, which must "
                    f"be equal (array of shape {shape})",
                )
            axis += len(part)
            continue
        axis += 1


def one_run(items: Iterable[Any], shape: tuple[int, ...]) -> bool:
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


def code(items: Iterable[Any]) -> tuple[Any, ...]:
    """A hashable form of a basic index, for operator parameters."""
    return tuple([("s", k.start, k.stop, k.step) if k.__class__ is slice else k for k in items])


def is_all(key: Any) -> bool:
    """Whether an index selects everything: ``[:]`` or ``[...]``."""
    return key is Ellipsis or isinstance(key, slice) and key == slice(None)


def is_itself(key: Any, shape: tuple[int, ...]) -> bool:
    """Whether ``x[key]`` is `x`, with its place in the graph, as in MXNet: by a bare slice of all, or no index."""
    if key.__class__ is slice:
        return bool(shape) and key.start is None and key.stop is None and (key.step is None or key.step == 1)
    return key.__class__ is tuple and not key


def row_range(key: Any, n: int, what: str) -> range:
    """The rows of a csr matrix of `n` rows that an index selects."""
    if _is_int(key):
        first = int(key) + n if key < 0 else int(key)
        if not 0 <= first < n:
            raise error(IndexError, f"index {key} is out of bounds for the {n} rows of a {what}")
        return range(first, first + 1)
    if isinstance(key, slice) and key.step in (None, 1):
        first, last, _ = key.indices(n)
        return range(first, max(first, last))
    raise error(IndexError, f"a csr array is read by rows, x[1] or x[1:3], not by {key!r}; use tostype('default')[...]")


def get_item(x: Any, key: Any) -> Any:
    """``x[key]``."""
    shape = x._data.shape
    if key.__class__ is int and shape:
        items, basic = [key] + [_ALL] * (len(shape) - 1), True
        if not -shape[0] <= key < shape[0]:
            raise error(
                IndexError, f"index {key} is out of bounds for axis 0 with size {shape[0]} (array of shape {shape})"
            )
        run = True
    else:
        if is_itself(key, shape):
            return x
        items, basic = items_of(key, shape, _plain)
        run = basic and one_run(items, shape)
    if not basic:
        return _advanced(x, items)
    if shape and not state.np_shape and all(k.__class__ is int for k in items):
        # Legacy arrays have no scalars: one element has shape (1,).
        items[-1] = slice(items[-1], items[-1] + 1 or None)
    if run and not (state.record and x._entry is not None):
        return x.__class__(x._data[tuple(items) if len(items) != 1 else items[0]], x._st)
    return dispatch.call(tables.ops.get("_basic_index"), (x,), {"index": code(items)}, share=run)


def _advanced(x: Any, items: list[Any]) -> Any:
    x, pattern, arrays = pattern_of(x, items)
    return tables.ops.get("_advanced_index")(x, *arrays, index=pattern, num_args=len(arrays))


def pattern_of(x: Any, items: Sequence[Any]) -> tuple[Any, tuple[Any, ...], list[Any]]:
    """What operators of advanced indices take: the array, the pattern of the index, and its arrays beside `x`.

    A truth value without dimensions is an index into a new axis of length 1: it is there or not.
    """
    pattern: list[Any] = []
    arrays: list[Any] = []
    axis, added = 0, list[int]()
    for k in items:
        if k is None or k is Ellipsis:
            pattern.append(k)
        elif k.__class__ is int or k.__class__ is slice:
            pattern += code((k,))
            axis += 1
        else:
            mask = is_mask(k)
            if not mask:
                places: Any = (k,)
            elif k.shape:
                places = _true(x, k)
            else:
                added.append(axis + len(added))
                places = (np.zeros(int(bool(_host(k))), np.int64),)
            for a in places:
                pattern.append(("a", len(arrays)))
                arrays.append(_beside(x, a))
            axis += len(k.shape) if mask else 1
    for at in added:
        x = tables.ops.get("expand_dims")(x, axis=at)
    return x, tuple(pattern), arrays


def _host(k: Any) -> Any:
    return k.asnumpy() if isinstance(k, Array) else k


def _true(x: Any, mask: Any) -> Any:
    """Where a mask is true, one array for each of its dimensions, on the device of `x`."""
    if not isinstance(mask, Array):
        return np.nonzero(mask)
    ctx = x._st.ctx
    if mask._st.ctx is not ctx:
        mask = mask.as_in_context(ctx)  # type: ignore[attr-defined]
    if noted(mask):
        rows = tables.ops.get("_npx_nonzero")(mask.as_np_ndarray())
        return [rows[:, i] for i in range(len(mask.shape))]
    mask._st.wait()
    ctx.activate()
    return [x.dense(part, Storage(ctx)) for part in ctx.device.xp.nonzero(mask._data)]


def _beside(x: Any, a: Any) -> Any:
    """An index array on the context of `x`, as an array of its face, and outside of any graph but one being noted."""
    ctx = x._st.ctx
    if not isinstance(a, Array):
        return x.dense(ctx.device.from_host(np.ascontiguousarray(a).reshape(a.shape), ctx.device_id), Storage(ctx))
    if a._st.ctx is not ctx:
        a = a.as_in_context(ctx)  # type: ignore[attr-defined]
    if a._entry is None and a.__class__ is x.dense:
        return a
    return a.of(x.dense) if noted(a) else x.dense(a._data, a._st)


def set_item(x: Any, key: Any, value: Any) -> None:
    """``x[key] = value``, which waits for a thread that is about to write what it has read, as in ``x += 1``."""
    writing(x, spared, x, _set_item, key, value)


def spared(x: Any, store: Callable[..., bool], *args: Any) -> None:
    """Write to an array; where that tells that no part was met which gradients will read, they are not told of it.

    Parameters
    ----------
    x : NDArray
    store : callable
        Writes, and returns whether it has looked for these.
    *args
        What it gets behind `x`.
    """
    st, before = x._st, x._st.version
    looked = store(x, *args)
    for reader in [*getattr(st, "readers", ())] if looked else ():
        node = reader()
        if node is not None and node.flows and (saved := node.saved) is not None and saved[2]:
            ins, outs, versions = saved
            node.saved = ins, outs, [st.version if v == before and y._st is st else v for y, v in zip(ins, versions)]


def _set_item(x: Any, key: Any, value: Any) -> bool:
    shape = x._data.shape
    everything = key is Ellipsis or key.__class__ is slice and key == _ALL
    items, basic = ([_ALL] * len(shape), True) if everything else items_of(key, shape, _plain)
    if everything and value is x:  # as in ``x[:] += 1``
        return False
    st, looked = x._st, bool(state.record) and guard_item(x, value, items, basic)
    if state.record and of_graph(value):
        refuse_view(x, value, items, basic)
        _recorded(x, items, basic, value)
    elif everything:
        write(x, value)
    elif basic:
        # An element is a view of length 1.
        if items and all(k.__class__ is int for k in items):
            items[-1] = slice(items[-1], items[-1] + 1)
        write(x.__class__(x._data[tuple(items)], st), value, False)
    else:
        if not isinstance(value, (Array, numbers.Number)):
            value = np.asarray(value, dtype=x._data.dtype)
        write_at(x, items, value)
    return looked


def of_graph(value: Any) -> bool:
    """Whether a value that is written is an array with a place on the tape."""
    return isinstance(value, Array) and value._entry is not None


def guard_item(x: Any, value: Any, items: list[Any], basic: bool) -> bool:
    """Refuse what must not be written while recording, as MXNet does; tells whether gradients read none of it for sure.

    A variable takes values of the host as a whole: what is computed of it from then on is of these. Of a constant that
    part may be written which no gradient will read.
    """
    node = x._entry and x._entry[0]
    if state.record is not True:  # but notes calls as a graph
        if node is not None or of_graph(value):
            transfer.guard_write(x, _NAME)
    elif node is not None or of_graph(value) or hasattr(x._st, "readers"):
        whole = basic and _covers(items, x._data.shape)
        if whole and not isinstance(value, (Array, numbers.Number)) and (node is None or isinstance(node, Leaf)):
            return False
        partly = not whole and (node is None or not node.flows) and transfer.kept(x)
        for part in _boxes(items, x._data.shape) if partly else [()]:
            transfer.guard_write(x.__class__(x._data[part + (Ellipsis,)], x._st) if part else x, _NAME)
        return True
    return False


#: An advanced index is looked at place by place up to so many; of more it is what lies between the first and the last.
_PLACES = 64


def _boxes(items: list[Any], shape: tuple[int, ...]) -> Iterator[tuple[int | slice, ...]]:
    """Basic indices without steps that name together what an index does, or more of it."""
    wanted: list[Any] = []
    for k in items:
        if k is None or k is Ellipsis or (is_mask(k) and not k.shape):
            continue  # none of the array's axes
        if k.__class__ is int or k.__class__ is slice:
            wanted.append(k)
        else:
            host = _host(k)
            wanted += host.nonzero() if host.dtype.kind == "b" else [host.astype(np.int64)]
    at = [i for i, k in enumerate(wanted) if isinstance(k, np.ndarray)]
    if not at:
        at = [i for i, k in enumerate(wanted) if k.__class__ is slice and k.step not in (None, 1)]
        for i, k in zip(at, np.ix_(*[np.arange(shape[i])[wanted[i]] for i in at])):
            wanted[i] = k
    arrays = [wanted[i] for i in at]
    places = np.broadcast_arrays(*[np.where(k < 0, k + shape[i], k).clip(0, shape[i] - 1) for i, k in zip(at, arrays)])
    if places and places[0].size > _PLACES:
        lines: Iterable[Any] = [[slice(int(p.min()), int(p.max()) + 1) for p in places]]
    else:
        lines = zip(*[p.ravel().tolist() for p in places]) if at else [()]
    for line in lines:
        for i, k in zip(at, line):
            wanted[i] = k
        yield tuple(wanted)


def _covers(items: list[Any], shape: tuple[int, ...]) -> bool:
    """Whether a basic index names every place, in order: by slices of all, however spelled, or the only one."""
    return len(items) == len(shape) and all(
        k == 0 == n - 1 if k.__class__ is int else k is not None and range(n)[k] == range(n)
        for k, n in zip(items, shape)
    )


def refuse_view(x: Any, value: Any, items: list[Any], basic: bool) -> None:
    """Refuse to write a value of the graph to a part of a view, as MXNet does; to all of it one may be written."""
    if (
        state.record is True
        and transfer.is_view(x)
        and flows(value)
        and not (basic and x._data[tuple(items) + (Ellipsis,)].size == x._data.size)
    ):
        raise error(
            RuntimeError,
            f"{_NAME}: a value of the graph is not written to a part of a view of another array while recording: "
            "gradients would not flow through that; index the array itself (x[0, 1] = y for x[0][1] = y)",
        )


def write_at(x: Any, items: Sequence[Any], value: Any) -> None:
    """Write an array of any context, a NumPy array or a number of NumPy or Python to the places of an index."""
    transfer.check_writable(x, _NAME)
    st, ctx, dtype = x._st, x._st.ctx, x._data.dtype
    wider, pattern, arrays = pattern_of(x.twin(), items)
    for a in arrays:
        check_readable(a)
        a._st.wait()
    if isinstance(value, Array):
        value._st.wait()
        v = (value if value._st.ctx is ctx else value.as_in_context(ctx))._data  # type: ignore[attr-defined]
        v = v if v.dtype == dtype else v.astype(dtype)
    elif isinstance(value, np.ndarray):
        v = ctx.device.from_host(np.ascontiguousarray(true_bools(value), dtype).reshape(value.shape), ctx.device_id)
    else:
        v = value
    st.wait_free()
    ctx.activate()  # the value may have been elsewhere
    target = x._data.reshape(wider.shape)  # a view: writing through it fills the array
    if ctx.device.async_ and v is not value:
        return put(x.__class__(target, st), x.__class__(v, Storage(ctx)), pattern, arrays)
    where = tuple(
        [
            k if k.__class__ is not tuple else slice(*k[1:]) if k[0] == "s" else _as_index(arrays[k[1]]._data)
            for k in pattern
        ]
    )
    commit((st,))
    try:
        target[where] = v
    except (ValueError, IndexError) as e:
        raise error(type(e), f"{_NAME} on an array of shape {x.shape}: {e}") from None
    commit((st,))


def _as_index(a: Any) -> Any:
    return a if a.dtype.kind in "iu" else a.astype(np.int64)


def _write_sparse(x: Any, value: Any) -> None:
    """Replace what a sparse array holds, in its own dtype and storage type."""
    ctx, dtype = x._st.ctx, x._data.dtype
    if isinstance(value, numbers.Number):
        if not value:
            value = tables.ops.get("zeros_like")(x)
        elif x.stype == "csr":
            raise error(
                ValueError, "a csr array cannot be filled with a number other than 0; it would have no zeros left"
            )
        else:
            value = x.dense(ctx.device.full(x.shape, value, dtype, ctx.device_id), Storage(ctx))
    elif not isinstance(value, Array):
        value = x.dense(ctx.device.from_host(np.asarray(value, dtype), ctx.device_id), Storage(ctx))
    if value.shape != x.shape:
        raise error(
            ValueError, f"cannot write an array of shape {value.shape} into a {x.stype} array of shape {x.shape}"
        )
    if value._st.ctx is not ctx:
        value = to_context(value, ctx)
    if value.stype != x.stype:
        value = tables.ops.get("cast_storage")(value.detach(), stype=x.stype)
    transfer.assign(x, value if value._data.dtype == dtype else value.astype(dtype))


def _recorded(x: Any, items: list[Any], basic: bool, value: Any) -> None:
    """A write of a value of the graph: recorded, so that gradients flow through the written array."""
    if basic:
        # Nothing of a view is left that is written to as a whole: the others were refused.
        tables.ops.get("_slice_set")(x.twin() if transfer.is_view(x) else x, value, index=code(items), out=x)
    else:
        put_recorded(x, value, items)


def put_recorded(x: Any, value: Any, items: Any) -> None:
    """A write of a value of the graph to the places of an index with arrays."""
    wider, pattern, arrays = pattern_of(x, items)
    if wider is x:
        put(x, value, pattern, arrays)
        return
    written = tables.ops.get("_advanced_set")(wider, value, *arrays, index=pattern, num_args=len(arrays))
    whole = tuple([("s", None, None, None)] * len(x.shape))
    tables.ops.get("_slice_set")(x, tables.ops.get("reshape_like")(written, x), index=whole, out=x)


def put(x: Any, value: Any, pattern: tuple[Any, ...], arrays: list[Any]) -> None:
    """Write an array to the places of an index with arrays, by the operator: of several values for one place the last.

    Array functions of devices with queues do not say which of them there is in the end.
    """
    tables.ops.get("_advanced_set")(x, value, *arrays, index=pattern, num_args=len(arrays), out=x)


def write(x: Any, value: Any, whole: bool = True) -> None:
    """Write a number, an array of any context, or anything NumPy understands into an array, broadcasting.

    What could not be computed is forgotten where it is written anew as a `whole`; a part of it does not mend the rest.
    """
    if x.stype != "default":
        return _write_sparse(x, value)
    transfer.check_writable(x, "writing to an array")
    st = x._st
    ctx = st.ctx
    dst = x._data
    before = () if whole else (st,)
    if isinstance(value, numbers.Number):
        if dst.dtype.kind in "iu":
            value = wrapped(value, dst.dtype)  # type: ignore[arg-type]
        ordered(ctx, dst.__setitem__, (..., value), before, (st,), _NAME)
        return
    if not isinstance(value, Array):
        try:
            host = true_bools(np.asarray(value))
            if host.dtype.kind not in "biufV" and host.dtype.name != "bfloat16":
                raise TypeError(f"values of type {host.dtype}")
            host = np.ascontiguousarray(
                np.broadcast_to(host.reshape(_squeeze(host.shape, dst.shape)), dst.shape), dtype=dst.dtype
            )
        except (ValueError, TypeError) as e:
            raise error(
                type(e) if type(e) in (ValueError, TypeError) else ValueError,
                f"cannot write a {type(value).__name__} into an array of shape {tuple(dst.shape)}: {e}",
            ) from None
        src = ctx.device.from_host(host, ctx.device_id)
        ordered(ctx, ctx.device.copy, (src, dst), before, (st,), _NAME)
        return
    if value._st.ctx is not ctx:
        value = to_context(value, ctx)
    if value.stype != "default":
        value = value.tostype("default")
    src = value._data
    if src.shape != dst.shape:
        ctx.activate()
        try:
            src = ctx.device.xp.broadcast_to(src.reshape(_squeeze(src.shape, dst.shape)), dst.shape)
        except ValueError:
            raise error(
                ValueError, f"cannot write an array of shape {value.shape} into one of shape {tuple(dst.shape)}"
            ) from None
    ordered(ctx, ctx.device.copy, (src, dst), (value._st, *before), (st,), _NAME)


def _squeeze(src: tuple[int, ...], dst: tuple[int, ...]) -> tuple[int, ...]:
    """Drop leading ones that the target lacks, so that (1, 3) can be written into (3,)."""
    while len(src) > len(dst) and src and src[0] == 1:
        src = src[1:]
    return src
