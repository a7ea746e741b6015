"""NumPy's functions over any library of the Python array API standard."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np

from .._core.errors import error, suggest
from . import _functions as functions
from . import elementwise, indexing
from .arrays import Array, array_class
from .contract import CONSTANTS, present

__all__ = ["ArrayAPINamespace"]

#: Dtypes that are looked for in a library.
_DTYPES = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64 complex64 complex128".split()
#: Where NumPy's promotion leads to a dtype that a library lacks.
_NEAR = {
    "float16": "float32",
    "float64": "float32",
    "uint8": "int16",
    "int8": "int16",
    "uint16": "int32",
    "int16": "int32",
    "uint32": "int64",
    "int32": "int64",
    "uint64": "int64",
}
#: Name in the standard -> the name under which libraries that lack it have the same function, arguments included.
_OTHER_NAMES = {
    "cumulative_prod": "cumprod",
    "cumulative_sum": "cumsum",
    "permute_dims": "permute",
    "take_along_axis": "take_along_dim",
}
#: The names in the standard that are asked of a library.
ASKED = frozenset(
    """
    arange argmax argmin argsort all any asarray astype broadcast_to concat conj cumulative_prod cumulative_sum empty
    flip full imag isnan max min nonzero ones permute_dims prod real reshape searchsorted sort sum take take_along_axis
    where zeros
""".split()
) | {
    *elementwise.STANDARD.values(),
    *(f"linalg.{name}" for name in functions.LINEAR if name != "norm"),
    *(f"fft.{name}" for name in functions.FOURIER),
}
#: What an author may give beside them.
_OWN = frozenset({"add_rows", "contiguous", "dtypes", "put_rows"})
_PLAIN: dict[str, Any] = {"b": bool, "f": float, "c": complex}


class ArrayAPINamespace:
    """The array namespace of a device, over a library of the Python array API standard.

    It has what the contract of arrays lists (docs/arrays.md), with NumPy's promotion, indexing and methods. What the
    standard has is taken from the library, what it lacks is composed of that. Arrays are a class of its own, `Array`,
    whose `value` is the library's.

    Parameters
    ----------
    xp : module
        The library: array-api-strict, PyTorch, NumPy … Its arrays can be written to, and slices of them are views.
    overrides : dict, optional
        Name in the standard (``'take'``, ``'linalg.inv'``) -> function with the standard's signature, where the library
        has another. Beside the standard's names: ``'dtypes'``, the names of those to use; ``'contiguous'``, a function
        to an array in C order; ``'put_rows'`` and ``'add_rows'``, functions ``(a, index, values)`` to a copy of `a`
        whose rows at an index (int64, from zero on) are replaced or added to.
    device : object, optional
        What creating functions get as ``device=``.

    Attributes
    ----------
    Array : type
        The class of its arrays: ``Array(value)``.
    dtypes : frozenset of numpy.dtype
        Those that the library has, less complex ones; a device declares them.

    Examples
    --------
    >>> import numpy as np
    >>> from mxcore.plugin import ArrayAPINamespace
    >>> xp = ArrayAPINamespace(np)
    >>> a = xp.zeros((2, 3), xp.float32)
    >>> a[:, xp.asarray([0, 2])] += 1.5
    >>> (a.sum(axis=0) + 1).value
    array([4., 1., 4.], dtype=float32)
    """

    def __init__(self, xp: Any, overrides: Mapping[str, Any] | None = None, device: Any = None) -> None:
        self.__name__ = xp.__name__
        self._xp = xp
        for name in {*(overrides or {})} - ASKED - _OWN:
            raise error(
                ValueError,
                f"ArrayAPINamespace({self.__name__}, …): nothing asks for an override '{name}'"
                f"{suggest(name, ASKED | _OWN)}; there are: {', '.join(sorted(ASKED | _OWN))}",
            )
        self._found: dict[str, Any] = {
            "put_rows": partial(indexing.put_rows, self),
            "add_rows": partial(indexing.add_rows, self),
            "contiguous": lambda x: functions.copy(self, self.Array(x)).value,
            **{name: getattr(xp, other, None) for name, other in _OTHER_NAMES.items() if not hasattr(xp, name)},
            **(overrides or {}),
        }
        #: Keywords of creating functions.
        self.place = {} if device is None else {"device": device}
        names = self._found.get("dtypes", _DTYPES)
        pairs = [(np.dtype(n), getattr(xp, n, None)) for n in (names.split() if isinstance(names, str) else names)]
        #: NumPy's dtype -> the library's, and back. Libraries give a type or a dtype.
        self.raw = {
            t: np.dtype(r) if isinstance(r, type) and issubclass(r, np.generic) else r
            for t, r in pairs
            if r is not None
        }
        self.dtype_of = {r: t for t, r in self.raw.items()}
        self.dtypes = frozenset(t for t in self.raw if t.kind != "c")
        self._near: dict[Any, Any] = {}
        self.Array: type[Array] = array_class(self)
        self.linalg = SimpleNamespace(**{n: partial(f, self) for n, f in functions.LINEAR.items()})
        self.fft = SimpleNamespace(**{n: partial(f, self) for n, f in functions.FOURIER.items()})
        self.get, self.set = partial(indexing.get, self), partial(indexing.set_, self)
        self.copy, self.conj, self.as_bytes_of = (
            partial(f, self) for f in (functions.copy, functions.conj, functions.as_bytes_of)
        )

    def __getattr__(self, name: str) -> Any:
        if name in functions.FUNCTIONS:
            found: Any = partial(functions.FUNCTIONS[name], self)
        elif name in elementwise.NAMES or name == "matmul":
            found = self.elementwise(name, self.Array)
        elif name in CONSTANTS:
            found = getattr(np, name)
        else:
            raise AttributeError(f"xp has no {name!r}; what bodies may use is listed in mxcore.array_api.contract")
        if name == "add":
            found.at = partial(indexing.add_at, self)
        self.__dict__[name] = found
        return found

    def elementwise(self, name: str, cls: type[Array]) -> Any:
        """NumPy's elementwise function of a name, over arrays of a class."""
        return elementwise.function(self, name, cls)

    # -- the library -------------------------------------------------------------------------------------------
    def standard(self, name: str) -> Any:
        """The library's function of a name in the standard, or what the device's author gave in its place."""
        found = self._found.get(name)
        if found is None:
            try:
                found = self._found[name] = attrgetter(name)(self._xp)
            except AttributeError:
                raise error(
                    NotImplementedError,
                    f"{self.__name__} has no '{name}', which the array API standard has; an override gives it: "
                    f"ArrayAPINamespace({self.__name__}, {{'{name}': …}}). It lacks: {', '.join(self.lacking())}",
                ) from None
        return found

    @cached_property
    def astype(self) -> Any:
        """The library's function to an array of another dtype."""
        return self.standard("astype")

    def lacking(self) -> list[str]:
        """The names in the standard that neither the library nor an override has, of those that are asked for."""
        return sorted(name for name in ASKED if self._found.get(name) is None and not present(self._xp, name))

    def need(self, dtype: Any) -> Any:
        """The library's dtype for one of NumPy's."""
        found = self.raw.get(dtype)
        if found is None:
            found = self.raw.get(np.dtype(dtype))
            if found is None:
                raise TypeError(
                    f"{self.__name__} has no {np.dtype(dtype)}; it has {', '.join(sorted(map(str, self.raw)))}"
                )
        return found

    def near(self, dtype: Any) -> Any:
        """A dtype to which promotion leads, or the nearest that the library has."""
        found = self._near.get(dtype)
        if found is None:
            found = dtype
            while found not in self.raw:
                if found.name not in _NEAR:
                    self.need(dtype)
                found = np.dtype(_NEAR[found.name])
            self._near[dtype] = found
        return found

    def cast(self, a: Any, dtype: Any) -> Any:
        """An array in a dtype; itself if it has it."""
        raw = self.need(dtype)
        if a.value.dtype == raw:
            return a
        value = a.value
        if a.dtype.kind == "c" and np.dtype(dtype).kind != "c":
            value = self.standard("real")(value)
        return self.Array(self.astype(value, raw))

    def made(self, name: str, *args: Any, dtype: Any) -> Any:
        """A new array from a creating function."""
        return self.Array(self.standard(name)(*args, dtype=self.need(dtype), **self.place))

    def number(self, value: Any, raw: Any) -> Any:
        """A number as the library's array without dimensions."""
        return self.standard("full")((), value, dtype=raw, **self.place)

    def plain(self, value: Any, dtype: Any) -> Any:
        """A number of Python's kind for a dtype."""
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError("a NumPy array meets an array of a device; make a device array of it with xp.asarray")
        return _PLAIN.get(dtype.kind, int)(value)

    def same(self, a: Any, value: Any) -> Any:
        """The array around a value made of another's, which is that other if the library gave it back."""
        return a if value is a.value else self.Array(value)

    def take_raw(self, a: Any, index: Any, axis: int) -> Any:
        """Elements along a dimension, at an index of one dimension from zero on."""
        return self.Array(self.standard("take")(a.value, index.value, axis=axis))
