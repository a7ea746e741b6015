"""The namespace of the array API standard beside its reference library, array_api_strict: the same call on both."""

import math
import warnings

import numpy as onp
import pytest

from mxcore import np
from mxcore.ndarray.numpy import array_api as xp

strict = pytest.importorskip("array_api_strict")
WHOLE = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = ["float32", "float64"]
DTYPES = ["bool", *WHOLE, *FLOATS]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, math.inf, -math.inf, math.nan]
_TOLERANCE = {"float32": 3e-6, "float64": 1e-12}
REFUSALS = (TypeError, ValueError, IndexError, OverflowError)


def drawn(dtype, shape, seed=0):
    """Numbers of a dtype, small enough for all functions."""
    rs = onp.random.RandomState(seed)
    if dtype == "bool":
        return onp.asarray(rs.rand(*shape) < 0.5)
    if dtype in FLOATS:
        return onp.asarray(rs.uniform(0.1, 0.9, shape)).astype(dtype)
    return onp.asarray(rs.randint(1, 6, shape)).astype(dtype)


class dtype_(str):
    """The name of a dtype, as each namespace has it."""


def _given(space, x):
    if isinstance(x, onp.ndarray):
        return space.asarray(x, dtype=getattr(space, str(x.dtype)))
    if isinstance(x, dtype_):
        return getattr(space, x)
    if isinstance(x, (list, tuple)):
        return type(x)(_given(space, v) for v in x)
    return x


def _found(x):
    if isinstance(x, np.ndarray):
        return x.asnumpy()
    if hasattr(x, "__array_namespace__"):
        return onp.asarray(x)
    if isinstance(x, (list, tuple)):
        return [_found(v) for v in x]
    return str(x).rpartition(".")[2] if "DType" in type(x).__name__ or isinstance(x, onp.dtype) else x


def call(space, name, *args, **kwargs):
    """What a function of a namespace gives, in arrays of NumPy's; None where it refuses."""
    fn = space
    for part in name.split("."):
        fn = getattr(fn, part)
    args, kwargs = _given(space, args), {k: _given(space, v) for k, v in kwargs.items()}
    try:
        with onp.errstate(all="ignore"), warnings.catch_warnings():
            if space is strict:  # which says what NumPy says of empty slices
                warnings.simplefilter("ignore")
            return _found(fn(*args, **kwargs))
    except REFUSALS:
        return None


def check_same(got, want, coarse=1.0):
    """Equal in shape, dtype and value."""
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), (got, want)
        for g, w in zip(got, want):
            check_same(g, w, coarse)
    elif isinstance(want, onp.ndarray):
        assert isinstance(got, onp.ndarray), (got, want)
        assert got.shape == want.shape and got.dtype == want.dtype, (got, want)
        tol = coarse * _TOLERANCE.get(str(want.dtype), 0)
        onp.testing.assert_allclose(got, want, rtol=tol, atol=tol)
    else:
        assert type(got) is type(want) and got == want, (got, want)


def check_agreement(name, *args, coarse=1.0, **kwargs):
    """Both namespaces give the same, or both refuse."""
    want, got = call(strict, name, *args, **kwargs), call(xp, name, *args, **kwargs)
    try:
        check_same(got, want, coarse)
    except AssertionError as e:
        raise AssertionError(f"{name}{args} {kwargs}: {e}") from None
    return want
