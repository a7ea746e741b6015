"""Networks train on emulated GPUs as on the CPU: the losses of each step are equal."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import gluon


def mlp():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(20, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Dense(5))
    return net, (12, 10)


def lenet():
    net = gluon.nn.HybridSequential()
    net.add(
        gluon.nn.Conv2D(4, 3, activation="tanh"),
        gluon.nn.MaxPool2D(2),
        gluon.nn.Conv2D(6, 3, groups=2),
        gluon.nn.BatchNorm(),
        gluon.nn.Activation("relu"),
        gluon.nn.AvgPool2D(2),
        gluon.nn.Flatten(),
        gluon.nn.Dense(5),
    )
    return net, (12, 1, 14, 14)


class Recurrent(gluon.nn.HybridBlock):
    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.rnn, self.out = gluon.rnn.LSTM(8, layout="NTC"), gluon.nn.Dense(5)

    def hybrid_forward(self, F, x):
        return self.out(F.SliceChannel(self.rnn(x), axis=1, num_outputs=6)[5].reshape((-1, 8)))


def lstm():
    return Recurrent(), (12, 6, 3)


def prepared(make):
    """A network on the CPU whose shapes are known, data and labels: the same each time."""
    mx.random.seed(0)
    np.random.seed(0)
    net, shape = make()
    net.initialize(mx.init.Xavier(), ctx=mx.cpu())
    rs = np.random.RandomState(1)
    data, label = mx.nd.array(rs.randn(*shape)), mx.nd.array(rs.randint(0, 5, shape[:1]))
    net(data)
    return net, data, label


def losses(make, contexts, hybridise, optimizer):
    """The loss of each of six steps."""
    net, data, label = prepared(make)
    net.collect_params().reset_ctx(contexts)
    if hybridise:
        net.hybridize(static_alloc=hybridise == "static", static_shape=hybridise == "static")
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.05})
    loss, found = gluon.loss.SoftmaxCrossEntropyLoss(), []
    for _ in range(6):
        parts = [*zip(*(gluon.utils.split_and_load(a, contexts) for a in (data, label)))]
        with mx.autograd.record():
            each = [loss(net(x), y) for x, y in parts]
        mx.autograd.backward(each)
        trainer.step(len(data))
        found.append(sum(float(part.sum().asscalar()) for part in each) / len(data))
    return found


@pytest.mark.parametrize("hybridise", [False, True, "static"], ids=["eager", "hybridised", "static"])
@pytest.mark.parametrize("make", [mlp, lenet, lstm])
def test_losses_are_those_of_the_cpu(gpus, make, hybridise):
    there, here = losses(make, [gpus[1]], hybridise, "sgd"), losses(make, [mx.cpu()], hybridise, "sgd")
    np.testing.assert_allclose(there, here, rtol=1e-4)
    assert there[-1] < there[0]


@pytest.mark.slow
@pytest.mark.parametrize("hybridise", [False, True, "static"], ids=["eager", "hybridised", "static"])
@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
@pytest.mark.parametrize("make", [mlp, lenet, lstm])
def test_on_two_devices_too(gpus, make, optimizer, hybridise):
    there = losses(make, [*gpus], hybridise, optimizer)
    here = losses(make, [mx.cpu(0), mx.cpu(1)], hybridise, optimizer)
    np.testing.assert_allclose(there, here, rtol=1e-4)
    assert there[-1] < there[0]


def test_parameters_go_through_files(gpus, tmp_path):
    net, shape = mlp()
    net.initialize(ctx=gpus[0])
    x = mx.nd.ones(shape, ctx=gpus[0])
    expected = net(x).asnumpy()
    net.save_parameters(str(tmp_path / "net.params"))
    other = mlp()[0]
    other.load_parameters(str(tmp_path / "net.params"), ctx=gpus[1])
    np.testing.assert_allclose(other(x.as_in_context(gpus[1])).asnumpy(), expected, rtol=1e-6)
    mx.nd.save(str(tmp_path / "a"), {"x": x * 3})
    [(name, back)] = mx.nd.load(str(tmp_path / "a")).items()
    assert name == "x" and (back.asnumpy() == 3).all()


def test_sync_batch_norm_over_two_gpus_by_a_thread_for_each(gpus, in_threads):
    layer = gluon.contrib.nn.SyncBatchNorm(num_devices=2, momentum=0.5)
    layer.initialize(ctx=list(gpus))
    data = [np.full((2, 3), v, np.float32) + np.eye(2, 3, dtype=np.float32) for v in (0, 10)]
    found = {}

    def run(i):
        x = mx.nd.array(data[i], ctx=gpus[i])
        x.attach_grad()
        with mx.autograd.record():
            y = layer(x)
        y.backward(mx.nd.array(np.arange(6).reshape(2, 3) * (i + 1), ctx=gpus[i]))
        found[i] = y.asnumpy(), x.grad.asnumpy()

    in_threads(run, [(0,), (1,)])
    plain = gluon.nn.BatchNorm()
    plain.initialize()
    x = mx.nd.array(np.concatenate(data))
    x.attach_grad()
    with mx.autograd.record():
        y = plain(x)
    y.backward(mx.nd.array(np.concatenate([np.arange(6).reshape(2, 3) * (i + 1) for i in range(2)])))
    for place, want in enumerate((y, x.grad)):
        got = np.concatenate([found[i][place] for i in range(2)])
        np.testing.assert_allclose(got, want.asnumpy(), rtol=1e-4, atol=1e-5)


def test_a_metric_that_mixes_host_and_gpu_is_told_how_not_to(gpus):
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3), name="softmax")
    batches = mx.io.NDArrayIter(mx.nd.ones((4, 5), ctx=mx.cpu()), mx.nd.zeros((4,), ctx=mx.cpu()), batch_size=4)
    sums = mx.metric.CustomMetric(lambda label, pred: 0.0)
    sums.update = lambda labels, preds: labels[0] + preds[0][:, 0]
    with pytest.raises(ValueError, match=r"different devices .* update\(\) call label.as_in_context\(pred.context\)"):
        mx.mod.Module(net, context=gpus[0]).fit(batches, eval_metric=sums, num_epoch=1)
