"""Fully connected layers of programs are one call each: the numbers of separate products."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon
from mxcore_cpu import blas, threads
from mxcore_cpu.bindings import neural
from mxcore_cpu.kernels import gemm
from tests.executor.training import arrays_of, trained

rng = np.random.default_rng(0)
F = mx.sym


SIZES = [(2, 2, 2), (64, 10, 64), (5, 3, 7), (8, 40, 3), (3, 5, 1), (70, 65, 129), (300, 40, 33), (33, 300, 70)]


@pytest.mark.parametrize("rows, filters, width", SIZES)
@pytest.mark.parametrize("dtype, near", [("f4", 2e-6), ("f8", 1e-14)])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_layers(rows, filters, width, dtype, near, biased, workers, monkeypatch):
    """Also where the rows are more than a kernel sums up one after the other."""
    monkeypatch.setattr(threads, "count", lambda: workers)
    monkeypatch.setattr(gemm.layer, "threshold", 0)
    monkeypatch.setattr(gemm.layer_gradients, "threshold", 0)
    x, w, b, dy = (
        rng.standard_normal(s).astype(dtype) for s in ((rows, width), (filters, width), filters, (rows, filters))
    )
    layer = gemm.Layer(rows, filters, width, np.dtype(dtype))
    y = np.full(rows * filters, np.nan, dtype)
    layer.forward(x.ravel(), w.ravel(), b if biased else None, y)
    near *= 8
    np.testing.assert_allclose(y.reshape(rows, filters), x @ w.T + (b if biased else 0), rtol=near, atol=4 * near)
    wanted = [dy @ w, dy.T @ x, dy.sum(0)]
    for some in ([True] * 3, [False, True, biased], [True, False, False], [False, False, True]):
        places = [np.full(a.size, np.nan, dtype) if one else None for one, a in zip(some, wanted)]
        layer.backward(dy.ravel(), x.ravel(), w.ravel(), *places)
        for place, want in zip(places, wanted):
            if place is not None:
                np.testing.assert_allclose(place.reshape(want.shape), want, rtol=near, atol=10 * near)


def test_where_layers_serve(monkeypatch):
    def serves(*size):
        return gemm.Layer(*size, np.dtype("f4")).serves

    found = {size: serves(*size) for size in [(64, 784, 128), (64, 64, 128), (2, 3, 4), (1, 50, 50), (3, 5000, 5000)]}
    assert [*found.values()] == [True, True, True, False, False]
    monkeypatch.setattr(type(blas.find()), "gemm", lambda self, dtype: 0)
    assert serves(2, 3, 4) and not serves(64, 64, 128)


def test_blas_wakes_no_threads_for_layers(monkeypatch):
    asked = []
    monkeypatch.setattr(blas, "hold", asked.append)
    monkeypatch.setattr(blas, "release", lambda n: None)
    for rows in (8, 640):
        x, w, y = np.ones((rows, 128), "f4"), np.ones((64, 128), "f4"), np.empty((rows, 64), "f4")
        gemm.Layer(rows, 64, 128, y.dtype).forward(x.ravel(), w.ravel(), None, y.ravel())
        assert (y == 128).all()
    assert asked == [1]  # for the large one only


@pytest.fixture
def calls(monkeypatch):
    """How often layers ran."""
    found = []
    for name in ("forward", "backward"):
        run = getattr(gemm.Layer, name)
        monkeypatch.setattr(gemm.Layer, name, lambda *args, r=run, n=name: (found.append(n), r(*args)))
    return found


def separately(symbol, arrays, monkeypatch, **kw):
    with monkeypatch.context() as m:
        m.setattr(neural._fully_connected, "binds", lambda *args: None)
        m.setattr(neural._backward_fully_connected, "binds", lambda *args: None)
        return trained(symbol, arrays, **kw)[0]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape, flatten", [((6, 5), True), ((2, 3, 5), False), ((2, 3, 5), True)])
@pytest.mark.parametrize("req", ["write", "add"])
def test_programs(bias, shape, flatten, req, calls, monkeypatch):
    symbol = F.FullyConnected(F.Variable("data") * 2, num_hidden=4, no_bias=not bias, flatten=flatten, name="a")
    symbol = F.FullyConnected(F.Activation(symbol, act_type="tanh"), num_hidden=3, flatten=flatten, name="b")
    arrays = arrays_of(symbol, data=shape)
    want = separately(symbol, arrays, monkeypatch, req=req, steps=2)
    assert not calls
    found, _ = trained(symbol, arrays, req=req, steps=2)
    assert calls.count("forward") == calls.count("backward") == 4
    assert len(want) == len(found)
    for a, b in zip(found, want):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "shape, filters, dtype", [((1, 5), 4, "float32"), ((6, 5), 1, "float32"), ((6, 5), 4, "float64")]
)
def test_vectors_and_other_dtypes_are_numpys(shape, filters, dtype, calls):
    x, w = (
        mx.nd.array(rng.standard_normal(shape), dtype=dtype),
        mx.nd.array(rng.standard_normal((filters, 5)), dtype=dtype),
    )
    symbol = F.FullyConnected(F.Variable("x"), F.Variable("w"), num_hidden=filters, no_bias=True)
    [y] = symbol.bind(mx.cpu(), {"x": x, "w": w}).forward()
    np.testing.assert_allclose(y.asnumpy(), x.asnumpy() @ w.asnumpy().T, rtol=1e-6)
    assert not calls


def test_inputs_that_lie_apart(calls):
    """As arrays of others may."""
    base = rng.standard_normal((12, 10)).astype(np.float32)
    x, w = mx.nd.from_dlpack(base[::2, ::2]), mx.nd.array(base[:4, :5])
    symbol = F.FullyConnected(F.Variable("x"), F.Variable("w"), num_hidden=4, no_bias=True)
    [y] = symbol.bind(mx.cpu(), {"x": x, "w": w}).forward()
    np.testing.assert_allclose(y.asnumpy(), base[::2, ::2] @ base[:4, :5].T, rtol=1e-5, atol=1e-6)
    assert calls == ["forward"]


def test_a_network_that_gets_other_arrays_at_each_step(calls):
    net = gluon.nn.Dense(3, in_units=4)
    net.initialize(mx.init.Normal(1))
    net.hybridize()
    for _ in range(4):
        x = mx.nd.array(rng.standard_normal((5, 4)))
        x.attach_grad()
        with autograd.record():
            y = net(x)
        dy = mx.nd.array(rng.standard_normal((5, 3)))
        y.backward(dy)
        w = net.weight.data().asnumpy()
        np.testing.assert_allclose(y.asnumpy(), x.asnumpy() @ w.T + net.bias.data().asnumpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(x.grad.asnumpy(), dy.asnumpy() @ w, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(net.weight.grad().asnumpy(), dy.asnumpy().T @ x.asnumpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(net.bias.grad().asnumpy(), dy.asnumpy().sum(0), rtol=1e-5, atol=1e-6)
        net.weight.set_data(net.weight.data() + 1)
    assert calls.count("forward") == calls.count("backward") == 4
