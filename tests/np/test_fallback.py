"""What NumPy computes on copies, and NumPy's own functions over arrays of ``mx.np``."""

import logging

import numpy as onp
import pytest

import mxcore as mx
from mxcore import autograd, np
from mxcore.np_functions import fallback

pytestmark = pytest.mark.usefixtures("numpy_mode")


@pytest.fixture
def x():
    return np.array([1.0, 3.0, 2.0])


#: name -> arguments over an array x, what NumPy gives for a NumPy array in its place.
CALLS = {
    "allclose": lambda f, x: f(x, x),
    "corrcoef": lambda f, x: f(x, x),
    "interp": lambda f, x: f(x, xp=[0.0, 4.0], fp=[1.0, 2.0]),
    "lexsort": lambda f, x: f((x, x)),
    "nanmax": lambda f, x: f(x),
    "nanmedian": lambda f, x: f(x),
    "divmod": lambda f, x: f(x, 2.0),
    "frexp": lambda f, x: f(x),
    "take_along_axis": lambda f, x: f(
        x, f.__self__.array([0, 2], dtype="int64") if hasattr(f, "__self__") else onp.array([0, 2]), 0
    ),
    "select": lambda f, x: f([x > 1], [x * 2], 0.0),
    "piecewise": lambda f, x: f(x, [x > 1], [lambda v: v * 3, 0.0]),
    "union1d": lambda f, x: f(x, x * 2),
    "polyfit": lambda f, x: f(x, x * 2, 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers_are_numpys(name, x):
    got, wanted = CALLS[name](getattr(np, name), x), CALLS[name](getattr(onp, name), x.asnumpy())
    for g, w in zip(*[v if isinstance(v, tuple) else (v,) for v in (got, wanted)]):
        if isinstance(w, onp.ndarray):
            assert type(g) is np.ndarray and g.dtype == w.dtype
            g = g.asnumpy()
        onp.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["nancumsum", "nancumprod", "nanprod"])
def test_what_grows_in_half_precision_is_rounded_once(name, dtype):
    factors = 1 + onp.random.RandomState(0).randn(600, 2) / (8 if dtype == "bfloat16" else 50)
    x = np.array(factors if "prod" in name else onp.ones((5000, 2))).astype(dtype)
    wanted = getattr(onp, name)(x.astype("float64").asnumpy(), axis=0)
    found = getattr(np, name)(x, axis=0)
    assert found.dtype == x.dtype
    rounding = 2.0**-8 if dtype == "bfloat16" else 2.0**-11
    onp.testing.assert_allclose(found.astype("float64").asnumpy(), wanted, rtol=1.01 * rounding, atol=2.0**-24)
    assert str(getattr(np, name)(x, 0, "float64").dtype) == "float64"


def test_every_name_of_the_list_is_there():
    for name in fallback.__all__:
        fn = getattr(np, name)
        assert callable(fn) and fn.__doc__


def test_old_arguments_and_names(x):
    assert np.nanpercentile(x, 40, interpolation="lower") == 1.0
    onp.testing.assert_array_equal(np.corrcoef(x, x, bias=True).asnumpy(), onp.ones((2, 2)))
    assert np.in1d(x, [3.0]).asnumpy().tolist() == [False, True, False]
    assert np.trapz(x) == 4.5
    onp.testing.assert_array_equal(np.msort(x).asnumpy(), [1, 2, 3])


def test_functions_of_finance_say_where_they_are(x):
    try:
        import numpy_financial  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match="numpy-financial"):
            np.npv(0.1, [1.0])
    else:
        assert np.npv(0.0, [1.0, 2.0]) == 3.0


def test_the_result_is_where_the_argument_is():
    x = np.array([1.0, 2.0], ctx=mx.cpu(1))
    assert np.interp(x, x, x).context == mx.cpu(1)


def test_out(x):
    out = np.zeros((3,))
    assert np.nancumsum(x, out=out) is out and out.asnumpy().tolist() == [1, 4, 6]


def test_it_is_said_once(x, caplog):
    fallback._told.discard("nanargmax")
    with caplog.at_level(logging.WARNING, "mxcore.numpy"):
        np.nanargmax(x)
        np.nanargmax(x)
    assert [r.getMessage() for r in caplog.records] == [
        "np.nanargmax is no operator: NumPy computes it on a copy in the host's memory"
    ]


def test_gradients_are_refused(x):
    x.attach_grad()
    with autograd.record():
        with pytest.raises(RuntimeError, match="no gradient"):
            np.interp(x, x, x)
        with autograd.pause():
            np.interp(x, x, x)
        np.interp(x.detach(), x.detach(), x.detach())


@pytest.mark.parametrize("name", ["mean", "sum", "exp", "concatenate", "stack", "transpose", "argmax", "dot"])
def test_numpys_functions_are_ours(x, name):
    args = ([x, x],) if name in ("concatenate", "stack") else (x, x) if name == "dot" else (x,)
    got, ours = getattr(onp, name)(*args), getattr(np, name)(*args)
    assert type(got) is np.ndarray
    onp.testing.assert_array_equal(got.asnumpy(), ours.asnumpy())


def test_gradients_flow_through_numpys_functions(x):
    x.attach_grad()
    with autograd.record():
        y = onp.sum(onp.exp(x) + onp.float32(2) * x)
    y.backward()
    onp.testing.assert_allclose(x.grad.asnumpy(), onp.exp(x.asnumpy()) + 2, rtol=1e-6)


def test_what_mx_np_lacks_numpy_computes(x):
    got = onp.kron(x, x)
    assert type(got) is np.ndarray
    onp.testing.assert_array_equal(got.asnumpy(), onp.kron(x.asnumpy(), x.asnumpy()))
    x.attach_grad()
    with autograd.record(), pytest.raises(RuntimeError, match="kron"):
        onp.kron(x, x)


def test_arrays_of_numpy_beside_ours_are_refused(x):
    for call in (lambda: onp.ones(3) + x, lambda: onp.add(x, onp.ones(3)), lambda: onp.concatenate([x, onp.ones(3)])):
        with pytest.raises(TypeError, match="asnumpy"):
            call()


def test_what_numpy_refuses_is_an_error_of_ours():
    with pytest.raises(mx.base.MXNetError, match=r"np\.ptp: ") as e:
        np.ptp(np.zeros((0,)))
    assert isinstance(e.value, ValueError)
