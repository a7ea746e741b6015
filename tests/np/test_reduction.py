"""Reductions of mx.np against NumPy: all dtypes, axes, numbers, nothing; their gradients, graphs and kernels."""

import warnings

import numpy as onp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import autograd, np
from mxcore._core import tables
from mxcore._core.graph import Graph
from mxcore._core.hookspecs import hookimpl
from mxcore._core.kernels import KernelSet, Spec
from mxcore._core.manager import manager
from mxcore.base import MXNetError
from mxcore.executor.passes.fuse import fuse
from mxcore.executor.program import infer_all
from mxcore.symbol.numpy import _Symbol, symbols
from mxcore.testing.gradcheck import check_grads

from .numbers import DTYPES, FLOATS, check, drawn, wide

SHAPES = [((2, 3, 4), a) for a in (None, (), 0, -1, (0, 2), (-1, 0))] + [
    ((), None),
    ((), 0),
    ((5,), -1),
    ((0, 3), 1),
    ((3, 0), (0,)),
]


def like(t):
    return t


def counted(t):
    return "int64" if t == "bool" else t


def floating(t):
    return t if t.startswith("float") else "float32"


#: Function -> dtype of its result.
REDUCTIONS = {
    "sum": counted,
    "nansum": counted,
    "prod": counted,
    "max": like,
    "min": like,
    "all": lambda t: "bool",
    "any": lambda t: "bool",
    "mean": floating,
    "var": floating,
    "std": floating,
}


def numpys(name, x, axis, keepdims):
    with warnings.catch_warnings(), onp.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of nothing
        return getattr(onp, name)(x, axis=axis if x.ndim else None, keepdims=keepdims)


@pytest.mark.both_ways
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_as_numpy(name, dtype, keepdims):
    for shape, axis in SHAPES:
        x = drawn(shape, dtype)
        if name == "prod":
            x = onp.where(x == 0, onp.ones_like(x), x)
        want = numpys(name, wide(x), axis, keepdims)
        check(getattr(np, name)(np.array(x), axis=axis, keepdims=keepdims), want, REDUCTIONS[name](dtype))


@pytest.mark.parametrize("name, other", [("sum", "sum"), ("prod", "product"), ("max", "amax"), ("min", "amin")])
def test_other_names(name, other):
    x = drawn((2, 3), "float32")
    check(getattr(np, other)(np.array(x), axis=1), getattr(onp, name)(x, 1), "float32")
    assert np.alltrue(np.array(x)).item() and not np.sometrue(np.array(x * 0)).item()


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std"])
@pytest.mark.parametrize("asked", ["float64", "float32", "float16", "int32"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
def test_dtype_asked_for(name, asked, dtype):
    x = onp.asarray([[1, 0, 4], [2, 2, 2]]).astype(dtype)
    with onp.errstate(all="ignore"):
        want = getattr(onp, name)(x.astype("float64"), axis=1)
    check(getattr(np, name)(np.array(x), axis=1, dtype=asked), want, asked)


def test_half_precision_is_added_up_in_float32():
    x = np.array(onp.full(4096, 0.1, "float16"))
    assert abs(np.sum(x).item() - 409.5) < 0.5 and abs(np.cumsum(x)[-1].item() - 409.5) < 0.5
    assert np.mean(np.array(onp.full(3, 60000, "float16"))).item() == 60000
    assert np.sum(np.array(onp.array([100, 100], "int8"))).item() == -56  # whole numbers wrap in their own dtype


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("axis", [None, 0, ()])
def test_initial(name, dtype, axis):
    x = drawn((2, 3), dtype)
    check(getattr(np, name)(np.array(x), axis=axis, initial=2), getattr(onp, name)(x, axis=axis, initial=2), dtype)
    empty = onp.zeros((0, 3), dtype)
    check(getattr(np, name)(np.array(empty), 0, initial=2), getattr(onp, name)(empty, 0, initial=2), dtype)


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes(name):
    x = onp.array([[1, onp.nan], [onp.inf, -onp.inf]])
    check(getattr(np, name)(np.array(x), 1), getattr(onp, name)(x, 1), "float64")
    with pytest.raises(ValueError, match=f"_np_{name}.*no elements"):
        getattr(np, name)(np.array(onp.zeros((0, 2))))


def test_of_nothing():
    x = np.array(onp.zeros((0, 2), "float32"))
    assert np.sum(x).item() == 0 and np.prod(x).item() == 1 and np.all(x).item() and not np.any(x).item()
    assert onp.isnan(np.mean(x).item()) and onp.isnan(np.var(x, 0).asnumpy()).all() and np.cumsum(x).shape == (0,)
    assert np.var(np.array([1.0, 3.0]), ddof=2).item() == onp.inf


@pytest.mark.parametrize("dtype", DTYPES)
def test_cumsum(dtype):
    for shape, axis in (((2, 3), None), ((2, 3), 0), ((2, 3), -1), ((), None), ((0, 2), 1)):
        x = drawn(shape, dtype)
        check(np.cumsum(np.array(x), axis), onp.cumsum(wide(x), axis), counted(dtype))
    check(np.cumsum(np.array(x), dtype="float64"), onp.cumsum(x, dtype="float64"), "float64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_diff(dtype):
    x = drawn((3, 4), dtype)
    for n, axis in ((0, -1), (1, -1), (2, 0), (3, 1), (9, 0)):
        check(np.diff(np.array(x), n, axis), onp.diff(x, n, axis), dtype)
    around = drawn((3, 2), dtype, 1)
    got = np.diff(np.array(x), prepend=np.array(around), append=np.array(around))
    check(got, onp.diff(x, prepend=around, append=around), dtype)


@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_ediff1d(dtype):
    x, end = drawn((2, 3), dtype), drawn((2, 2), dtype, 1)
    check(np.ediff1d(np.array(x)), onp.ediff1d(x), dtype)
    check(np.ediff1d(np.array(x), 3, 2), onp.ediff1d(x, onp.array(3, dtype), onp.array(2, dtype)), dtype)
    check(np.ediff1d(np.array(x), np.array(end), 2), onp.ediff1d(x, end, onp.array(2, dtype)), dtype)
    check(np.ediff1d(np.array(x), 2, np.array(end)), onp.ediff1d(x, onp.array(2, dtype), end), dtype)
    check(np.ediff1d(np.array(x), np.array(x), np.array(end)), onp.ediff1d(x, x, end), dtype)
    check(np.ediff1d(np.array(x[:1, 0]), np.array(end)), onp.ediff1d(x[:1, 0], end), dtype)


def test_out():
    x, out = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.0, 0.0])
    assert np.sum(x, axis=0, out=out) is out and out.asnumpy().tolist() == [4, 6]
    assert np.max(x, 1, out=out) is out and out.asnumpy().tolist() == [2, 4]
    with pytest.raises(ValueError, match=r"_np_sum: out has shape \(2,\), the result \(\)"):
        np.sum(x, out=out)
    with pytest.raises(TypeError, match="_np_sum: out is float32, the result float64"):
        np.sum(x, axis=0, dtype="float64", out=out)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "all", "any", "mean", "std", "var"])
def test_where_is_refused(name):
    x = np.array([1.0, 2.0])
    with pytest.raises(NotImplementedError, match=rf"np.{name}: where=.* is not supported"):
        getattr(np, name)(x, where=x)
    assert getattr(np, name)(x, where=True).shape == ()


@pytest.mark.parametrize("name", [n for n in REDUCTIONS if n != "nansum"])
def test_errors(name):
    fn = getattr(np, name)
    with pytest.raises(ValueError, match="axis 2 is out of range for 2 dimensions"):
        fn(np.array([[1.0]]), axis=2)
    with pytest.raises(ValueError, match="names one axis twice"):
        fn(np.array([[1.0]]), axis=(0, -2))
    with pytest.raises(MXNetError, match="as_np_ndarray"):
        fn(mx.nd.array([1.0]))
    with pytest.raises(TypeError, match="must be an array of mx.np"):
        fn([1.0, 2.0])


def test_more_errors():
    x = np.array([[1.0, 2.0]])
    with pytest.raises(ValueError, match="axis 2 is out of range"):
        np.diff(x, axis=2)
    with pytest.raises(ValueError, match="'n' must be int >= 0"):
        np.diff(x, n=-1)
    with pytest.raises(ValueError, match="axis 5 is out of range"):
        np.cumsum(x, axis=5)


def np_fn(name, **params):
    return lambda *xs: getattr(np, name)(*[x.as_np_ndarray() for x in xs], **params)


_X = onp.random.RandomState(3).uniform(0.5, 2, (2, 3, 4))
GRADIENTS = [
    *((name, q) for name in ("sum", "mean", "prod", "max", "min") for q in ({}, {"axis": (0, 2)}, {"axis": ()})),
    *((name, q) for name in ("var", "std") for q in ({}, {"axis": 1, "ddof": 1}, {"axis": (0, 2), "keepdims": True})),
    ("nansum", {"axis": 0}),
    ("cumsum", {}),
    ("cumsum", {"axis": 1}),
    ("diff", {"n": 2, "axis": 1}),
    ("diff", {}),
    ("ediff1d", {"to_begin": 1.0}),
]


@pytest.mark.parametrize("name, params", GRADIENTS, ids=str)
def test_gradients(name, params):
    order = 1 if name in ("max", "min") else (1, 2)
    check_grads(np_fn(name, **params), [_X], order=order)
    check_grads(np_fn(name, **{k: v for k, v in params.items() if k != "axis"}), [_X[0, 0, :2]], order=order)


def test_gradients_have_the_dtype_of_the_input():
    x = np.array(onp.array([1, 2, 3], "float32"))
    for name in ("sum", "mean", "prod", "std"):
        x.attach_grad()
        with autograd.record():
            y = getattr(np, name)(x, dtype="float64")
        y.backward()
        assert y.dtype == onp.float64 and x.grad.dtype == onp.float32 and type(x.grad) is np.ndarray
        assert x.grad.asnumpy().any()


def test_gradient_where_all_are_equal_or_tie():
    x = np.array([2.0, 2.0])
    x.attach_grad()
    for name, want in (("std", [0, 0]), ("max", [1, 1])):
        with autograd.record():
            y = getattr(np, name)(x)
        y.backward()
        assert x.grad.asnumpy().tolist() == want


def test_gradient_of_ediff1d_and_what_is_around():
    check_grads(
        lambda a, b, c: np.ediff1d(a.as_np_ndarray(), b.as_np_ndarray(), c.as_np_ndarray()),
        [_X[0], _X[1, 0], _X[1, 1]],
        order=(1, 2),
    )
    check_grads(lambda a, b: np.ediff1d(a.as_np_ndarray(), b.as_np_ndarray(), 1.5), [_X[0], _X[1]], order=(1, 2))


SYMBOLS = [*((name, {"axis": 1}) for name in REDUCTIONS), ("cumsum", {}), ("diff", {"axis": 0}), ("ediff1d", {})]


@pytest.mark.parametrize("name, params", SYMBOLS + [(n, {}) for n in ("sum", "mean", "max", "std")], ids=str)
def test_graphs_give_the_same(name, params):
    x = _X.astype("float32")
    y = getattr(symbols, name)(_Symbol(mx.sym.var("x")._heads), **params)
    with mx.util.np_shape():
        exe = y.bind(mx.cpu(), {"x": np.array(x).as_nd_ndarray()}, {"x": mx.nd.zeros(x.shape)})
        (out,) = exe.forward(is_train=True)
        a = np.array(x)
        a.attach_grad()
        with autograd.record():
            want = getattr(np, name)(a, **params)
        onp.testing.assert_allclose(out.asnumpy(), want.asnumpy(), rtol=1e-5)
        assert out.shape == want.shape and out.dtype == want.dtype
        if want.asnumpy().dtype.kind == "f":
            exe.backward(mx.nd.array(onp.ones(want.shape, "float32")))
            want.backward(np.array(onp.ones(want.shape, "float32")))
            onp.testing.assert_allclose(exe.grad_dict["x"].asnumpy(), a.grad.asnumpy(), rtol=1e-4, atol=1e-6)


def test_json_is_mxnets():
    x = _Symbol(mx.sym.var("x")._heads)
    for y, op, attrs in (
        (symbols.sum(x), "_np_sum", {}),
        (symbols.mean(x, axis=(0, 1), dtype="float64"), "_npi_mean", {"axis": "(0, 1)", "dtype": "float64"}),
        (symbols.sort(x, axis=None), "sort", {"axis": "None", "is_ascend": "True"}),
        (symbols.std(x, ddof=1), "_npi_std", {"ddof": "1"}),
    ):
        found = y.tojson()
        assert f'"op": "{op}"' in found, found
        for k, v in attrs.items():
            assert f'"{k}": "{v}"' in found, found


def kernel_of(op, of="float32", **params):
    found = tables.ops.get(op)
    return tables.kernels.best(found, mx.cpu().device, found.parse(params), [Spec((2, 3), onp.dtype(of))])


def test_kernels():
    assert kernel_of("_np_sum") is not None
    for params in ({"initial": 1.0}, {"dtype": "float64"}, {"axis": 1}, {"axis": ()}, {"keepdims": True}):
        assert kernel_of("_np_sum", **params) is None
    assert kernel_of("_np_sum", "bool") is None


@pytest.fixture
def kernels_of_max():
    """A kernel for `max` of a plugin's, as those of ``mx.nd`` are: a number is an array of one."""
    mine = KernelSet("cpu")

    @mine.kernel("max", dtypes="f4", when=lambda p, data: p.axis is None and not p.keepdims)
    def largest(k, p, data):
        seen.append(data.shape)
        return k.xp.max(data.reshape(1, -1), 1)

    class Plugin:
        API_VERSION = 1

        @staticmethod
        @hookimpl
        def mxcore_kernels():
            return {"cpu": mine}

    seen = []
    manager.register(Plugin, "largest_of_tests")
    yield seen
    manager.unregister("largest_of_tests")


def test_kernels_of_nd_serve_np(kernels_of_max):
    x = np.array([[1.0, 5.0, 2.0]])
    assert mx.nd.max(x.as_nd_ndarray()).shape == (1,) and len(kernels_of_max) == 1
    y = np.max(x)
    assert len(kernels_of_max) == 2 and type(y) is np.ndarray and y.shape == () and y.item() == 5
    for params in ({"axis": ()}, {"initial": 9.0}):
        assert np.max(x, **params).asnumpy().max() == params.get("initial", 5) and len(kernels_of_max) == 2


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("params", [{}, {"axis": 1}, {"axis": (0, -1), "keepdims": True}], ids=str)
def test_chains_end_in_a_reduction(name, params):
    x = drawn((40, 30, 20), "float32")
    y = getattr(symbols, name)(symbols.exp(symbols.exp(_Symbol(mx.sym.var("x")._heads))), **params)
    graph, given = Graph(y._heads), {"x": x.shape}
    with mx.util.np_shape():
        graph.shapes, graph.dtypes, graph.stypes = infer_all(
            graph.heads, given, {"x": x.dtype}, dict.fromkeys(given, "default")
        )
        assert [n.op.name for n in fuse(graph, mx.cpu().device).nodes if n.op is not None] == ["_fused"]
        exe = y.bind(mx.cpu(), {"x": np.array(x).as_nd_ndarray()}, grad_req="null")
        (got,) = exe.forward()
        want = getattr(onp, name)(onp.exp(onp.exp(x.astype("float64"))), **params)
        assert got.shape == want.shape
        onp.testing.assert_allclose(got.asnumpy(), want, rtol=1e-4)


@settings(deadline=None)
@given(
    st.sampled_from(["sum", "mean", "max", "any", "std", "prod"]),
    st.lists(st.integers(0, 3), max_size=4),
    st.data(),
    st.booleans(),
    st.sampled_from(FLOATS[:2] + ["int32", "bool"]),
)
def test_any_shape_and_axes(name, shape, data, keepdims, dtype):
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, max_size=4) if shape else st.just([]))
    axis = data.draw(st.sampled_from([None, tuple(axes), tuple(a - len(shape) for a in axes)]))
    x = drawn(shape, dtype)
    if name == "prod":
        x = onp.where(x == 0, onp.ones_like(x), x)
    reduced = range(len(shape)) if axis is None else axes
    if name == "max" and any(shape[a] == 0 for a in reduced):  # an error, unless there is nothing to choose for
        if all(d for i, d in enumerate(shape) if i not in reduced):
            with pytest.raises(ValueError, match="no elements"):
                np.max(np.array(x), axis, keepdims=keepdims)
        return
    want = numpys(name, wide(x), axis, keepdims)
    check(getattr(np, name)(np.array(x), axis=axis, keepdims=keepdims), want, REDUCTIONS[name](dtype))
