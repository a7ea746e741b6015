"""SequentialModule, PythonModule and PythonLossModule."""

import numpy as np
import pytest

import mxcore as mx

from .conftest import bound, params_of, some_batch


def parts():
    body = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc1")
    head = mx.sym.FullyConnected(mx.sym.Activation(mx.sym.Variable("data"), act_type="tanh"), num_hidden=3, name="fc2")
    return body, mx.sym.SoftmaxOutput(head, name="softmax")


def chain(**kwargs):
    body, head = parts()
    mod = mx.mod.SequentialModule()
    assert mod.add(mx.mod.Module(body, label_names=[], **kwargs)) is mod
    return mod.add(mx.mod.Module(head, **kwargs), take_labels=True, auto_wiring=True)


@pytest.mark.parametrize("contexts", [1, 2])
def test_a_chain_is_the_module_of_the_whole(contexts):
    whole = bound()
    mod = chain(context=[mx.cpu(i) for i in range(contexts)])
    mod.bind([("data", (4, 5))], [("softmax_label", (4,))], inputs_need_grad=True)
    mod.init_params(arg_params=whole.get_params()[0], aux_params={})
    metric = mx.metric.CrossEntropy(), mx.metric.CrossEntropy()
    for m in (whole, mod):
        m.init_optimizer(optimizer_params={"learning_rate": 0.3, "momentum": 0.9})
    for step in range(3):
        for m, x in zip((whole, mod), metric):
            m.forward_backward(some_batch(seed=step))
            m.update()
            m.update_metric(x, some_batch(seed=step).label)
    for k, v in params_of(mod).items():
        np.testing.assert_allclose(v, params_of(whole)[k], rtol=1e-5, atol=1e-6)
    assert abs(metric[0].get()[1] - metric[1].get()[1]) < 1e-5
    assert mod.get_input_grads()[0].shape == (4, 5) and mod.get_outputs()[0].shape == (4, 3)
    assert (
        mod.data_names == ["data"]
        and mod.output_names == ["softmax_output"]
        and mod.output_shapes == [("softmax_output", (4, 3))]
    )
    assert mod.data_shapes[0].shape == (4, 5) and mod.label_shapes[0][1] == (4,)


def test_a_chain_fits_and_adapts(data_iter):
    body, _ = parts()
    head = mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc2"), name="softmax"
    )
    mod = mx.mod.SequentialModule().add(mx.mod.Module(body, label_names=[]))
    mod.add(mx.mod.Module(head), take_labels=True, auto_wiring=True)
    mod.fit(data_iter, num_epoch=60, optimizer_params={"learning_rate": 0.5}, initializer=mx.init.Xavier())
    assert dict(mod.score(data_iter, "acc"))["accuracy"] == 1.0
    assert mod.predict(data_iter).shape == (12, 2)
    described = some_batch(2)
    described.provide_data, described.provide_label = [("data", (2, 5))], [("softmax_label", (2,))]
    for batch in (some_batch(2), described):
        mod.forward(batch, is_train=False)
        assert mod.get_outputs()[0].shape == (2, 2) and batch.data[0].shape == (2, 5)


def test_a_loss_in_python_trains(data_iter):
    def softmax_gradient(scores, labels):
        p = mx.nd.softmax(scores)
        return (p - mx.nd.one_hot(labels, 2)) / 1.0

    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    mod = mx.mod.SequentialModule().add(mx.mod.Module(net, label_names=[]))
    mod.add(mx.mod.PythonLossModule(grad_func=softmax_gradient), take_labels=True, auto_wiring=True)
    mod.fit(data_iter, num_epoch=60, optimizer_params={"learning_rate": 0.5})
    assert dict(mod.score(data_iter, "acc"))["accuracy"] == 1.0


def test_wrong_chains_are_told():
    body, _ = parts()
    with pytest.raises(AssertionError, match="'foo'.*auto_wiring"):
        mx.mod.SequentialModule().add(mx.mod.Module(body, label_names=[]), foo=True)
    with pytest.raises(AssertionError, match="empty"):
        mx.mod.SequentialModule().bind([("data", (4, 5))])
    twice = mx.mod.SequentialModule()
    for _ in range(2):
        twice.add(
            mx.mod.Module(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc"), label_names=[]),
            auto_wiring=True,
        )
    twice.bind([("data", (4, 5))])
    with pytest.raises(AssertionError, match="parameter 'fc_weight'"):
        twice.init_params()
    mod = chain()
    mod.bind([("data", (4, 5))], [("softmax_label", (4,))])
    with pytest.raises(RuntimeError, match="missing: fc2_weight"):
        mod.set_params({"fc1_weight": mx.nd.zeros((4, 5)), "fc1_bias": mx.nd.zeros(4)}, {})
    with pytest.raises(AssertionError, match=r"init_params\(\)"):
        mod.forward(some_batch())
    two = mx.mod.SequentialModule().add(mx.mod.Module(body, label_names=[]))
    two.add(
        mx.mod.Module(mx.sym.Variable("a") + mx.sym.Variable("b"), data_names=["a", "b"], label_names=[]),
        auto_wiring=True,
    )
    with pytest.raises(AssertionError, match=r"takes 2 data \['a', 'b'\].*gives 1"):
        two.bind([("data", (4, 5))])


class Doubling(mx.mod.PythonModule):
    """Twice the data."""

    def __init__(self):
        super().__init__(["data"], ["l"], ["out"])

    def _compute_output_shapes(self):
        return [("out", self.data_shapes[0].shape)]

    def forward(self, data_batch, is_train=None):
        self.out = [data_batch.data[0] * 2]

    def get_outputs(self, merge_multi_context=True):
        return self.out


def test_python_modules(caplog):
    mod = Doubling()
    mod.bind([("data", (2, 2))], [("l", (2,))], for_training=False)
    mod.init_params()
    assert mod.output_shapes == [("out", (2, 2))] and mod.get_params() == ({}, {})
    assert mod.data_names == ["data"] and mod.output_names == ["out"] and mod.label_shapes[0].shape == (2,)
    it = mx.io.NDArrayIter(np.array([[0, 1], [1, 0.0]]), np.array([1, 1.0]), 2, label_name="l")
    assert mod.predict(it).asnumpy().tolist() == [[0, 2], [2, 0]]
    assert mod.score(it, "acc") == [("accuracy", 0.5)]
    with pytest.raises(RuntimeError, match="one context"):
        mod.update_metric(mx.metric.Accuracy(), [], pre_sliced=True)
    with pytest.raises(NotImplementedError, match=r"Doubling does not define backward\(\)"):
        mod.backward()
    mod.bind([("data", (3, 2))])
    assert "Already bound" in caplog.text


def test_losses_in_python():
    with pytest.raises(AssertionError, match="one data and one label"):
        mx.mod.PythonLossModule(data_names=["a", "b"])
    with pytest.raises(TypeError, match="grad_func"):
        mx.mod.PythonLossModule(grad_func=3)
    loss = mx.mod.PythonLossModule(name="l2")
    loss.bind([("data", (2,))], [("softmax_label", (2,))])
    assert loss.output_names == ["l2_output"] and loss.output_shapes == [("l2_output", (2,))]
    with pytest.raises(ValueError, match="softmax_label"):
        loss.forward(mx.io.DataBatch([mx.nd.ones(2)]), is_train=True)
    loss.forward(mx.io.DataBatch([mx.nd.ones(2)], [mx.nd.zeros(2)]), is_train=True)
    with pytest.raises(AssertionError, match="out_grads should be None"):
        loss.backward([mx.nd.ones(2)])
    with pytest.raises(NotImplementedError, match="grad_func"):
        loss.backward()
    numbers = mx.mod.PythonLossModule(grad_func=lambda scores, labels: (scores - labels).asnumpy())
    numbers.bind([("data", (2,))], [("softmax_label", (2,))])
    numbers.forward(mx.io.DataBatch([mx.nd.ones(2)], [mx.nd.zeros(2)]), is_train=True)
    numbers.backward()
    assert numbers.get_input_grads()[0].asnumpy().tolist() == [1, 1]
