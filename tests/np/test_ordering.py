"""Order, places and sets of mx.np against NumPy."""

import numpy as onp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import np
from mxcore.symbol.numpy import _Symbol, symbols
from mxcore.testing.gradcheck import check_grads

from .numbers import DTYPES, check, drawn

SHAPES = [((3, 4), None), ((3, 4), 0), ((2, 3, 2), -2), ((20,), 0), ((0, 3), 1), ((), None)]


@pytest.mark.both_ways
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort(dtype):
    for shape, axis in SHAPES:
        x = drawn(shape, dtype)
        check(np.sort(np.array(x), axis), onp.sort(x, axis), dtype)
        check(np.argsort(np.array(x), axis), onp.argsort(x, axis, kind="stable"), "int64")
    x = np.array(drawn((4, 3), dtype))
    check(np.sort(x, kind="heapsort"), onp.sort(x.asnumpy()), dtype)


def test_errors_of_sort():
    x = np.array([[2.0, 1.0]])
    for fn in (np.sort, np.argsort):
        with pytest.raises(NotImplementedError, match="order='a' is not supported"):
            fn(x, order="a")
        with pytest.raises(ValueError, match="axis 2 is out of range"):
            fn(x, 2)
        with pytest.raises(ValueError, match="axis -1 is out of range for 0 dimensions"):
            fn(np.array(1.0))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_places_of_extremes(name, dtype):
    for shape, axis in (*SHAPES[:4], ((), None), ((), 0), ((0, 3), 0)):
        if 0 in shape:
            with pytest.raises(ValueError, match="no elements"):
                getattr(np, name)(np.array(drawn(shape, dtype)), axis)
            assert getattr(np, name)(np.array(drawn((2, 0), dtype)), 0).shape == (0,)
            continue
        x = drawn(shape, dtype)
        for keepdims in (False, True):
            want = getattr(onp, name)(x, axis, keepdims=keepdims)
            check(getattr(np, name)(np.array(x), axis, keepdims=keepdims), want, "int64")
    nan = np.array([1.0, float("nan"), 3.0, float("nan")])
    assert getattr(np, name)(nan).item() == 1
    out = np.array(onp.zeros(3, "int64"))
    assert getattr(np, name)(np.array(drawn((3, 2), dtype)), 1, out) is out


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(dtype):
    x = drawn((4, 5), dtype)
    if dtype.startswith("float"):
        x = onp.round(x)
    check(np.unique(np.array(x)), onp.unique(x), dtype)
    got = np.unique(np.array(x), True, True, True)
    want = onp.unique(x, True, True, True)
    check(got[0], want[0], dtype)
    for a, b in zip(got[1:], want[1:]):
        check(a, onp.ravel(b), "int64")
    assert (got[0].asnumpy()[got[2].asnumpy()].reshape(x.shape) == x).all()
    check(np.unique(np.array(x[:0])), x[:0].ravel(), dtype)
    check(np.unique(np.array(x[0, 0])), x[0, :1], dtype)


@settings(deadline=None)
@given(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2), st.integers(0, 99))
def test_unique_along_an_axis(n, m, axis, seed):
    x = onp.random.RandomState(seed).randint(0, 2, [m, m, m][:axis] + [n] + [m, m, m][axis + 1 :])
    got = np.unique(np.array(x), True, True, True, axis=axis)
    if not x.size:
        return  # NumPy refuses some
    want = onp.unique(x, True, True, True, axis=axis)
    for a, b in zip(got, want):
        assert a.asnumpy().tolist() == (b if b is want[0] else b.ravel()).tolist()


def test_unique_of_nan():
    x = np.array([2.0, float("nan"), 2.0, float("nan")])
    assert repr(np.unique(x, return_counts=True)[1].asnumpy().tolist()) == "[2, 2]"
    with pytest.raises(ValueError, match="axis 1 is out of range"):
        np.unique(x, axis=1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nonzero(dtype):
    for shape in ((4, 5), (7,), (2, 3, 2), (0, 3)):
        x = drawn(shape, dtype)
        x[..., :1] = 0
        got, want = np.nonzero(np.array(x)), onp.nonzero(x)
        assert isinstance(got, tuple) and len(got) == len(want)
        for a, b in zip(got, want):
            check(a, b, "int64")
    assert [i.asnumpy().tolist() for i in np.nonzero(np.array(3.0))] == [[0]]
    with pytest.raises(TypeError, match=r"npx\.nonzero takes a symbol"):
        symbols.nonzero(_Symbol(mx.sym.var("x")._heads))


def test_gradients():
    x = onp.random.RandomState(0).permutation(12.0 * onp.arange(12)).reshape(3, 4) / 12
    for axis in (None, 0, -1):
        check_grads(lambda a, axis=axis: np.sort(a.as_np_ndarray(), axis), [x], order=(1, 2))


def test_graphs():
    x = drawn((3, 4), "float32")
    s = _Symbol(mx.sym.var("x")._heads)
    given_ = {"x": np.array(x).as_nd_ndarray()}
    with mx.util.np_shape():
        for name, params in (
            ("sort", {"axis": None}),
            ("argsort", {}),
            ("argmax", {}),
            ("argmin", {"axis": 1}),
            ("unique", {}),
        ):
            (out,) = getattr(symbols, name)(s, **params).bind(mx.cpu(), given_).forward()
            want = getattr(np, name)(np.array(x), **params)
            assert out.dtype == want.dtype and out.asnumpy().tolist() == want.asnumpy().tolist()
