"""What the functions of the standard read of their arguments: arrays, numbers beside them, dtypes, devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ...._core.context import Context
from ...._core.errors import error
from ...._core.params import as_dtype
from ...._core.state import state
from ....np_functions.arguments import default_float
from ..face import arrays as F
from ..multiarray import ndarray

__all__ = [
    "CATEGORIES",
    "NO_COMPLEX",
    "Axis",
    "alike",
    "asked_dtype",
    "axes_of",
    "check",
    "common",
    "default_dtype",
    "in_numpys_shapes",
    "kind_of",
    "number",
    "place",
    "promoted",
    "summed",
    "whole_number",
]

Axis = int | tuple[int, ...] | None
NO_COMPLEX = "mxcore has no complex numbers"

#: What the standard calls the dtypes that a function takes -> their kinds, of which mxcore has none that are complex.
CATEGORIES: dict[str, str] = {
    "all": "biuf",
    "boolean": "b",
    "complex floating-point": "",
    "floating-point": "f",
    "integer": "iu",
    "integer or boolean": "biu",
    "numeric": "iuf",
    "real floating-point": "f",
    "real numeric": "iuf",
}
#: Kinds of dtypes in words, and the numbers of Python's that arrays of them take.
_WORDS = {"b": "truth values", "i": "whole numbers", "f": "floats"}
_NUMBERS: dict[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float)}
_WIDEST = {"i": np.dtype("int64"), "u": np.dtype("uint64")}


def in_numpys_shapes(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs under NumPy's meaning of shapes, whatever the thread's is."""

    @wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        if state.np_shape:
            return fn(*args, **kwargs)
        state.np_shape = True
        try:
            return fn(*args, **kwargs)
        finally:
            state.np_shape = False

    return run


def kind_of(dtype: np.dtype[Any]) -> str:
    """'b', 'i', 'u' or 'f'; also of floats that NumPy does not know, such as bfloat16."""
    return dtype.kind if dtype.kind in "biuf" else "f"


def check(name: str, category: str, *given: Any) -> None:
    """Refuse what is no array, and arrays whose dtypes a function does not take."""
    kinds = CATEGORIES[category]
    for x in given:
        if not isinstance(x, ndarray):
            raise error(
                TypeError, f"{name}: an array of mx.np is needed, got {type(x).__name__}; asarray(x) makes one of it"
            )
        if kind_of(x.dtype) not in kinds:
            told = f"; {NO_COMPLEX}" if not kinds else ""
            raise error(TypeError, f"{name}: the dtype must be {category}, got {x.dtype}{told}")


def promoted(name: str, *dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a result of several, by the standard's table; kinds do not mix.

    Raises
    ------
    MXNetError
        (also TypeError) for truth values, whole numbers and floats beside one another, and for uint64 beside signed
        whole numbers.
    """
    found: np.dtype[Any] = np.result_type(*dtypes)
    kinds = {kind_of(t).replace("u", "i") for t in dtypes}
    if len(kinds) > 1 or "i" in kinds and found.kind == "f":
        names = ", ".join(str(t) for t in dict.fromkeys(dtypes))
        raise error(
            TypeError,
            f"{name}: {names} are not promoted to one dtype"
            f"{'' if len(kinds) == 1 else f': {_kinds(kinds)} do not mix'}; astype casts one of them",
        )
    return found


def _kinds(kinds: set[str]) -> str:
    return " and ".join(_WORDS[k] for k in "bif" if k in kinds)


def alike(name: str, category: str, *given: Any) -> list[Any]:
    """Arrays, and numbers of Python's as arrays without dimensions of the dtype that the arrays have.

    Returns
    -------
    list of ndarray
        Not cast to one dtype yet, but they could be.
    """
    found = [x for x in given if isinstance(x, ndarray)]
    if len(found) < len(given):
        if not found:
            raise error(TypeError, f"{name}: one of the arguments must be an array; asarray makes one of a number")
        dtype, ctx = promoted(name, *(x.dtype for x in found)), found[0].ctx
        given = tuple(x if isinstance(x, ndarray) else number(name, x, dtype, ctx) for x in given)
    check(name, category, *given)
    first = given[0].dtype
    if any(x.dtype is not first for x in given):
        promoted(name, *(x.dtype for x in given))
    return list(given)


def number(name: str, value: Any, dtype: np.dtype[Any], ctx: Any = None) -> Any:
    """A number of Python's as an array without dimensions, where the standard lets an array of a dtype take it.

    Raises
    ------
    MXNetError
        (also TypeError) for another kind of numbers; (also OverflowError) for a whole number that the dtype does not
        hold.
    """
    kind = kind_of(dtype)
    if type(value) not in _NUMBERS[kind]:
        told = f"; {NO_COMPLEX}" if isinstance(value, complex) else ""
        raise error(TypeError, f"{name}: an array of {dtype} takes no {type(value).__name__}{told}")
    if kind in "iu":
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise error(OverflowError, f"{name}: {dtype} does not hold {value}")
    return F.from_host(np.asarray(value, dtype), ctx)


def common(name: str, *given: Any) -> list[Any]:
    """Arrays cast to the dtype that theirs are promoted to."""
    dtype = promoted(name, *(x.dtype for x in given))
    return [x if x.dtype == dtype else x.astype(dtype) for x in given]


def asked_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """A dtype that was asked for; complex ones are refused."""
    try:
        return as_dtype(dtype)
    except TypeError as e:
        told = f"{NO_COMPLEX}: " if "complex" in str(e) else ""
        raise error(TypeError, f"{name}: {told}{e}") from None


def default_dtype(kind: str) -> np.dtype[Any]:
    """The dtype of truth values ('b'), whole numbers ('i') or floats ('f') where none is asked for."""
    return np.dtype(np.bool_) if kind == "b" else np.dtype(np.int64) if kind == "i" else default_float()


def place(name: str, device: Any) -> Any:
    """The context that `device` is, None for None."""
    if device is None or isinstance(device, Context):
        return device
    if isinstance(device, str):
        return Context(device)
    raise error(ValueError, f"{name}: device must be a context of mxcore such as mx.cpu(), got {type(device).__name__}")


def axes_of(name: str, ndim: int, axis: Any) -> tuple[int, ...]:
    """Axes from 0 on, of None all."""
    if axis is None:
        return tuple(range(ndim))
    asked = axis if isinstance(axis, tuple) else (axis,)
    found = tuple(whole_number(name, "axis", a) for a in asked)
    for a in found:
        if not -ndim <= a < ndim:
            raise error(IndexError, f"{name}: axis {a} is out of bounds for an array of {ndim} dimensions")
    found = tuple(a % ndim for a in found)
    if len(set(found)) != len(found):
        raise error(ValueError, f"{name}: axis {axis} names one axis twice")
    return found


def whole_number(name: str, argument: str, value: Any) -> int:
    """An argument that must be a whole number."""
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise error(TypeError, f"{name}: {argument} must be an int, got {value!r}") from None


def summed(name: str, x: Any, dtype: Any) -> np.dtype[Any]:
    """The dtype in which elements are added up or multiplied: of whole numbers the widest."""
    if dtype is not None:
        return asked_dtype(name, dtype)
    own: np.dtype[Any] = x.dtype
    return _WIDEST.get(own.kind, own)
