"""Arrays of several dtypes, and comparisons with NumPy."""

import numpy as onp

from mxcore import np

DTYPES = "float32 float64 float16 int32 int64 uint8 bool".split()
FLOATS = DTYPES[:3]
_TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}


def drawn(shape, dtype, seed=0):
    """Numbers of a dtype, as NumPy's array."""
    rs = onp.random.RandomState(seed)
    if dtype == "bool":
        return onp.asarray(rs.rand(*shape) < 0.5)
    if dtype.startswith("float"):
        return onp.asarray(rs.uniform(-2, 2, shape)).astype(dtype)
    return onp.asarray(rs.randint(0, 5, shape)).astype(dtype)


def wide(x):
    """The same numbers, exact enough to compare with."""
    return x.astype("float64") if x.dtype.kind == "f" else x


def check(got, want, dtype, coarse=None):
    """Shape, dtype and values are those of NumPy; `coarse` is what it was computed in, if not in `dtype`."""
    want = onp.asarray(want)
    assert type(got) is np.ndarray and got.shape == want.shape and got.dtype == onp.dtype(dtype), (got, want, dtype)
    tol = _TOLERANCE.get(str(coarse or dtype), 0)
    with onp.errstate(all="ignore"):
        onp.testing.assert_allclose(got.asnumpy(), want.astype(dtype), rtol=tol, atol=tol)
