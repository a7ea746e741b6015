import mxcore as mx
from mxcore import gluon

CONTEXTS = [mx.cpu(0), mx.cpu(1)]


def test_sums_and_copies():
    store = mx.kv.create("toy_kvstore")
    values = [mx.nd.full((2,), i + 1, ctx=c) for i, c in enumerate(CONTEXTS)]
    store.pushpull("w", values)
    assert [v.asnumpy().tolist() for v in values] == [[3, 3]] * 2
    out = mx.nd.zeros((2,))
    store.broadcast("w", values[1], out)
    assert out.asnumpy().tolist() == [3, 3] and (store.rank, store.num_workers) == (0, 1)


def test_a_trainer_over_two_contexts():
    net = gluon.nn.Dense(1, use_bias=False, in_units=2)
    net.initialize(mx.init.One(), ctx=CONTEXTS)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0}, kvstore=mx.kv.create("toy_kvstore"))
    with mx.autograd.record():
        losses = [net(mx.nd.ones((1, 2), ctx=c)).sum() for c in CONTEXTS]
    mx.autograd.backward(losses)
    trainer.step(1)
    assert [net.weight.data(c).asnumpy().tolist() for c in CONTEXTS] == [[[-1, -1]]] * 2
