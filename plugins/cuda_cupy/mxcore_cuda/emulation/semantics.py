"""Where CuPy's functions differ from NumPy's: signatures, loops, indices, casts, errors that are not raised.

What CuPy refuses is refused with an error of the same class; `rules.json` says what that is.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .rules import rules

__all__ = ["OVERRIDES", "check_function", "check_method", "check_scatter", "check_ufunc"]


@cache
def _signature(kind: str, name: str) -> inspect.Signature | None:
    text = rules()[kind].get(name)
    return None if text is None else inspect.signature(eval(f"lambda {text[1:-1]}: None"))  # the table is ours


@cache
def _bind(kind: str, name: str, positional: int, *keywords: str) -> None:
    """Refuse arguments, so many by position and the others by keyword, which a signature does not take."""
    signature = _signature(kind, name)
    if signature is not None:
        signature.bind(*range(positional), **dict.fromkeys(keywords))


def check_function(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse arguments that CuPy's function does not have."""
    _bind("functions", name, len(args), *kwargs)


def check_method(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse arguments that CuPy's method does not have."""
    if name not in ("reshape", "transpose"):  # those take any number
        _bind("methods", name, len(args), *kwargs)


def check_ufunc(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse dtypes for which CuPy's universal function has no loop."""
    rule = rules()["ufuncs"][name]
    wrong = kwargs.keys() - {"out", "dtype", "casting"}
    if wrong:
        raise TypeError(f"cupy.{name}: wrong keyword {sorted(wrong)[0]!r}")
    if not rule["nin"] <= len(args) <= rule["nin"] + rule["nout"]:
        raise TypeError(f"cupy.{name} takes {rule['nin']} arguments, got {len(args)}")
    if not _has_loop(name, tuple(_kind(a) for a in args[: rule["nin"]])):
        raise TypeError(f"cupy.{name}: no loop for {', '.join(str(_kind(a)) for a in args)}")


def _kind(a: Any) -> Any:
    """The dtype of an argument; the class of one of Python's numbers, which is weak."""
    dtype = getattr(a, "dtype", None)
    if dtype is not None:
        return dtype
    return next((t for t in (bool, int, float, complex) if isinstance(a, t)), np.dtype(object))


@cache
def _has_loop(name: str, kinds: tuple[Any, ...]) -> bool:
    firm = [k for k in kinds if isinstance(k, np.dtype)]
    weak = [k for k in kinds if not isinstance(k, np.dtype)]
    dtypes = [*firm, *(np.result_type(*firm, k(1)) if firm else np.dtype(k) for k in weak)]
    loops = (loop.partition("->")[0] for loop in rules()["ufuncs"][name]["loops"] if "E" not in loop)  # bfloat16
    return any(all(np.can_cast(d, t) for d, t in zip(dtypes, map(np.dtype, loop))) for loop in loops)


def check_scatter(name: str, dtype: Any) -> None:
    """Refuse dtypes for which CuPy's ``ufunc.at`` has no atomic operation."""
    if str(dtype) not in rules()["at"].get(name, ()):
        raise TypeError(f"cupy.{name}.at does not support {dtype}")


# -- what NumPy does otherwise ---------------------------------------------------------------------------------------
def _wrapped(key: Any, shape: tuple[int, ...]) -> Any:
    """Arrays of indices as CuPy takes them: modulo the length of their dimension."""
    keys = list(key) if isinstance(key, tuple) else [key]
    axis, found = 0, []
    rest = sum(1 if not (isinstance(k, np.ndarray) and k.dtype == bool) else k.ndim for k in keys if k is not None)
    for k in keys:
        if k is Ellipsis:
            axis += len(shape) - (rest - 1)
        elif isinstance(k, np.ndarray) and k.dtype == bool:
            axis += k.ndim
        elif isinstance(k, (np.ndarray, list)) and axis < len(shape):
            k = np.asarray(k)
            k = k % shape[axis] if shape[axis] and k.dtype.kind in "iu" else k
            axis += 1
        elif k is not None:
            axis += 1
        found.append(k)
    return tuple(found) if isinstance(key, tuple) else found[0]


def _getitem(a: np.ndarray[Any, Any], key: Any) -> Any:
    return a[_wrapped(key, a.shape)]


def _setitem(a: np.ndarray[Any, Any], key: Any, value: Any) -> None:
    key = _wrapped(key, a.shape)
    value = _cast(value, a.dtype) if isinstance(value, np.ndarray) else value
    if not any(isinstance(k, np.ndarray) and k.dtype != bool for k in (key if isinstance(key, tuple) else (key,))):
        a[key] = value
        return
    # Which of several values for one place is there in the end is not defined: here the first, in NumPy the last.
    places = np.arange(a.size).reshape(a.shape)[key]
    a.flat[places.reshape(-1)[::-1]] = np.broadcast_to(value, places.shape).reshape(-1)[::-1]


def _take(a: np.ndarray[Any, Any], indices: Any, axis: int | None = None, out: Any = None) -> Any:
    return np.take(a, indices, axis=axis, out=out, mode="wrap")


def _cast(a: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """As the device converts: floats out of an integer's range become its ends, NaN becomes 0."""
    dtype = np.dtype(dtype)
    if a.dtype.kind == "f" and dtype.kind in "iu":
        wide = dtype if dtype.itemsize >= 4 else np.dtype(dtype.kind + "4")
        ends = np.iinfo(wide)
        low, high = float(ends.min), float(ends.max)
        whole = np.trunc(a.astype(np.float64))
        inside = np.where((whole > low) & (whole < high), whole, 0).astype(wide)
        return np.where(whole >= high, ends.max, np.where(whole <= low, ends.min, inside)).astype(wide).astype(dtype)
    return a.astype(dtype)


def _astype(
    a: np.ndarray[Any, Any], dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True
) -> np.ndarray[Any, Any]:
    return a if not copy and a.dtype == dtype else _cast(a, dtype)


def _floored(exact: Callable[..., Any], of_floats: Callable[..., Any]) -> Callable[..., Any]:
    """A division that CuPy makes of floats in another way than Python does, which shows where something is infinite."""
    return lambda a, b, **kwargs: (of_floats if np.result_type(a, b).kind == "f" and not kwargs else exact)(
        a, b, **kwargs
    )


_mod = _floored(np.mod, lambda a, b: a - np.floor(a / b) * b)
_floordiv = _floored(np.floor_divide, lambda a, b: np.floor(a / b))


def _place(name: str) -> Callable[..., Any]:
    """``argmax`` or ``argmin``, which may find any of several NaNs: here the last."""

    def call(
        a: np.ndarray[Any, Any], axis: int | None = None, dtype: Any = None, out: Any = None, keepdims: Any = False
    ) -> Any:
        found = getattr(np, name)(a, axis, keepdims=bool(keepdims))
        if a.dtype.kind != "f":
            return found
        nan, n = np.isnan(a), a.size if axis is None else a.shape[axis]
        last = n - 1 - np.argmax(np.flip(nan, axis), axis, keepdims=bool(keepdims))
        return np.where(nan.any(axis, keepdims=bool(keepdims)), last, found)

    return call


def _where(condition: Any, *chosen: Any) -> Any:
    if not hasattr(condition, "astype"):
        raise AttributeError(f"{type(condition).__name__!r} object has no attribute 'astype'")
    return np.where(condition, *chosen)


def _unraised(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of linear algebra that gives NaN where NumPy raises."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except np.linalg.LinAlgError:
            first = np.asarray(args[0])
            shown = fn(np.broadcast_to(np.eye(first.shape[-1], dtype=first.dtype), first.shape), *args[1:], **kwargs)
            if isinstance(shown, tuple):
                return tuple(np.full_like(v, np.nan) for v in shown)
            return np.full_like(shown, np.nan)

    return call


#: Name of a function, a method ("ndarray.") or an operator -> what stands in for NumPy's.
OVERRIDES: dict[str, Callable[..., Any]] = {
    "__getitem__": _getitem,
    "__setitem__": _setitem,
    "__neg__": operator.neg,
    "take": _take,
    "where": _where,
    "mod": _mod,
    "__mod__": _mod,
    "floor_divide": _floordiv,
    "__floordiv__": _floordiv,
    "argmax": _place("argmax"),
    "argmin": _place("argmin"),
    "ndarray.astype": _astype,
    **{
        f"linalg.{name}": _unraised(getattr(np.linalg, name))
        for name in "cholesky det eigh eigvalsh inv qr slogdet solve svd".split()
    },
}
