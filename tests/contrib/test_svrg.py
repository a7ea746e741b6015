"""SVRG: the rule, beside NumPy, and how fast it comes to the optimum."""

import threading

import numpy as np
import pytest

import mxcore as mx
from mxcore.contrib.svrg_optimization import SVRGModule

RS = np.random.RandomState(2)
X = RS.uniform(-1, 1, (24, 3)).astype("float32")
Y = (X @ np.array([1.0, -2.0, 0.5]) + 0.3 * RS.normal(size=24)).astype("float32")


def network():
    out = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, no_bias=True, name="fc")
    return mx.sym.LinearRegressionOutput(out, mx.sym.Variable("label"))


def data(batch=4):
    return mx.io.NDArrayIter(X, Y, batch, label_name="label")


def numpy_run(epochs, freq, lr, batch=4):
    """The rule by hand: the gradient of a batch is that of its sum, which the optimizer divides by its size."""
    w = np.zeros(3)
    parts = [(X[i : i + batch], Y[i : i + batch]) for i in range(0, len(X), batch)]

    def gradient(w, x, y):
        return (x @ w - y) @ x

    for epoch in range(epochs):
        if epoch % freq == 0:
            anchor, mean = w.copy(), np.mean([gradient(w, x, y) for x, y in parts], axis=0)
        for x, y in parts:
            w = w - lr / batch * (gradient(w, x, y) - gradient(anchor, x, y) + mean)
    return w


@pytest.mark.parametrize("contexts", [1, 2])
@pytest.mark.parametrize("freq", [1, 2])
def test_the_rule(freq, contexts):
    mod = SVRGModule(network(), label_names=["label"], update_freq=freq, context=[mx.cpu(i) for i in range(contexts)])
    mod.fit(data(), num_epoch=5, eval_metric="mse", initializer=mx.init.Zero(), optimizer_params={"learning_rate": 0.2})
    np.testing.assert_allclose(
        mod.get_params()[0]["fc_weight"].asnumpy()[0], numpy_run(5, freq, 0.2), rtol=1e-4, atol=1e-5
    )


def test_it_reaches_the_optimum_that_sgd_circles():
    best = np.linalg.lstsq(X, Y, rcond=None)[0]
    gaps = []
    for make in (lambda **k: SVRGModule(update_freq=1, **k), mx.mod.Module):
        mod = make(symbol=network(), label_names=["label"])
        mod.fit(
            data(), num_epoch=40, eval_metric="mse", initializer=mx.init.Zero(), optimizer_params={"learning_rate": 0.3}
        )
        gaps.append(np.abs(mod.get_params()[0]["fc_weight"].asnumpy()[0] - best).max())
    assert gaps[0] < 1e-4 < gaps[1]


def test_plain_gradients_before_the_first_anchor():
    mod, plain = (
        SVRGModule(network(), label_names=["label"], update_freq=3),
        mx.mod.Module(network(), label_names=["label"]),
    )
    for m in (mod, plain):
        m.bind(data().provide_data, data().provide_label)
        m.init_params(mx.init.One())
        m.init_optimizer()
        m.forward_backward(data().next())
        m.update()
    np.testing.assert_array_equal(
        mod.get_params()[0]["fc_weight"].asnumpy(), plain.get_params()[0]["fc_weight"].asnumpy()
    )


def test_wrong_arguments():
    with pytest.raises(TypeError, match="update_freq must be a number of epochs, such as 2, got None"):
        SVRGModule(network(), label_names=["label"])
    with pytest.raises(ValueError, match="1 or more epochs, got 0"):
        SVRGModule(network(), label_names=["label"], update_freq=0)
    with pytest.raises(AssertionError, match="init_params"):
        mod = SVRGModule(network(), label_names=["label"], update_freq=1)
        mod.bind(data().provide_data, data().provide_label)
        mod.update_full_grads(data())


@pytest.mark.parametrize("name", ["forward", "update_full_grads", "update", "reshape"])
def test_a_module_waits_for_the_batch_of_another_thread(name):
    mod, done, batch = SVRGModule(network(), label_names=("label",), update_freq=1), threading.Event(), next(data())
    mod.bind([("data", (4, 3))], [("label", (4,))])
    mod.init_params()
    mod.init_optimizer()
    mod.update_full_grads(data())
    mod.forward_backward(batch)
    calls = {
        "forward": lambda: mod.forward(batch),
        "update_full_grads": lambda: mod.update_full_grads(data()),
        "update": mod.update,
        "reshape": lambda: mod.reshape([("data", (2, 3))], [("label", (2,))]),
    }
    forward, half, told = mod._mod_aux.forward, threading.Event(), []

    def slowly(*given, **named):
        half.set()
        told.append(done.wait(0.1))
        forward(*given, **named)

    mod._mod_aux.forward = slowly
    first = threading.Thread(target=mod.update_full_grads, args=(data(12),))
    first.start()
    assert half.wait(10)
    other = threading.Thread(target=lambda: (calls[name](), done.set()))
    other.start()
    first.join()
    other.join()
    assert told[:2] == [False, False] and done.is_set()
