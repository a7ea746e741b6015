"""NumPy's indexing over the standard's: integers, slices and whole masks; all else takes or puts rows."""

from __future__ import annotations

import math
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["add_at", "add_rows", "get", "linear", "put_rows", "set_"]


class Key(NamedTuple):
    """A key in parts: what the library does, dimensions to reverse after it, and indices along those it gives."""

    basic: tuple[Any, ...]
    flips: tuple[int, ...]
    dims: tuple[int, ...]
    arrays: list[Any]
    together: bool


def _plain(key: tuple[Any, ...]) -> bool:
    for k in key:
        c = k.__class__
        if c is slice:
            if k.step is not None and k.step < 0:
                return False
        elif not (c is int or k is None or k is Ellipsis or isinstance(k, np.integer)):
            return False
    return True


def _native(a: Any, key: tuple[Any, ...]) -> tuple[Any, ...]:
    """As the standard wants it: an entry for every dimension, or an ellipsis, and no slice beyond the end."""
    shape, found, d = a.value.shape, [], 0
    for i, k in enumerate(key):
        if k is Ellipsis:
            d = len(shape) - sum(v is not None for v in key[i + 1 :])
        elif k is not None:
            if k.__class__ is slice:
                if (k.start is not None or k.stop is not None) and d < len(shape):
                    k = slice(*k.indices(shape[d]))
            else:
                k = int(k)
            d += 1
        found.append(k)
    return tuple(found) if Ellipsis in key else (*found, ...)


def _boolean(a: Any, k: Any) -> bool:
    """Whether an entry of a key is an array of booleans."""
    return k.__class__ is a.__class__ and k.dtype.kind == "b"


def _mask(a: Any, key: tuple[Any, ...]) -> bool:
    """Whether a key is one mask of all elements."""
    return len(key) == 1 and _boolean(a, key[0]) and key[0].ndim == a.ndim > 0


def _parse(xp: Any, a: Any, key: tuple[Any, ...]) -> Key:
    entries: list[Any] = []
    for k in key:
        if isinstance(k, np.ndarray):
            raise TypeError(
                "a NumPy array among the indices of an array of a device; make a device array of it with xp.asarray"
            )
        k = xp.asarray(k) if isinstance(k, list) else k
        entries += xp.nonzero(k) if _boolean(a, k) else [k]
    consumed = sum(k is not None and not isinstance(k, EllipsisType) for k in entries)
    at = next((i for i, k in enumerate(entries) if isinstance(k, EllipsisType)), len(entries))
    # An ellipsis keeps indices apart, even for nothing.
    nothing = at if at < len(entries) and a.ndim == consumed else math.inf
    entries[at : at + 1] = [slice(None)] * (a.ndim - consumed)
    indexed = any(isinstance(k, xp.Array) for k in entries)
    basic: list[Any] = []
    flips, dims, arrays, places = [], [], [], []
    source = out = 0
    for i, k in enumerate(entries):
        if k is None:
            basic.append(None)
            out += 1
            continue
        n = a.shape[source]
        source += 1
        if isinstance(k, slice):
            start, stop, step = k.indices(n)
            if step > 0:
                k = slice(start, stop, step)
            else:
                count = len(range(start, stop, step))
                k = slice(start + (count - 1) * step, start + 1, -step) if count else slice(0, 0)
                flips.append(out)
            basic.append(k)
        elif indexed:
            basic.append(slice(None))
            dims.append(out)
            places.append(i + (i >= nothing))
            arrays.append(k)
        else:
            basic.append(int(k))
            continue
        out += 1
    return Key(
        tuple(basic),
        tuple(flips),
        tuple(dims),
        arrays,
        places == [*range(places[0], places[-1] + 1)] if places else True,
    )


def linear(xp: Any, arrays: Any, sizes: Any) -> Any:
    """One index over the product of some dimensions, of an index for each; from the end if negative."""
    flat: Any = 0
    for i, n in zip(arrays, sizes):
        if isinstance(i, xp.Array):
            i = i if i.dtype == np.int64 else xp.cast(i, np.int64)
            i = xp.where(i < 0, i + n, i)
        else:
            i = int(i) + n * (i < 0)
        flat = flat * n + i
    return flat


class Rows:
    """The rows of an array that a key with arrays is about."""

    def __init__(self, xp: Any, a: Any, key: Key) -> None:
        self.xp, self.a, self.key = xp, a, key
        self.sub = xp.flip(a.__class__(a.value[key.basic]), key.flips) if key.flips else a.__class__(a.value[key.basic])
        shape, dims = self.sub.shape, key.dims
        self.order = (*dims, *[d for d in range(len(shape)) if d not in dims])
        self.sizes, self.rest = tuple(shape[d] for d in dims), tuple(shape[d] for d in self.order[len(dims) :])
        self.flat = linear(xp, key.arrays, self.sizes)
        k, n = self.flat.ndim, len(self.rest)
        # Where the dimensions of the index stand in the result: in place of those indexed if these are together, else
        # first.
        at = dims[0] if key.together else 0
        self.back = (*range(k, k + at), *range(k), *range(k + at, k + n))

    def rows(self) -> Any:
        """What is indexed, in one dimension before the rest."""
        return self.xp.reshape(self.xp.transpose(self.sub, self.order), (math.prod(self.sizes), *self.rest))

    def get(self) -> Any:
        """The indexed values."""
        xp, flat = self.xp, self.flat
        if len(self.sizes) == 1:  # along one dimension, where it is
            d = self.key.dims[0]
            r = xp.take_raw(self.sub, xp.ravel(flat), d)
            return r if flat.ndim == 1 else xp.reshape(r, (*self.sub.shape[:d], *flat.shape, *self.sub.shape[d + 1 :]))
        r = xp.reshape(xp.take_raw(self.rows(), xp.ravel(flat), 0), (*flat.shape, *self.rest))
        return xp.transpose(r, self.back)

    def put(self, value: Any, how: str) -> None:
        """Write values to what is indexed, or add them."""
        xp, a = self.xp, self.a
        shape = tuple((*self.flat.shape, *self.rest)[i] for i in self.back)
        value = xp.broadcast_to(xp.asarray(value, a.dtype), shape)
        value = xp.reshape(xp.transpose(value, np.argsort(self.back).tolist()), (self.flat.size, *self.rest))
        rows = a.__class__(xp.standard(how)(self.rows().value, xp.ravel(self.flat).value, value.value))
        new = xp.transpose(xp.reshape(rows, (*self.sizes, *self.rest)), np.argsort(self.order).tolist())
        _write(xp, a, self.key, new)


def _write(xp: Any, a: Any, key: Key, new: Any) -> None:
    """Write what has the shape of the key's basic part; new dimensions, which the standard reads only, are left out."""
    new = xp.flip(new, key.flips) if key.flips else new
    basic = (*[k for k in key.basic if k is not None], ...)
    a.value[basic] = xp.reshape(new, a.value[basic].shape).value


def get(xp: Any, a: Any, key: Any) -> Any:
    """``a[key]``."""
    given = key
    key = key if key.__class__ is tuple else (key,)
    if _plain(key):
        return a.__class__(a.value[_native(a, key)], (a, given))
    if _mask(a, key):
        return a.__class__(a.value[key[0].value])
    k = _parse(xp, a, key)
    if k.arrays:
        return Rows(xp, a, k).get()
    return xp.flip(a.__class__(a.value[k.basic]), k.flips)


def set_(xp: Any, a: Any, key: Any, value: Any) -> None:
    """``a[key] = value``."""
    if value.__class__ is a.__class__ and value.origin is not None and value.origin[0] is a and value.origin[1] is key:
        return  # the end of ``a[key] += b``, which wrote through this view
    key = key if key.__class__ is tuple else (key,)
    plain = _plain(key) and None not in key
    if plain or _mask(a, key):
        if value.__class__ is a.__class__:
            value = value.value if value.value.dtype == a.value.dtype else xp.cast(value, a.dtype).value
        else:
            value = xp.asarray(value, a.dtype).value if isinstance(value, (list, tuple)) else xp.plain(value, a.dtype)
        a.value[_native(a, key) if plain else key[0].value] = value
        return
    k = _parse(xp, a, key)
    if k.arrays:
        Rows(xp, a, k).put(value, "put_rows")
        return
    _write(xp, a, k, xp.broadcast_to(xp.asarray(value, a.dtype), a.value[k.basic].shape))


def add_at(xp: Any, a: Any, indices: Any, b: Any) -> None:
    """``np.add.at``."""
    key = _parse(xp, a, indices if isinstance(indices, tuple) else (indices,))
    if key.arrays:
        Rows(xp, a, key).put(b, "add_rows")
    else:
        a[indices] += b


# ---- of arrays of the library: rows put or added out of place, of what the standard has -------------------------
def _last(xp: Any, a: Any, index: Any) -> tuple[Any, Any, Any]:
    """Of sorted indices: their order, where the last of each row of `a` stands among them, and whether there is one."""
    s, Array = xp.standard, xp.Array
    order = s("argsort")(index, stable=True)
    of = Array(s("take")(index, order, axis=0))
    rows = xp.arange(a.shape[0])
    at = xp.searchsorted(of, rows, "right") - 1
    there = (at >= 0) & (xp.take(of, xp.maximum(at, 0)) == rows) if index.shape[0] else rows < 0
    return order, xp.maximum(at, 0), xp.reshape(there, (-1, *[1] * (len(a.shape) - 1)))


def put_rows(xp: Any, a: Any, index: Any, values: Any) -> Any:
    """A copy of `a` whose rows at `index` are `values`; the last one counts."""
    if not index.shape[0]:
        return a
    s = xp.standard
    order, at, there = _last(xp, a, index)
    return s("where")(there.value, s("take")(values, s("take")(order, at.value, axis=0), axis=0), a)


def add_rows(xp: Any, a: Any, index: Any, values: Any) -> Any:
    """A copy of `a` with `values` added to its rows at `index`.

    Stretches of equal indices are summed first, in as many steps as the longest has binary digits.
    """
    n = index.shape[0]
    if not n:
        return a
    s = xp.standard
    order, at, there = _last(xp, a, index)
    index, values, step = s("take")(index, order, axis=0), s("take")(values, order, axis=0), 1
    zero = xp.number(0, a.dtype)
    while step < n:
        same = s("reshape")(index[step:] == index[:-step], (-1, *[1] * (len(a.shape) - 1)))
        values = s("concat")(
            [values[:step, ...], values[step:, ...] + s("where")(same, values[:-step, ...], zero)], axis=0
        )
        step *= 2
    return a + s("where")(there.value, s("take")(values, at.value, axis=0), zero)
