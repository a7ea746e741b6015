"""Means, quantiles, counts of mx.np against NumPy; their gradients, graphs and errors."""

import numpy as onp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import autograd, np
from mxcore.symbol.numpy import _Symbol, symbols
from mxcore.testing.gradcheck import check_grads

from .numbers import DTYPES, check, drawn, wide

KINDS = ["linear", "lower", "higher", "nearest", "midpoint"]


def floating(t):
    return t if t.startswith("float") else "float32"


def of_quantiles(t):
    return "float64" if t == "float64" else "float32"


@pytest.mark.parametrize("dtype", DTYPES)
def test_average(dtype):
    x, w = drawn((2, 3, 4), dtype), onp.arange(1, 25).reshape(2, 3, 4) % 5 + 1
    t = floating(dtype)
    for axis in (None, 0, -1, (0, 2)):
        check(np.average(np.array(x), axis), onp.average(wide(x), axis), t)
        got, total = np.average(np.array(x), axis, np.array(w.astype(t)), returned=True)
        want, sums = onp.average(wide(x), axis, w, returned=True)
        check(got, want, t)
        check(total, sums, t)
    along = w[0, :, 0]
    check(np.average(np.array(x), 1, np.array(along.astype(t))), onp.average(wide(x), 1, along), t)
    check(np.average(np.array(drawn((), dtype))), wide(drawn((), dtype)), t)


def test_average_of_several_dtypes():
    x, w = drawn((2, 3), "int32"), onp.array([1, 2, 4])
    check(np.average(np.array(x), 1, np.array(w.astype("float64"))), onp.average(x, 1, w), "float64")
    check(np.average(np.array(x.astype("float16")), 1, np.array(w)), onp.average(x, 1, w), "float16")
    check(np.average(np.array(x), 1, np.array(w)), onp.average(x, 1, w), "float32")
    assert onp.isnan(np.average(np.array([1.0, 2.0]), weights=np.array([0.0, 0.0])).item())


def test_errors_of_average():
    x = np.array(drawn((2, 3), "float32"))
    with pytest.raises(ValueError, match=r"weights \(2,\) must be as many as a \(2, 3\) is long along axis 1"):
        np.average(x, 1, np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="need the axis of a"):
        np.average(x, weights=np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="must have the shape of a"):
        np.average(x, 1, np.array([[1.0, 2.0]]))
    with pytest.raises(ValueError, match=r"axis=\(\) leaves nothing"):
        np.average(x, ())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_percentile(kind, dtype):
    x = drawn((3, 5, 2), dtype)
    host = wide(x).astype("float64")
    for axis in (None, 0, -2, (0, 1)):
        for q in (0, 12.5, 50, 100):
            want = onp.percentile(host, q, axis, method=kind)
            check(np.percentile(np.array(x), q, axis, interpolation=kind), want, of_quantiles(dtype))
        q = onp.array([[0, 30.0], [75, 99]])
        want = onp.percentile(host, q, axis, method=kind, keepdims=True)
        check(
            np.percentile(np.array(x), np.array(q), axis, interpolation=kind, keepdims=True), want, of_quantiles(dtype)
        )
    check(np.percentile(np.array(drawn((), dtype)), 30, method=kind), wide(drawn((), dtype)), of_quantiles(dtype))


@settings(deadline=None)
@given(st.lists(st.floats(-9, 9), min_size=1, max_size=9), st.floats(0, 100), st.sampled_from(KINDS))
def test_any_percentile(values, q, kind):
    if kind in ("nearest", "lower", "higher") and abs(2 * q * (len(values) - 1) / 100 % 1) in (0, 1) and q % 12.5:
        return  # which place is nearest is a matter of rounding
    x = onp.array(values)
    onp.testing.assert_allclose(
        np.percentile(np.array(x), q, interpolation=kind).item(), onp.percentile(x, q, method=kind), 1e-9, 1e-9
    )


def test_quantile_and_median():
    x = drawn((3, 4), "float64")
    check(np.quantile(np.array(x), 0.3, 1), onp.quantile(x, 0.3, 1), "float64")
    check(np.quantile(np.array(x), [0.3, 1], 0), onp.quantile(x, [0.3, 1], 0), "float64")
    check(np.quantile(np.array(x), np.array([0.25, 0.5])), onp.quantile(x, [0.25, 0.5]), "float64")
    check(np.percentile(np.array(x), [30, 100], 0), onp.percentile(x, [30, 100], 0), "float64")
    check(np.median(np.array(x), 0, keepdims=True), onp.median(x, 0, keepdims=True), "float64")
    check(np.median(np.array(drawn((5,), "int32"))), onp.median(drawn((5,), "int32")), "float32")
    out = np.array(onp.zeros(3))
    assert np.median(np.array(x), 1, out=out) is out and out.asnumpy().tolist() == onp.median(x, 1).tolist()


def test_quantiles_of_what_is_not_finite_or_not_there():
    x = onp.array([[1, onp.nan, 3], [onp.inf, onp.inf, 1], [-onp.inf, 2, onp.inf]])
    check(np.median(np.array(x), 1), onp.array([onp.nan, onp.inf, 2]), "float64")
    assert np.percentile(np.array(onp.zeros((0, 3))), 50, axis=1).shape == (0,)
    with pytest.raises(ValueError, match="no elements to take quantiles of"):
        np.median(np.array(onp.zeros((0, 3))), 0)
    with pytest.raises(ValueError, match="q is 130"):
        np.percentile(np.array([1.0]), 130)
    with pytest.raises(ValueError, match="q holds -1.0; percentages must lie between 0 and 100"):
        np.percentile(np.array([1.0]), np.array([50.0, -1.0]))
    with pytest.raises(ValueError, match="interpolation.*linear"):
        np.percentile(np.array([1.0]), 50, interpolation="cubic")


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_bincount(dtype):
    x = onp.array([0, 3, 3, 1, 0, 3], dtype)
    of = "int32" if dtype == "int32" else "int64"
    check(np.bincount(np.array(x)), onp.bincount(x), of)
    check(np.bincount(np.array(x), minlength=7), onp.bincount(x, minlength=7), of)
    check(np.bincount(np.array(x[:0]), minlength=2), onp.bincount(x[:0], minlength=2), of)
    for t in ("float32", "int32"):
        w = drawn((6,), t)
        check(np.bincount(np.array(x), np.array(w), 5), onp.bincount(x, w, 5), t)
    assert np.bincount(np.array(onp.full(300, 1, "uint8"))).asnumpy().tolist() == [0, 300]


def test_errors_of_bincount():
    with pytest.raises(ValueError, match="data holds -1; counted are numbers from 0 on"):
        np.bincount(np.array(onp.array([1, -1])))
    with pytest.raises(TypeError, match="data is float32; only whole numbers can be counted"):
        np.bincount(np.array([1.0]))
    with pytest.raises(ValueError, match=r"weights \(3,\) must be as many as data \(2,\)"):
        np.bincount(np.array(onp.array([1, 2])), np.array([1.0, 2, 3]))
    with pytest.raises(ValueError, match="must have one axis"):
        np.bincount(np.array(onp.array([[1, 2]])))
    with pytest.raises(ValueError, match="minlength"):
        np.bincount(np.array(onp.array([1, 2])), minlength=-1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_histogram(dtype):
    x = drawn((40,), dtype)
    count, edges = np.histogram(np.array(x), 4, (0, 4))
    check(count, onp.histogram(x, 4, (0, 4))[0], "int64")
    check(edges, onp.arange(5), dtype)
    for bins in ([0, 1.5, 4], onp.array([0, 1.5, 4])):
        given_ = np.array(bins) if isinstance(bins, onp.ndarray) else bins
        got, edges = np.histogram(np.array(x), given_)
        check(got, onp.histogram(x, bins)[0], "int64")
        assert edges.asnumpy().tolist() == [0, 1.5, 4]
    if dtype != "int64":
        count, edges = np.histogram(np.array(x))
        check(count, onp.histogram(x)[0], "int64")
        check(edges, onp.histogram(x)[1], dtype)


def test_errors_of_histogram():
    x = np.array([1.0])
    for option in ({"density": True}, {"weights": x}, {"normed": True}, {"bins": "auto"}):
        with pytest.raises(NotImplementedError, match=f"np.histogram: {next(iter(option))}=.* is not supported"):
            np.histogram(x, **option)
    with pytest.raises(ValueError, match="of a symbol needs the range"):
        symbols.histogram(_Symbol(mx.sym.var("x")._heads), 3)
    assert len(symbols.histogram(_Symbol(mx.sym.var("x")._heads), 3, (0, 1))) == 2


def np_fn(name, *args, **params):
    return lambda *xs: getattr(np, name)(*[x.as_np_ndarray() for x in xs], *args, **params)


_X = onp.random.RandomState(3).permutation(onp.linspace(-2, 2, 24)).reshape(2, 3, 4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("params", [{}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}], ids=str)
def test_gradients_of_percentiles(kind, params):
    check_grads(np_fn("percentile", 37.0, interpolation=kind, **params), [_X], order=(1, 2))
    check_grads(
        lambda x: np.percentile(x.as_np_ndarray(), np.array([10.0, 80.0]), interpolation=kind, **params),
        [_X],
        order=(1, 2),
    )


@pytest.mark.parametrize("axis, weights", [(None, _X + 3), (1, onp.array([1.0, 2, 3])), ((0, 2), _X + 4), (2, None)])
def test_gradients_of_average(axis, weights):
    given_ = [_X] if weights is None else [_X, weights]

    def fn(*xs):
        a, *w = [x.as_np_ndarray() for x in xs]
        got = np.average(a, axis, *w, returned=True)
        return list(got) if w else got[0]

    check_grads(fn, given_, order=(1, 2))


def test_gradient_of_bincount():
    places = np.array(onp.array([0, 3, 3, 1]))
    check_grads(lambda w: np.bincount(places, w.as_np_ndarray(), 6), [onp.array([1.0, 2, 3, 4])], order=(1,))


def test_gradients_of_several_dtypes():
    x, w = np.array(onp.array([1.0, 2, 4], "float32")), np.array(onp.array([1.0, 2, 1]))
    for a in (x, w):
        a.attach_grad()
    with autograd.record():
        y = np.average(x, weights=w)
    y.backward()
    assert y.dtype == onp.float64 and x.grad.dtype == onp.float32 and w.grad.dtype == onp.float64
    assert x.grad.asnumpy().tolist() == [0.25, 0.5, 0.25]


@pytest.mark.parametrize(
    "name, args, params",
    [("percentile", (30.0,), {"axis": 1}), ("median", (), {}), ("average", (), {"axis": 0}), ("quantile", (0.5,), {})],
)
def test_graphs_give_the_same(name, args, params):
    x = _X.astype("float32")
    y = getattr(symbols, name)(_Symbol(mx.sym.var("x")._heads), *args, **params)
    with mx.util.np_shape():
        exe = y.bind(mx.cpu(), {"x": np.array(x).as_nd_ndarray()}, {"x": mx.nd.zeros(x.shape)})
        (out,) = exe.forward(is_train=True)
        a = np.array(x)
        a.attach_grad()
        with autograd.record():
            want = getattr(np, name)(a, *args, **params)
        ones = np.array(onp.ones(want.shape, "float32"))
        exe.backward(ones.as_nd_ndarray())
        want.backward(ones)
        onp.testing.assert_allclose(out.asnumpy(), want.asnumpy(), rtol=1e-6)
        onp.testing.assert_allclose(exe.grad_dict["x"].asnumpy(), a.grad.asnumpy(), rtol=1e-5)


@pytest.mark.parametrize(
    "values, q, expected",
    [
        ([1.5, onp.inf], 25, onp.inf),
        ([1.5, onp.inf], 75, onp.inf),
        ([-onp.inf, 1.5], 25, -onp.inf),
        ([-onp.inf, 1.5], 75, -onp.inf),
        ([1, 2, onp.inf, onp.inf], 25, 1.75),
        ([1, 2, onp.inf, onp.inf], 50, onp.inf),
        ([onp.inf, onp.inf], 50, onp.inf),
        ([-onp.inf, onp.inf], 0, -onp.inf),
        ([-onp.inf, onp.inf], 50, onp.nan),
        ([-3e38, 3e38], 50, 0),
    ],
)
def test_quantiles_of_what_is_not_finite(values, q, expected):
    found = np.percentile(np.array(values), q).asnumpy()
    onp.testing.assert_array_equal(found, onp.float32(expected))
