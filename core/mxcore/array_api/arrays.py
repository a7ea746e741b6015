"""The arrays of an :class:`ArrayAPINamespace`: a library's array under NumPy's methods."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .contract import METHODS

__all__ = ["Array", "array_class"]

#: How one element becomes a number of Python.
_NUMBERS: dict[str, Any] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "mod",
    "pow": "power",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "matmul": "matmul",
}
_COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_SIGNS = {"neg": "negative", "abs": "abs", "invert": "invert"}
#: Methods that are functions of the same name.
_SAME = sorted(METHODS - {"astype", "conj", "copy", "fill", "flatten", "item", "reshape", "round", "transpose", "view"})


class Array:
    """An array of a library (`value`), with what the contract lists of NumPy's methods.

    Each namespace has a subclass of its own; `xp` is the namespace. `origin` is the array and the key of a view, if
    indexing made it.
    """

    __slots__ = ("value", "origin", "__weakref__")
    __array_ufunc__ = None
    __hash__ = object.__hash__
    xp: Any

    def __init__(self, value: Any, origin: Any = None) -> None:
        self.value, self.origin = value, origin

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""
        return tuple(self.value.shape)

    @property
    def dtype(self) -> Any:
        """NumPy's dtype."""
        return self.xp.dtype_of[self.value.dtype]

    @property
    def ndim(self) -> int:
        """How many dimensions."""
        return len(self.value.shape)

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.value.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def T(self) -> Any:
        """With its dimensions in reverse."""
        return self.xp.transpose(self)

    def __getitem__(self, key: Any) -> Any:
        return self.xp.get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.xp.set(self, key, value)

    def reshape(self, *shape: Any) -> Any:
        """In another shape, given as a tuple or as numbers."""
        return self.xp.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Any:
        """With its dimensions in another order, in reverse unless told."""
        return self.xp.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """In another dtype."""
        return self.xp.cast(self, dtype) if np.dtype(dtype) != self.dtype else self.copy() if copy else self

    def copy(self) -> Any:
        """A contiguous array of the same values."""
        return self.xp.copy(self)

    def flatten(self) -> Any:
        """A copy of one dimension."""
        return self.copy().reshape(-1)

    def fill(self, value: Any) -> None:
        """Write one number everywhere."""
        self[...] = value

    def item(self) -> Any:
        """Its only element, as a number of Python."""
        if self.size != 1:
            raise ValueError(f"item() is for one element; the array has shape {self.shape}")
        return _NUMBERS[self.dtype.kind](self.value if not self.ndim else self.reshape(()).value)

    def view(self, dtype: Any) -> Any:
        """The same bytes as another dtype, as far as the contract goes."""
        return self.xp.as_bytes_of(self, np.dtype(dtype))

    def conj(self) -> Any:
        """The conjugates."""
        return self.xp.conj(self)

    def round(self, decimals: int = 0) -> Any:
        """Rounded to some decimals, halves to even."""
        return (
            self.xp.rint(self.xp.multiply(self, 10.0**decimals)) / 10.0**decimals
            if decimals
            else self
            if self.dtype.kind in "iub"
            else self.xp.rint(self)
        )

    def refuse(self, *args: Any, **kw: Any) -> Any:
        """What nobody may do with an array of a device."""
        raise TypeError(
            "an array of a device does not become a host value by itself; that would hide a copy to the host"
        )

    __array__ = __array_function__ = __bool__ = __float__ = __int__ = __index__ = __len__ = __iter__ = refuse

    def __repr__(self) -> str:
        return f"<{self.dtype} {self.shape} of {self.xp.__name__}>"


def _inplace(fn: Callable[..., Array]) -> Any:
    def method(self: Array, other: Any) -> Array:
        return fn(self, other, out=self)

    return method


def _method(name: str) -> Any:
    def method(self: Array, *args: Any, **kw: Any) -> Any:
        return getattr(self.xp, name)(self, *args, **kw)

    method.__name__ = name
    return method


for _name in _SAME:
    setattr(Array, _name, _method(_name))


def array_class(xp: Any) -> type[Array]:
    """The class of a namespace's arrays; operators are its elementwise functions."""
    body: dict[str, Any] = {"__slots__": (), "xp": xp, "__hash__": object.__hash__}
    made = type("Array", (Array,), body)
    for short, name in {**_OPERATORS, **_COMPARISONS, **_SIGNS}.items():
        fn = xp.elementwise(name, made)
        setattr(made, f"__{short}__", fn)
        if short in _OPERATORS:
            setattr(made, f"__r{short}__", lambda self, other, fn=fn: fn(other, self))
            setattr(made, f"__i{short}__", _inplace(fn))
    return made
