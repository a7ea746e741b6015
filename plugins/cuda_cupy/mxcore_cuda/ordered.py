"""The array namespace of a GPU: CuPy's, but for sums in an order that is another at each run, and NaN and infinity.

``add.at`` is atomic there, and a running sum over all elements is CUB's, whose blocks look back as far as others have
got. Of several NaNs its ``argmax`` finds any, and its divisions of floats that round down are Python's for finite
numbers only.
"""

from __future__ import annotations

import math
from functools import partialmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from .dtypes import FLOATS, name_of
from .places import INDICES, Places

if TYPE_CHECKING:
    from .device import GPU

__all__ = ["Namespace"]


class Namespace:
    """CuPy's functions, with sums that are the same at every run, and with NumPy's results of NaN and infinity.

    Parameters
    ----------
    device : GPU
    """

    def __init__(self, device: GPU) -> None:
        self._given = device.driver.xp
        self.add = Add(device, self._given)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._given, name)
        setattr(self, name, found)
        return found

    def cumsum(self, a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
        """Running sums; along an axis CuPy's own kernel makes them, which adds up in one order."""
        if axis is None:
            a, axis = a.reshape(-1), 0
        return self._given.cumsum(a, axis, dtype, out)

    def _place(
        self, name: str, a: Any, axis: int | None = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        """The first place of the largest or smallest, or of the NaNs."""
        xp = self._given
        found = getattr(xp, name)(a, axis, dtype, out, keepdims)
        if a.dtype.kind != "f":
            return found
        nan = xp.isnan(a)
        return xp.where(nan.any(axis, keepdims=keepdims), xp.argmax(nan, axis, keepdims=keepdims), found)

    argmax, argmin = partialmethod(_place, "argmax"), partialmethod(_place, "argmin")

    def mod(self, a: Any, b: Any) -> Any:
        """The remainder with the sign of `b`, by that of C, which is exact."""
        xp = self._given
        if np.result_type(a, b).kind != "f":
            return xp.mod(a, b)
        rest = xp.fmod(a, b)
        return xp.where(
            rest == 0, xp.where(b < 0, -abs(rest), abs(rest)), xp.where((rest < 0) != (b < 0), rest + b, rest)
        )

    def floor_divide(self, a: Any, b: Any) -> Any:
        """The quotient rounded down; by 0 what a division gives."""
        xp, dtype = self._given, np.result_type(a, b)
        if dtype.kind != "f":
            return xp.floor_divide(a, b)
        if dtype.itemsize < 4:
            a, b = (x.astype(np.float32) if hasattr(x, "dtype") else x for x in (a, b))
        rest, whole = xp.fmod(a, b), a / b
        quotient = (a - rest) / b - ((rest != 0) & ((rest < 0) != (b < 0)))
        near = xp.floor(quotient)
        near = xp.where(quotient == 0, whole * 0, near + (quotient - near > 0.5))
        return xp.where(xp.equal(b, 0), whole, near).astype(dtype)


class Add:
    """``add``, and ``add.at`` in the order of the indices."""

    def __init__(self, device: GPU, given: Any) -> None:
        self._device, self._xp, self._fn = device, given, given.add

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fn(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fn, name)

    def at(self, a: Any, indices: Any, b: Any) -> None:
        """Add ``b[i]`` to ``a[indices[i]]``, in place; an index that comes often adds often."""
        if name_of(a.dtype) not in FLOATS or a.size >= 2**31:
            self._fn.at(a, indices, b)  # whole numbers add up alike in every order; kernels count in 32 bits
            return
        n, tail = a.size, 1
        if name_of(getattr(indices, "dtype", None)) in INDICES:  # of rows
            where, (n, *rest) = indices, a.shape
            tail = math.prod(rest)
        else:
            where, rest = self._xp.arange(n, dtype=np.int32).reshape(a.shape)[indices], []
        rows = self._xp.broadcast_to(self._xp.asarray(b, a.dtype), (*where.shape, *rest))
        if not rows.size:
            return
        if rows.size >= 2**31:
            self._fn.at(a, indices, b)
            return
        index = self._device.driver.index_of(a)
        places = Places(self._device, index, where.size)
        places.along(self._xp.ascontiguousarray(where), n, True)
        sums = self._device.empty(a.shape, a.dtype, index)
        places.add_rows(self._xp.ascontiguousarray(rows), sums, 1, n, tail)
        a += sums
