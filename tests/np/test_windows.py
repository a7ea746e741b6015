"""Windows and polynomials of mx.np against NumPy."""

import numpy as onp
import pytest

import mxcore as mx
from mxcore import np
from mxcore.symbol.numpy import _Symbol, symbols
from mxcore.testing.gradcheck import check_grads

from .numbers import DTYPES, check, drawn, wide


@pytest.mark.parametrize("name", ["blackman", "hamming", "hanning"])
@pytest.mark.parametrize("n", [-1, 0, 1, 2, 5, 12])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_windows(name, n, dtype):
    got = getattr(np, name)(n, dtype=dtype, ctx=mx.cpu())
    check(got, getattr(onp, name)(n), dtype)
    if n == 12:
        assert getattr(np, name)(n).dtype == onp.float32


def test_windows_of_symbols():
    with mx.util.np_shape():
        (out,) = symbols.hanning(5).bind(mx.cpu(), {}).forward()
    onp.testing.assert_allclose(out.asnumpy(), onp.hanning(5), atol=1e-7)


def test_errors_of_windows():
    with pytest.raises(TypeError, match="'M' must be int"):
        np.hanning(2.5)
    with pytest.raises(TypeError, match="unknown dtype 'x'"):
        np.hanning(5, dtype="x")


@pytest.mark.parametrize("dtype", DTYPES[:-2])
def test_polyval(dtype):
    for n in (0, 1, 4):
        for shape in ((), (5,), (2, 3), (0, 2)):
            p, x = drawn((n,), dtype, 1), drawn(shape, dtype)
            want = onp.polyval(wide(p), wide(x)) if n else onp.zeros(shape)
            got = np.polyval(np.array(p), np.array(x))
            assert got.shape == shape and str(onp.dtype(got.dtype)) == dtype
            tol = 2e-2 if dtype == "float16" else 1e-5
            onp.testing.assert_allclose(got.asnumpy(), want, rtol=tol, atol=tol)


def test_polyval_of_several_dtypes():
    p, x = onp.array([1, 2, 3]), onp.array([0.5, 2.0], "float32")
    check(np.polyval(np.array(p), np.array(x)), onp.polyval(p, x), "float32")
    with pytest.raises(ValueError, match=r"p \(1, 2\) must have one axis"):
        np.polyval(np.array([[1.0, 2.0]]), np.array(x))


def test_gradients():
    rs = onp.random.RandomState(0)
    for n, shape in ((4, (2, 3)), (1, (3,)), (3, ())):
        check_grads(
            lambda p, x: np.polyval(p.as_np_ndarray(), x.as_np_ndarray()),
            [rs.uniform(-2, 2, n), rs.uniform(-2, 2, shape)],
            order=(1, 2),
        )


def test_graphs():
    p, x = onp.array([1.0, 2, 3], "float32"), onp.array([[0.5], [2.0]], "float32")
    y = symbols.polyval(*[_Symbol(mx.sym.var(n)._heads) for n in "px"])
    (out,) = y.bind(mx.cpu(), {"p": mx.nd.array(p), "x": mx.nd.array(x)}).forward()
    onp.testing.assert_allclose(out.asnumpy(), onp.polyval(p, x))
