"""What NumPy 1.23 had and today's has no more: names, methods, and conversions that it refuses now.

Scripts of MXNet's time print a loss by ``'%f' % loss.mean().asnumpy()``, an array of shape (1,), which NumPy 2.4 does
not convert any more. So `asnumpy` gives arrays of a class of our own that does, in processes that ask for old names and
nowhere else.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import gc
import inspect
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["OldArray", "methods", "names", "replaced", "with_old_arrays"]

# -- conversions ------------------------------------------------------------------------------------------------------


def _converted(kind: type) -> Callable[[Any], Any]:
    return lambda self: kind(self.item() if self.size == 1 else self.view(np.ndarray))


class OldArray(np.ndarray):
    """An array that converts to a number as NumPy 1 does it: if it has one element, whatever its shape."""

    __float__, __int__, __complex__ = map(_converted, (float, int, complex))

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array.view(type(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)  # a pickle is read anywhere

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


OldArray.__name__ = OldArray.__qualname__ = "ndarray"  # what programs print
OldArray.__module__ = "numpy"


def with_old_arrays(asnumpy: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The method `asnumpy` of an array class, whose results are of the class above."""
    if getattr(asnumpy, "gives", None) is OldArray:
        return asnumpy

    @functools.wraps(asnumpy)
    def wrapped(self: Any) -> Any:
        return asnumpy(self).view(OldArray)

    wrapped.gives = OldArray  # type: ignore[attr-defined]
    return wrapped


# -- methods ----------------------------------------------------------------------------------------------------------


def _itemset(self: Any, *args: Any) -> None:
    *at, value = args
    if not at and self.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    if len(at) == 1 and not isinstance(at[0], tuple):
        self.reshape(-1, copy=False)[at[0]] = value
    else:
        self[at[0] if len(at) == 1 else tuple(at) if at else (0,) * self.ndim] = value


_METHODS: dict[str, Any] = {
    "tostring": lambda self, order="C": self.tobytes(order),
    "itemset": _itemset,
    "newbyteorder": lambda self, new_order="S": self.view(self.dtype.newbyteorder(new_order)),
    "ptp": lambda self, axis=None, out=None, keepdims=False: np.ptp(self, axis, out, keepdims),
}


def methods() -> list[str]:
    """Put back the methods that arrays and scalars have lost, into the dictionaries of types closed to Python."""
    put_back = []
    for kind in (np.ndarray, np.generic):
        held = next((d for d in gc.get_referents(kind.__dict__) if type(d) is dict), None)
        if held is None or sys.implementation.name != "cpython":
            continue
        for name, method in _METHODS.items():
            if not hasattr(kind, name):
                held[name] = method
                put_back.append(f"numpy.{kind.__name__}.{name}")
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
    return put_back


# -- functions that take less than they did ---------------------------------------------------------------------------


def _lenient(make: Callable[..., Any]) -> Callable[..., Any]:
    """`np.array` and its like: ``copy=False`` may copy, ragged lists become objects, numbers wrap around."""

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("copy", True) is False:
            kwargs["copy"] = None
        try:
            return make(*args, **kwargs)
        except ValueError as e:
            if "inhomogeneous" not in str(e) or len(args) > 1 or kwargs.get("dtype") is not None:
                raise
            warnings.warn(
                "an array of lists of different lengths has dtype object; NumPy 2 wants dtype=object for it",
                stacklevel=2,
            )
            return make(*args, **{**kwargs, "dtype": object})
        except OverflowError:
            dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
            if dtype is None:
                raise
            return make(args[0], **{k: v for k, v in kwargs.items() if k != "dtype"}).astype(dtype)

    return made


def _fromstring(string: Any, dtype: Any = float, count: int = -1, *, sep: str = "", like: Any = None) -> Any:
    """Read an array from text, or from bytes where no `sep` is given."""
    if sep:
        return _read_text(string, dtype, count, sep=sep)
    return np.frombuffer(string.encode("latin1") if isinstance(string, str) else string, dtype, count).copy()


_read_text = np.fromstring


def replaced() -> dict[str, Any]:
    """Functions of NumPy that take what they took."""
    found = {
        n: _lenient(getattr(np, n))
        for n in ("array", "asarray", "asanyarray")
        if not hasattr(getattr(np, n), "__wrapped__")
    }
    return found if np.fromstring is _fromstring else {**found, "fromstring": _fromstring}


# -- names ------------------------------------------------------------------------------------------------------------


class _ByType:
    """A table over all dtypes."""

    def __init__(self, of: Callable[[np.dtype[Any]], Any]) -> None:
        self._of = of

    def __getitem__(self, key: Any) -> Any:
        return self._of(np.dtype(key))


def _asfarray(a: Any, dtype: Any = np.float64) -> Any:
    return np.asarray(a, dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def _in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    return np.isin(np.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert)


def _find_common_type(array_types: Any, scalar_types: Any) -> np.dtype[Any]:
    """The dtype that arrays and scalars have in common; scalars count if they are of a higher kind."""
    arrays, scalars = ([np.dtype(t) for t in types] for types in (array_types, scalar_types))
    if not arrays or not scalars:
        return np.result_type(*(arrays or scalars))
    one, other = np.result_type(*arrays), np.result_type(*scalars)
    return other if "buifc".find(other.kind) > "buifc".find(one.kind) else one


def _deprecate(*args: Any, **kwargs: Any) -> Any:
    """Decorate a function so that it warns, with or without options."""
    if not (args and callable(args[0])):
        return lambda func: _deprecate(func, *args, **kwargs)
    func, told = args[0], kwargs.get("message") or ""

    @functools.wraps(func)
    def warning(*a: Any, **k: Any) -> Any:
        warnings.warn(f"`{func.__name__}` is deprecated! {told}".strip(), DeprecationWarning, stacklevel=2)
        return func(*a, **k)

    return warning


def _records(*args: Any, **kwargs: Any) -> Any:
    return np.genfromtxt(*args, **{"dtype": None, **kwargs}).view(np.recarray)


# Text names another member of NumPy.
_NAMES: dict[str, Any] = {
    # builtins (NumPy 2 has types named bool and long again) and modules
    "int": int,
    "float": float,
    "complex": complex,
    "object": object,
    "str": str,
    "unicode": str,
    "math": math,
    "os": os,
    "sys": sys,
    "warnings": warnings,
    # scalar types
    "bool8": "bool_",
    "int0": "intp",
    "uint0": "uintp",
    "float_": "float64",
    "cfloat": "complex128",
    "complex_": "complex128",
    "singlecomplex": "complex64",
    "longfloat": "longdouble",
    "longcomplex": "clongdouble",
    "clongfloat": "clongdouble",
    "string_": "bytes_",
    "bytes0": "bytes_",
    "unicode_": "str_",
    "str0": "str_",
    "object0": "object_",
    "void0": "void",
    "typeDict": "sctypeDict",
    # constants
    "Inf": "inf",
    "Infinity": "inf",
    "infty": "inf",
    "PINF": "inf",
    "NINF": -np.inf,
    "NaN": "nan",
    "NAN": "nan",
    "PZERO": 0.0,
    "NZERO": -0.0,
    "CLIP": 0,
    "WRAP": 1,
    "RAISE": 2,
    "ALLOW_THREADS": 1,
    "BUFSIZE": 8192,
    "MAXDIMS": 32,
    "ERR_IGNORE": 0,
    "ERR_WARN": 1,
    "ERR_RAISE": 2,
    "ERR_CALL": 3,
    "ERR_PRINT": 4,
    "ERR_LOG": 5,
    # errors, warnings and classes that have moved
    **{
        n: f"exceptions.{n}"
        for n in "AxisError ComplexWarning ModuleDeprecationWarning RankWarning TooHardError "
        "VisibleDeprecationWarning".split()
    },
    "DataSource": "lib.npyio.DataSource",
    "chararray": "char.chararray",
    "compare_chararrays": "char.compare_chararrays",
    "format_parser": "rec.format_parser",
    "byte_bounds": "lib.array_utils.byte_bounds",
    "add_newdoc": "lib.add_newdoc",
    "tracemalloc_domain": "lib.tracemalloc_domain",
    # functions
    "product": "prod",
    "cumproduct": "cumprod",
    "sometrue": "any",
    "alltrue": "all",
    "round_": "round",
    "rank": "ndim",
    "mat": "asmatrix",
    "row_stack": "vstack",
    "trapz": "trapezoid",
    "asscalar": lambda a: np.asarray(a).item(),
    "asfarray": _asfarray,
    "in1d": _in1d,
    "msort": lambda a: np.sort(a, axis=0),
    "fastCopyAndTranspose": lambda a: np.array(a).T.copy(),
    "disp": lambda mesg, device=None, linefeed=True: print(
        mesg, file=device or sys.stdout, end="\n" if linefeed else ""
    ),
    "safe_eval": ast.literal_eval,
    "source": lambda object, output=None: print(inspect.getsource(object), file=output or sys.stdout),
    "deprecate": _deprecate,
    "deprecate_with_doc": lambda msg: lambda func: _deprecate(func, message=msg),
    "recfromtxt": _records,
    "recfromcsv": lambda fname, **k: _records(
        fname, **{"names": True, "delimiter": ",", "case_sensitive": "lower", **k}
    ),
    # questions about types
    "issubclass_": lambda a, b: isinstance(a, type) and issubclass(a, b),
    "issubsctype": lambda a, b: np.issubdtype(a, b),
    "issctype": lambda rep: isinstance(rep, np.dtype) or isinstance(rep, type) and issubclass(rep, np.generic),
    "obj2sctype": lambda rep, default=None: np.dtype(rep).type,
    "sctype2char": lambda sctype: np.dtype(sctype).char,
    "find_common_type": _find_common_type,
    "cast": _ByType(lambda t: lambda x: np.asarray(x).astype(t)),
    "nbytes": _ByType(lambda t: t.itemsize),
    "sctypes": {
        "int": [np.int8, np.int16, np.int32, np.int64],
        "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
        "float": [np.float16, np.float32, np.float64, np.longdouble],
        "complex": [np.complex64, np.complex128, np.clongdouble],
        "others": [bool, object, bytes, str, np.void],
    },
}


def names() -> Iterator[tuple[Any, dict[str, Any]]]:
    """Modules of NumPy, and what they had."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a later NumPy says of some that they go soon
        for name, value in _NAMES.items():
            if not isinstance(value, str):
                found[name] = value
                continue
            try:
                found[name] = functools.reduce(getattr, value.split("."), np)
            except AttributeError:
                pass  # this NumPy keeps it elsewhere, or is an old one that has the name itself
    yield np, found
    yield np.linalg, {"linalg": np.linalg}
    yield np.lib, {n: getattr(np, n) for n in _LIB.split() if hasattr(np, n)}


#: Functions that `np.lib` showed as well.
_LIB = """
    angle append apply_along_axis array_split asarray_chkfinite average bincount broadcast_arrays broadcast_to c_
    column_stack copy corrcoef cov delete diag diff digitize dstack expand_dims extract eye flip fliplr flipud
    genfromtxt gradient histogram histogram2d hsplit index_exp insert interp intersect1d isin iterable kron load loadtxt
    median meshgrid mgrid nan_to_num nanmax nanmean nanmin nansum ndindex ogrid packbits pad percentile poly1d polyfit
    polyval quantile r_ roots rot90 s_ save savetxt savez savez_compressed select setdiff1d split take_along_axis tile
    tri tril tril_indices trim_zeros triu triu_indices union1d unique unpackbits unravel_index vectorize vsplit
"""
