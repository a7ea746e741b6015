"""Reductions against NumPy in float64, and their corners: zeros, NaNs, ties, halves, empty arrays, bad axes."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd
from mxcore.base import MXNetError
from mxcore.testing.gradcheck import check_grads

RS = np.random.RandomState(1)
DATA = RS.uniform(-2, 2, (2, 3, 4))
AXES = [None, (), 0, -1, (0, 2), (-1, 0), (0, 1, 2)]


def f64(x):
    return nd.array(x, dtype="float64")


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "nansum", "nanprod", "max", "min"])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_as_numpy(name, axis, keepdims):
    want = getattr(np, name)(DATA, axis=None if axis == () else axis, keepdims=keepdims)
    got = getattr(nd, name)(f64(DATA), axis=axis, keepdims=keepdims)
    assert got.shape == (want.shape or (1,)) and got.dtype == np.float64
    np.testing.assert_allclose(got.asnumpy(), want.reshape(got.shape), rtol=1e-12)


def test_exclude_reduces_the_other_axes():
    got = nd.sum(f64(DATA), axis=1, exclude=True)
    np.testing.assert_allclose(got.asnumpy(), DATA.sum((0, 2)))
    got = nd.max(f64(DATA), axis=(0, -1), exclude=True, keepdims=True)
    np.testing.assert_allclose(got.asnumpy(), DATA.max(1, keepdims=True))
    np.testing.assert_allclose(nd.sum(f64(DATA), axis=(0, 1, 2), exclude=True).asnumpy(), DATA)


@pytest.mark.parametrize(
    "axis, words", [(3, "axis 3 is out of range"), (-4, "axis -4"), ((0, 0), "twice"), ((1, -2), "twice")]
)
def test_bad_axes(axis, words):
    with pytest.raises(ValueError, match=f"operator sum.*{words}.*data"):
        nd.sum(f64(DATA), axis=axis)


@pytest.mark.parametrize("dtype, want", [("int32", 22), ("uint8", 22), ("int64", 22), ("float16", 22)])
def test_dtypes_stay(dtype, want):
    x = nd.array([[1, 2, 3], [4, 5, 7]], dtype=dtype)
    assert x.sum().dtype == np.dtype(dtype) and x.sum().asscalar() == want
    assert nd.mean(x, axis=1).asnumpy().tolist() == [2, 5] if dtype != "float16" else True


def test_uint8_wraps_and_half_is_summed_in_float32():
    assert nd.sum(nd.array([200, 100], dtype="uint8")).asscalar() == 44
    ones = nd.ones((4096, 2), dtype="float16") * 0.1
    np.testing.assert_allclose(nd.sum(ones, axis=0).asnumpy(), [409.5, 409.5], rtol=1e-3)
    assert nd.mean(nd.array([60000, 60000], dtype="float16")).asscalar() == 60000


def test_empty_arrays():
    x = nd.array(np.zeros((0, 3)))
    assert nd.sum(x, axis=0).asnumpy().tolist() == [0, 0, 0]
    assert nd.prod(x).asnumpy().tolist() == [1]
    assert nd.sum(x, axis=1).shape == (0,)
    with pytest.raises(ValueError, match="operator max"):
        nd.max(x, axis=0)


def test_nan():
    x = f64([[np.nan, 1, 2], [np.nan, np.nan, 3]])
    assert np.isnan(nd.max(x, axis=1).asnumpy()).all() and np.isnan(nd.sum(x).asscalar())
    assert nd.nansum(x, axis=1).asnumpy().tolist() == [3, 3] and nd.nanprod(x).asscalar() == 6
    x.attach_grad()
    with autograd.record():
        y = nd.nanprod(x)
    y.backward()
    assert x.grad.asnumpy().tolist() == [[0, 6, 3], [0, 0, 2]]


@pytest.mark.parametrize("name", ["max", "min"])
def test_all_ties_get_the_gradient(name):
    x = f64([[3, 0, 3], [0, 4, 0]])
    x.attach_grad()
    with autograd.record():
        y = getattr(nd, name)(x, axis=1)
    y.backward(f64([10, 100]))
    want = {"max": [[10, 0, 10], [0, 100, 0]], "min": [[0, 10, 0], [100, 0, 100]]}[name]
    assert x.grad.asnumpy().tolist() == want


@pytest.mark.parametrize("values", [[[2.0, 0.0, 3.0]], [[0.0, 4.0, 0.0]], [[0.0, 0.0, 0.0]], [[2.0, -1.5, 3.0]]])
def test_gradients_of_a_product_with_zeros(values):
    check_grads(lambda x: nd.prod(x, axis=1), [np.array(values)], order=(1, 2))


def test_norm():
    x = f64(DATA)
    np.testing.assert_allclose(nd.norm(x).asscalar(), np.linalg.norm(DATA))
    np.testing.assert_allclose(nd.norm(x, ord=1, axis=(0, 2)).asnumpy(), np.abs(DATA).sum((0, 2)))
    assert nd.norm(x, axis=1, keepdims=True).shape == (2, 1, 4)
    assert nd.norm(nd.array([3, 4], dtype="int32")).asnumpy().tolist() == [5]
    assert nd.norm(nd.ones((4,)), out_dtype="float64").dtype == np.float64
    big = nd.array([30000, 40000], dtype="float16")
    assert nd.norm(big).asscalar() == np.float16(50000)  # though the squares overflow
    with pytest.raises(ValueError, match="'ord' must be int between 1 and 2, got 3"):
        nd.norm(x, ord=3)


@pytest.mark.parametrize(
    "dtype, scale",
    [
        ("float32", 1e30),
        ("float32", 1e-25),
        ("float32", 2.0**-145),
        ("float64", 1e200),
        ("float64", 1e-320),
        ("float16", 2.0**-23),
    ],
)
def test_norm_where_squares_are_out_of_range(dtype, scale):
    x = nd.array(np.array([[3, 4], [0, 0], [-8, 6], [0, 1]]) * scale, dtype=dtype)
    x.attach_grad()
    with autograd.record():
        rows, row, kept = nd.norm(x, axis=1), nd.norm(x[0]), nd.norm(x, axis=0, keepdims=True)
        (rows.sum() + row + 0 * kept.sum()).backward()
    tol = dict(rtol=2e-3 if dtype == "float16" else 1e-6)
    np.testing.assert_allclose(rows.asnumpy(), (np.array([5, 0, 10, 1]) * scale).astype(dtype), **tol)
    np.testing.assert_allclose(row.asnumpy(), np.array([5 * scale], dtype), **tol)
    np.testing.assert_allclose(
        kept.asnumpy(),
        (np.array([[73.0, 53.0]]) ** 0.5 * scale).astype(dtype),
        rtol=0.07 if scale in (1e-320, 2.0**-145) else tol["rtol"],
    )
    np.testing.assert_allclose(x.grad.asnumpy(), [[1.2, 1.6], [0, 0], [-0.8, 0.6], [0, 1]], **tol)


def test_norm_among_ordinary_rows_and_of_infinities():
    inf, nan = np.inf, np.nan
    x = nd.array([[3e30, 4e30], [3, 4], [inf, 1], [-inf, inf], [nan, inf], [3e38, 3e38]])
    x.attach_grad()
    with autograd.record():
        y = nd.norm(x, axis=1)
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), [5e30, 5, inf, inf, nan, inf], rtol=1e-6)
    np.testing.assert_allclose(
        x.grad.asnumpy(), [[0.6, 0.8], [0.6, 0.8], [nan, 0], [nan, nan], [nan, nan], [0, 0]], rtol=1e-6
    )


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_second_gradient_of_norm_in_full_range(scale):
    x = f64([3 * scale, 4 * scale])
    x.attach_grad()
    with autograd.record():
        (g,) = autograd.grad(nd.norm(x), x, create_graph=True)
        y = (g * f64([1.0, 2.0])).sum()
    y.backward()  # w'(I - uu') / |x|, with u = (0.6, 0.8), w = (1, 2)
    np.testing.assert_allclose(x.grad.asnumpy() * scale, (np.array([1, 2]) - 2.2 * np.array([0.6, 0.8])) / 5, rtol=1e-9)


@pytest.mark.parametrize("more", [{}, {"axis": 1}, {"axis": (0, -1), "keepdims": True}], ids=str)
def test_first_and_second_gradients_of_norm(more):
    check_grads(lambda x: nd.norm(x, **more), [DATA], order=(1, 2))


def test_norm_of_zeros_has_a_zero_gradient():
    x = f64([[0, 0], [3, 4]])
    x.attach_grad()
    with autograd.record():
        y = nd.norm(x, axis=1)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [[0, 0], [0.6, 0.8]])


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_arg(name):
    x = f64([[3, 0, 3], [4, 0, 4]])
    fn, plain = getattr(nd, name), getattr(np, name)
    assert fn(x, axis=1).asnumpy().tolist() == plain(x.asnumpy(), 1).tolist()  # the first of equal ones
    assert fn(x).shape == (1,) and fn(x).asscalar() == plain(x.asnumpy())
    assert fn(x, keepdims=True).shape == (1, 1) and fn(x, axis=-2, keepdims=True).shape == (1, 3)
    assert fn(x.astype("int32"), axis=0).dtype == np.int32
    assert fn(f64([1, 2, 3]), axis=0).shape == (1,)
    with pytest.raises(ValueError, match="axis 2"):
        fn(x, axis=2)


def test_argmax_channel():
    assert nd.argmax_channel(nd.array([[1, 3], [2, 0]])).asnumpy().tolist() == [1, 0]
    assert nd.argmax_channel(nd.ones((2, 3, 4))).shape == (2, 4)


def test_moments():
    mean, var = nd.moments(f64(DATA), axes=(0, 2), keepdims=True)
    np.testing.assert_allclose(mean.asnumpy(), DATA.mean((0, 2), keepdims=True))
    np.testing.assert_allclose(var.asnumpy(), DATA.var((0, 2), keepdims=True))
    check_grads(lambda x: nd.moments(x, axes=(1,)), [DATA], order=(1, 2))
    with pytest.raises(ValueError, match="at least one axis"):
        nd.moments(f64(DATA))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_cumsum(axis):
    np.testing.assert_allclose(nd.cumsum(f64(DATA), axis=axis).asnumpy(), np.cumsum(DATA, axis))
    check_grads(lambda x: nd.cumsum(x, axis=axis), [DATA])


def test_cumsum_dtype():
    got = nd.cumsum(nd.array([1.5, 1.5, 1.5]), dtype="int32")
    assert got.dtype == np.int32 and got.asnumpy().tolist() == [1, 2, 3]  # cut off first


def test_no_grad_for_an_index():
    x = f64(DATA)
    x.attach_grad()
    x.grad[:] = 7
    with autograd.record():
        y = x.sum() + nd.argmax(x)
    y.backward()
    assert (x.grad.asnumpy() == 1).all()


def test_unknown_parameter():
    with pytest.raises(MXNetError, match="sum has no parameter 'axes', did you mean 'axis'"):
        nd.sum(f64(DATA), axes=1)


def test_reductions_of_sparse_arrays():
    dense = np.array([[0, 2.0], [0, 0], [3, 0]])
    for stype in ("csr", "row_sparse"):
        x = nd.array(dense).tostype(stype)
        assert mx.nd.sum(x, axis=1).asnumpy().tolist() == [2, 0, 3]
    assert nd._internal._square_sum(x, axis=1).asnumpy().tolist() == [4, 0, 9]
