"""Small fully connected layers of programs are one call each: the numbers of separate products."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon
from mxcore_cpu.bindings import neural
from mxcore_cpu.kernels import gemm
from tests.executor.training import arrays_of, trained

rng = np.random.default_rng(0)
F = mx.sym


@pytest.mark.parametrize("rows, filters, width", [(2, 2, 2), (64, 10, 64), (5, 3, 7), (8, 40, 3), (3, 5, 1)])
@pytest.mark.parametrize("dtype, near", [("f4", 2e-6), ("f8", 1e-14)])
@pytest.mark.parametrize("biased", [True, False])
def test_kernels(rows, filters, width, dtype, near, biased):
    x, w, b, dy = (
        rng.standard_normal(s).astype(dtype) for s in ((rows, width), (filters, width), filters, (rows, filters))
    )
    nothing, blas = np.empty(0, dtype), gemm.address(np.dtype(dtype))
    y = np.full(rows * filters, np.nan, dtype)
    gemm.layer(1, blas, rows, filters, width, x.ravel(), w.ravel(), b if biased else nothing, y)
    np.testing.assert_allclose(y.reshape(rows, filters), x @ w.T + (b if biased else 0), rtol=near, atol=near)
    wanted = [dy @ w, dy.T @ x, dy.sum(0)]
    for some in ([True] * 3, [False, True, biased], [True, False, False]):
        places = [np.full(a.size, np.nan, dtype) if some[i] else nothing for i, a in enumerate(wanted)]
        gemm.layer_gradients(1, blas, rows, filters, width, dy.ravel(), x.ravel(), w.ravel(), *places)
        for place, want in zip(places, wanted):
            if place.size:
                np.testing.assert_allclose(place.reshape(want.shape), want, rtol=near, atol=4 * near)


@pytest.fixture
def calls(monkeypatch):
    """How often the kernels ran."""
    found = []
    for name in ("layer", "layer_gradients"):
        kernel = getattr(gemm, name)
        monkeypatch.setattr(gemm, name, lambda *args, k=kernel, n=name: (found.append(n), k(*args)))
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
    assert calls.count("layer") == calls.count("layer_gradients") == 4
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
    assert calls == ["layer"]


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
    assert calls.count("layer") == calls.count("layer_gradients") == 4
