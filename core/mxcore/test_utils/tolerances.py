"""How near two results must be, by dtype: the defaults of the comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = [
    "default_atols",
    "default_dtype",
    "default_numeric_eps",
    "default_rtols",
    "effective_dtype",
    "get_atol",
    "get_etol",
    "get_rtol",
    "get_tolerance",
    "get_tols",
]

_EXACT = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")
_RTOLS: dict[Any, float] = {np.dtype("f2"): 1e-2, np.dtype("f4"): 1e-4, np.dtype("f8"): 1e-5}
_ATOLS: dict[Any, float] = {np.dtype("f2"): 1e-1, np.dtype("f4"): 1e-3, np.dtype("f8"): 1e-20}
for _table in (_RTOLS, _ATOLS):
    _table.update({np.dtype(name): 0 for name in _EXACT})
#: Powers of two, so that adding one of them to a number of that size is exact.
_STEPS: dict[Any, float] = {np.dtype("f2"): 2.0**-6, np.dtype("f4"): 2.0**-9, np.dtype("f8"): 2.0**-14}


def default_dtype() -> type:
    """The dtype that tests use unless told, float32.

    >>> default_dtype().__name__
    'float32'
    """
    return np.float32


def default_rtols() -> dict[Any, float]:
    """Relative tolerances by dtype; 0 for integers and bools.

    >>> default_rtols()[np.dtype("float32")]
    0.0001
    """
    return dict(_RTOLS)


def default_atols() -> dict[Any, float]:
    """Absolute tolerances by dtype; 0 for integers and bools.

    >>> default_atols()[np.dtype("float32")]
    0.001
    """
    return dict(_ATOLS)


def default_numeric_eps() -> dict[Any, float]:
    """Steps of difference quotients by dtype.

    >>> default_numeric_eps()[np.dtype("float64")] == 2.0**-14
    True
    """
    return dict(_STEPS)


def host(dat: Any) -> np.ndarray[Any, Any]:
    """Anything array-like as a NumPy array; sparse arrays become full ones."""
    return dat.asnumpy() if hasattr(dat, "asnumpy") else np.asarray(dat)


def effective_dtype(dat: Any) -> np.dtype[Any]:
    """The dtype that decides how exact `dat` can be expected to be.

    Parameters
    ----------
    dat : NDArray, numpy.ndarray or array_like

    >>> effective_dtype(np.zeros(2, "float16"))
    dtype('float16')
    """
    return np.dtype(dat.dtype) if hasattr(dat, "dtype") else np.asarray(dat).dtype


def _default(table: Mapping[Any, float], dtype: np.dtype[Any]) -> float:
    """Tolerance from a table of tolerances; dtypes that it does not list get that of the nearest listed one."""
    if dtype in table:
        return table[dtype]
    if dtype.kind in "biu":
        return 0
    size = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    # bfloat16 has three bits less than float16, but no test is served by a tolerance of 0.1.
    return table.get(np.dtype({1: "f2", 2: "f2", 4: "f4"}.get(size, "f8")), 0)


def get_tolerance(dat: Any, tol: Any, default_tol: Mapping[Any, float]) -> Any:
    """The tolerance for `dat`.

    Parameters
    ----------
    dat : NDArray, numpy.ndarray or array_like
    tol : None, float, or dict of dtype to float
        What the user said. None, and dtypes that the dict lacks, mean the default.
    default_tol : dict of dtype to float

    Returns
    -------
    float

    Examples
    --------
    >>> get_tolerance(np.zeros(2), None, default_rtols()), get_tolerance(np.zeros(2), 0.5, default_rtols())
    (1e-05, 0.5)
    """
    dtype = effective_dtype(dat)
    if isinstance(tol, Mapping):
        given = {np.dtype(k): v for k, v in tol.items()}
        return given.get(dtype, _default(default_tol, dtype))
    return _default(default_tol, dtype) if tol is None else tol


def get_tols(x: Any, y: Any, rtol: Any, atol: Any) -> tuple[float, float]:
    """The (relative, absolute) tolerance between two arrays: that of the less exact one.

    Parameters
    ----------
    x, y : NDArray, numpy.ndarray or array_like
    rtol, atol : None, float, or dict of dtype to float

    Examples
    --------
    >>> get_tols(np.zeros(2, "float32"), np.zeros(2, "float16"), None, None)
    (0.01, 0.1)
    """
    pairs = ((rtol, _RTOLS), (atol, _ATOLS))
    rtol, atol = (max(get_tolerance(x, t, table), get_tolerance(y, t, table)) for t, table in pairs)
    return rtol, atol


def get_rtol(rtol: Any = None, dtype: Any = np.dtype("f8")) -> Any:
    """`rtol` itself, or the default for `dtype` if it is None.

    >>> get_rtol(), get_rtol(0.1)
    (1e-05, 0.1)
    """
    return _default(_RTOLS, np.dtype(dtype)) if rtol is None else rtol


def get_atol(atol: Any = None, dtype: Any = np.dtype("f8")) -> Any:
    """`atol` itself, or the default for `dtype` if it is None.

    >>> get_atol(dtype="float16"), get_atol(0.5)
    (0.1, 0.5)
    """
    return _default(_ATOLS, np.dtype(dtype)) if atol is None else atol


def get_etol(etol: float | None = None) -> float:
    """`etol`, the share of elements that may differ, or 0 if it is None.

    >>> get_etol(), get_etol(0.1)
    (0, 0.1)
    """
    return 0 if etol is None else etol
