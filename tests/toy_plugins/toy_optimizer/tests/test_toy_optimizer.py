import mxcore as mx
from mxcore import gluon


def test_steps():
    weight, grad = mx.nd.array([1, 2, 3]), mx.nd.array([5, 0, -5])
    update = mx.optimizer.get_updater(mx.optimizer.create("toy_optimizer", learning_rate=0.5, momentum=0.5))
    update(0, grad, weight)
    assert weight.asnumpy().tolist() == [0.5, 2, 3.5]
    update(0, grad, weight)
    assert weight.asnumpy().tolist() == [-0.25, 2, 4.25]


def test_it_trains():
    net = gluon.nn.Dense(1, in_units=2)
    net.initialize(mx.init.Zero())
    trainer = gluon.Trainer(net.collect_params(), "toy_optimizer", {"learning_rate": 0.01})
    x = mx.nd.array([[1, 0], [0, 1], [1, 1]])
    y = mx.nd.array([[1], [-1], [0]])
    losses = []
    for _ in range(100):
        with mx.autograd.record():
            loss = gluon.loss.L2Loss()(net(x), y).mean()
        loss.backward()
        trainer.step(1)
        losses.append(loss.asscalar())
    assert losses[-1] < 0.01 < losses[0]


def test_its_states_survive_a_file(tmp_path):
    def stepped(times, load=None):
        net = gluon.nn.Dense(1, in_units=1, use_bias=False)
        net.initialize(mx.init.One())
        trainer = gluon.Trainer(net.collect_params(), "toy_optimizer", {"learning_rate": 0.25, "momentum": 0.5})
        if load:
            net.load_parameters(load[0])
            trainer.load_states(load[1])
        for _ in range(times):
            with mx.autograd.record():
                loss = net(mx.nd.ones((1, 1))).sum()
            loss.backward()
            trainer.step(1)
        return net, trainer

    net, trainer = stepped(2)
    files = str(tmp_path / "net.params"), str(tmp_path / "net.states")
    net.save_parameters(files[0])
    trainer.save_states(files[1])
    assert stepped(1, files)[0].weight.data().asscalar() == stepped(3)[0].weight.data().asscalar()
