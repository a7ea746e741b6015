"""The constants and dtypes of ``mx.np``: NumPy's."""

from __future__ import annotations

import numpy as np

__all__ = [
    "Inf",
    "Infinity",
    "NAN",
    "NINF",
    "NZERO",
    "NaN",
    "PINF",
    "PZERO",
    "bool",
    "bool_",
    "dtype",
    "e",
    "euler_gamma",
    "finfo",
    "float16",
    "float32",
    "float64",
    "iinfo",
    "inf",
    "infty",
    "int16",
    "int32",
    "int64",
    "int8",
    "nan",
    "newaxis",
    "pi",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]

pi, e, euler_gamma = np.pi, np.e, np.euler_gamma
inf = Inf = Infinity = infty = PINF = np.inf
NINF = -np.inf
nan = NaN = NAN = np.nan
PZERO, NZERO = 0.0, -0.0
#: Inserts a dimension of length 1: ``x[:, np.newaxis]``.
newaxis = None

float16, float32, float64 = np.float16, np.float32, np.float64
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
bool = bool  # MXNet's is Python's
bool_, dtype, finfo, iinfo = np.bool_, np.dtype, np.finfo, np.iinfo
