"""What several functions of ``mx.np`` read of their arguments: shapes, dtypes, orders."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from .._core.errors import error
from .._core.params import as_dtype
from .._core.state import state
from .options import refuse

__all__ = ["default_dtype", "default_float", "drawn_float", "in_order", "lengths", "numpys_dtypes", "only_arrays"]

_FLOAT32, _FLOAT64 = np.dtype("float32"), np.dtype("float64")


def default_float(dtype: Any = None) -> np.dtype[Any]:
    """The dtype asked for, or that of new arrays where none is: float32, float64 after ``npx.set_np(dtype=True)``."""
    if dtype is not None:
        return as_dtype(dtype)
    return _FLOAT64 if numpys_dtypes() else _FLOAT32


def default_dtype(dtype: Any, *values: Any) -> np.dtype[Any]:
    """The dtype asked for, or that of new arrays of such numbers: float32, NumPy's after ``npx.set_np(dtype=True)``."""
    if dtype is None and numpys_dtypes():
        return np.result_type(*(np.asarray(v).dtype for v in values))
    return default_float(dtype)


def numpys_dtypes() -> bool:
    """Whether new arrays have NumPy's dtypes where none is told."""
    return bool(state.extra.get("np_default_dtype"))


def drawn_float(dtype: Any) -> Any:
    """The dtype asked for, or that of random numbers: None, which is the operator's own, or float64."""
    return _FLOAT64 if dtype is None and numpys_dtypes() else dtype


def in_order(name: str, order: Any, *legal: str) -> None:
    """Refuse an order of elements in memory other than C's and those that mean the same there."""
    if order not in ("C", None, *legal):
        raise refuse(name, "order", order, "C")


def lengths(name: str, shape: Any) -> tuple[int, ...]:
    """The shape of an array to make, from a number or a sequence of them.

    Raises
    ------
    MXNetError
        (also ValueError) for a length below 0, and for what MXNet's meaning of shapes calls unknown where that holds.
    """
    try:
        found = tuple(map(_length, shape)) if isinstance(shape, (tuple, list, np.ndarray)) else (_length(shape),)
    except TypeError:
        try:
            found = tuple(map(_length, shape))
        except TypeError:
            raise error(TypeError, f"np.{name}: the shape must be an int or a tuple of ints, got {shape!r}") from None
    if any(d < 0 for d in found):
        raise error(ValueError, f"np.{name}: shape {found} holds a length below 0")
    if not state.np_shape and (not found or 0 in found):
        raise error(
            ValueError,
            f"np.{name}: shape {found} is an unknown one in MXNet's meaning of shapes; npx.set_np() or "
            "`with mx.util.np_shape():` lets it mean what it does in NumPy",
        )
    return found


def _length(d: Any) -> int:
    return index(d)


def only_arrays(F: Any, name: str, *given: Any) -> None:
    """Refuse symbols, in a function that must know the shapes or values of its arrays."""
    if not F.eager and any(F.is_value(x) for x in given):
        raise error(
            NotImplementedError,
            f"np.{name} needs the shape or the values of its arrays, which a symbol has only when it runs; call it on "
            "arrays",
        )
