"""Linear algebra of the array API standard, against its reference library and the meaning of the factors."""

import itertools
import math

import numpy as onp
import pytest

from .standard import DTYPES, FLOATS, call, check_agreement, drawn, strict, xp

STACK = drawn("float64", (2, 3, 3)) + 2 * onp.eye(3)
WELL = STACK @ STACK.swapaxes(-1, -2)
WIDE, TALL = drawn("float64", (2, 3, 5)), drawn("float64", (2, 5, 3))
BAD = [drawn("float64", (3,)), drawn("float64", (2, 3)), onp.ones((3, 3), "int64")]


@pytest.fixture(autouse=True)
def numpys_shapes(numpy_mode):
    """Indices give arrays without dimensions."""


def as_array(host):
    return xp.asarray(host)


def near(got, want, tol=1e-9):
    onp.testing.assert_allclose(got.asnumpy(), want, rtol=tol, atol=tol)


@pytest.mark.parametrize("name", ["det", "inv", "eigvalsh", "svdvals", "slogdet", "cholesky"])
def test_of_square_matrices(name):
    for dtype in FLOATS:
        for x in (WELL, WELL[0], WELL[:0], WELL[:, :1, :1]):
            check_agreement(f"linalg.{name}", x.astype(dtype), coarse=300)
    for x in BAD if name != "svdvals" else BAD[::2]:
        assert call(xp, f"linalg.{name}", x) is None


def test_upper_factors():
    check_agreement("linalg.cholesky", WELL, upper=True, coarse=10)
    assert call(xp, "linalg.cholesky", -WELL) is None


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (2, 4, 3), (0, 3, 2), (3, 1)])
def test_factors(shape):
    x = drawn("float64", shape, 4)
    m, n = shape[-2:]
    k = min(m, n)
    a = as_array(x)
    for full in (True, False):
        u, s, v = xp.linalg.svd(a, full_matrices=full)
        assert u.shape[-2:] == (m, m if full else k) and v.shape[-2:] == (n if full else k, n) and s.shape[-1] == k
        near((u[..., :k] * s[..., None, :]) @ v[..., :k, :], x)
        near(u.mT @ u, onp.broadcast_to(onp.eye(u.shape[-1]), (*shape[:-2], *u.shape[-1:] * 2)))
        near(v @ v.mT, onp.broadcast_to(onp.eye(v.shape[-2]), (*shape[:-2], *v.shape[-2:-1] * 2)))
    for mode in ("reduced", "complete"):
        q, r = xp.linalg.qr(a, mode=mode)
        wide = m if mode == "complete" else k
        assert q.shape[-2:] == (m, wide) and r.shape[-2:] == (wide, n)
        near(q @ r, x)
        near(q.mT @ q, onp.broadcast_to(onp.eye(wide), (*shape[:-2], wide, wide)))
        near(r, onp.triu(r.asnumpy()))
    found = xp.linalg.qr(a)
    assert found.Q is found[0] and xp.linalg.svd(a)._fields == ("U", "S", "Vh")
    with pytest.raises(ValueError, match="'half'"):
        xp.linalg.qr(a, mode="half")


def test_eigenvectors():
    found = xp.linalg.eigh(as_array(WELL))
    near(found.eigenvalues, onp.linalg.eigvalsh(WELL))
    near(xp.matmul(as_array(WELL), found.eigenvectors), (found.eigenvectors * found.eigenvalues[:, None, :]).asnumpy())
    assert xp.linalg.slogdet(as_array(WELL))._fields == ("sign", "logabsdet")


def test_equations():
    right = [drawn("float64", s) for s in ((3,), (3, 2), (2, 3, 2), (4, 1, 3, 1))]
    for a, b in itertools.product((STACK, STACK[0]), right):
        check_agreement("linalg.solve", a, b, coarse=100)
    check_agreement("linalg.solve", STACK[0], STACK[0].astype("float32"), coarse=1e5)
    assert call(xp, "linalg.solve", onp.zeros((2, 2)), onp.ones(2)) is None
    assert call(xp, "linalg.solve", WIDE, WIDE) is None


@pytest.mark.parametrize("ord_", ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf, None])
def test_norms_of_matrices(ord_):
    for x, keepdims in itertools.product((WIDE, WIDE[0]), (False, True)):
        check_agreement("linalg.matrix_norm", x, ord=ord_, keepdims=keepdims, coarse=10)
    assert call(xp, "linalg.matrix_norm", drawn("float64", (3,))) is None


@pytest.mark.parametrize("ord_", [2, 1, 0, 3, 2.5, -1, math.inf, -math.inf])
def test_norms_of_vectors(ord_):
    for axis, keepdims in itertools.product((None, 0, -1, (0, 1), (2, 0)), (False, True)):
        check_agreement("linalg.vector_norm", WIDE, axis=axis, keepdims=keepdims, ord=ord_, coarse=10)
    check_agreement("linalg.vector_norm", drawn("float32", ()), ord=ord_)
    assert call(xp, "linalg.vector_norm", onp.ones(2, "int64")) is None


def test_ranks_and_pseudo_inverses():
    low = WIDE.copy()
    low[:, 2] = low[:, 0]
    for x, rtol in itertools.product((WIDE, low, onp.zeros((2, 3)), drawn("float32", (3, 2))), (None, 0.3)):
        check_agreement("linalg.matrix_rank", x, rtol=rtol)
        check_agreement("linalg.pinv", x, rtol=rtol, coarse=1000)
    parts = onp.asarray([0.9, 1e-9])
    check_agreement("linalg.matrix_rank", low, rtol=parts)
    check_agreement("linalg.pinv", low, rtol=parts, coarse=1000)
    assert call(xp, "linalg.matrix_rank", onp.ones(3)) is None


def test_powers():
    for n in (0, 1, 2, 5, -1, -3):
        check_agreement("linalg.matrix_power", STACK, n, coarse=1000)
    assert call(xp, "linalg.matrix_power", STACK, 0.5) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype):
    for other in DTYPES:
        for name in ("matmul", "tensordot", "vecdot", "linalg.outer", "linalg.cross"):
            kwargs = {"axes": 1} if name == "tensordot" else {}
            a, b = drawn(dtype, (3,)), drawn(other, (3,), 1)
            if call(strict, "result_type", a, b) is None:  # the reference library mixes some of these
                assert call(xp, name, a, b, **kwargs) is None
            else:
                check_agreement(name, a, b, **kwargs, coarse=4)
    x, y = drawn(dtype, (2, 3, 4)), drawn(dtype, (4, 3), 2)
    for axes in (0, 1, ((2,), (0,)), ((1, 2), (1, 0)), ((-1,), (0,))):
        check_agreement("tensordot", x, y, axes=axes, coarse=4)
    for a, b in ((x, y), (x, y[:, 0]), (y[:, 0], y), (x[:0], y), (x[..., :0], y[:0])):
        check_agreement("matmul", a, b, coarse=4)
    check_agreement("matmul", drawn(dtype, ()), y)
    check_agreement("matmul", x, x)
    for axis in (-1, -2, -3, -4):
        check_agreement("vecdot", x, x[:1], axis=axis, coarse=4)
    check_agreement("vecdot", x, y[0])
    check_agreement("linalg.diagonal", x, offset=1)
    for offset in (0, 1, -1, 9):
        check_agreement("linalg.trace", x, offset=offset, coarse=4)
    check_agreement("linalg.trace", x, dtype=None)


def test_vector_products():
    for axis in (-1, -2):
        check_agreement("linalg.cross", drawn("float64", (3, 3)), drawn("float64", (3, 3), 1), axis=axis)
    check_agreement("linalg.cross", drawn("int32", (2, 3)), drawn("int32", (3,), 1))
    for bad in ((2,), (3, 4)):
        assert call(xp, "linalg.cross", onp.ones(bad), onp.ones(bad)) is None
    assert call(xp, "linalg.cross", onp.ones(3), onp.ones(3), axis=0) is None
    assert call(xp, "linalg.outer", WIDE, WIDE) is None


def test_products_are_shown_twice():
    assert strict.linalg.matmul is not strict.matmul
    for name in ("matmul", "tensordot", "vecdot", "matrix_transpose"):
        assert getattr(xp.linalg, name).__wrapped__ is getattr(xp, name).__wrapped__
