"""Data types, and what is asked of them: promotion, kinds, limits, casts."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._core.errors import error
from ..multiarray import ndarray
from .arguments import asked_dtype, check, kind_of, number, place, promoted

__all__ = [
    "astype",
    "bool",
    "can_cast",
    "finfo",
    "float16",
    "float32",
    "float64",
    "iinfo",
    "int16",
    "int32",
    "int64",
    "int8",
    "isdtype",
    "result_type",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]

# Those of the standard, and float16, in which many networks compute.
bool = np.dtype("bool")
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (np.dtype(f"float{n}") for n in (16, 32, 64))

#: Names of kinds of dtypes.
KINDS: dict[str, str] = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "",
    "numeric": "iuf",
}


def astype(x: ndarray, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    """The values in another dtype.

    Parameters
    ----------
    x : ndarray
    dtype : dtype
    copy : bool
        With False `x` itself if it has that dtype and lives there.
    device : Context, optional
        Where the result is to be; where `x` is unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.astype(xp.asarray([1.5, -1.5]), xp.int8)
    array([ 1, -1], dtype=int8)
    """
    check("astype", "all", x)
    x = x.astype(asked_dtype("astype", dtype), copy=copy)
    ctx = place("astype", device)
    return x if ctx is None else x.as_in_ctx(ctx)


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Whether a dtype is promoted to another one where both meet.

    Parameters
    ----------
    from_ : dtype or ndarray
    to : dtype

    Returns
    -------
    bool

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.can_cast(xp.int8, xp.int32), xp.can_cast(xp.int32, xp.float64)
    (True, False)
    """
    first = from_.dtype if isinstance(from_, ndarray) else asked_dtype("can_cast", from_)
    second = asked_dtype("can_cast", to)
    try:
        return promoted("can_cast", first, second) == second
    except TypeError:
        return False


@dataclass(frozen=True)
class FloatLimits:
    """The limits of a dtype of floats.

    Parameters
    ----------
    bits : int
    eps : float
        From 1 to the next number.
    max, min : float
        The largest and the lowest number.
    smallest_normal : float
        The smallest positive number of full precision.
    dtype : dtype
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class IntegerLimits:
    """The limits of a dtype of whole numbers.

    Parameters
    ----------
    bits : int
    max, min : int
        The largest and the lowest number.
    dtype : dtype
    """

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def _of_kind(name: str, type: Any, kinds: str) -> np.dtype[Any]:
    found = type.dtype if isinstance(type, ndarray) else asked_dtype(name, type)
    if kind_of(found) not in kinds:
        raise error(
            ValueError, f"{name}: a dtype of {'floats' if kinds == 'f' else 'whole numbers'} is needed, got {found}"
        )
    return found


def finfo(type: Any, /) -> FloatLimits:
    """The limits of a dtype of floats.

    Parameters
    ----------
    type : dtype or ndarray

    Returns
    -------
    FloatLimits
        With `bits`, `eps`, `max`, `min`, `smallest_normal` and `dtype`.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.finfo(xp.float32).bits
    32
    """
    dtype = _of_kind("finfo", type, "f")
    try:
        limits = np.finfo(dtype)
    except ValueError as e:  # a dtype that is not NumPy's
        raise error(ValueError, f"finfo: {e}") from None
    eps, most, least, normal = (float(x) for x in (limits.eps, limits.max, limits.min, limits.smallest_normal))
    return FloatLimits(int(limits.bits), eps, most, least, normal, dtype)


def iinfo(type: Any, /) -> IntegerLimits:
    """The limits of a dtype of whole numbers.

    Parameters
    ----------
    type : dtype or ndarray

    Returns
    -------
    IntegerLimits
        With `bits`, `max`, `min` and `dtype`.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.iinfo(xp.int8).min
    -128
    """
    dtype = _of_kind("iinfo", type, "iu")
    limits = np.iinfo(dtype)
    return IntegerLimits(int(limits.bits), int(limits.max), int(limits.min), dtype)


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Whether a dtype is of a kind.

    Parameters
    ----------
    dtype : dtype
    kind : str, dtype or tuple of these
        'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex floating' (which none is) or
        'numeric'; a dtype is a kind of itself alone.

    Returns
    -------
    bool

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.isdtype(xp.float32, "real floating"), xp.isdtype(xp.uint8, (xp.int8, "bool"))
    (True, False)
    """
    found = asked_dtype("isdtype", dtype)
    for k in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(k, str):
            if k not in KINDS:
                raise error(ValueError, f"isdtype: kind must be one of {', '.join(map(repr, KINDS))}, got {k!r}")
            if kind_of(found) in KINDS[k]:
                return True
        elif not _is_complex(k) and asked_dtype("isdtype", k) == found:
            return True
    return False


def _is_complex(dtype: Any) -> builtins.bool:
    """Whether it is a dtype of NumPy's that no array of mxcore has: no error to ask for."""
    return (
        getattr(dtype, "kind", None) == "c"
        or isinstance(dtype, type)
        and issubclass(dtype, (complex, np.complexfloating))
    )


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype that several are promoted to.

    Parameters
    ----------
    *arrays_and_dtypes : ndarray, dtype or number
        Numbers of Python's take the dtype of the others, which must hold their kind of numbers.

    Returns
    -------
    dtype

    Raises
    ------
    MXNetError
        (also TypeError) for dtypes that are not promoted; (also ValueError) for nothing but numbers.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.result_type(xp.asarray([1], dtype=xp.int8), xp.uint8, 3)
    dtype('int16')
    """
    numbers = [x for x in arrays_and_dtypes if type(x) in (builtins.bool, int, float, complex)]
    dtypes = [
        x.dtype if isinstance(x, ndarray) else asked_dtype("result_type", x)
        for x in arrays_and_dtypes
        if type(x) not in (builtins.bool, int, float, complex)
    ]
    if not dtypes:
        raise error(ValueError, "result_type: an array or a dtype is needed")
    found = promoted("result_type", *dtypes)
    for value in numbers:
        if type(value) is int:
            value = 1  # whose size the dtype need not hold
        number("result_type", value, found)
    return found
