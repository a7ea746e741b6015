"""Training steps of small networks, written so that MXNet and mxcore run the same lines.

Run by an interpreter that has MXNet, it is MXNet's side of the comparison.
"""

from __future__ import annotations

from .peer import serve

BATCH = 64


def lenet(nn):
    """LeNet with 20 and 50 filters, for images of 28 x 28."""
    return (
        nn.Conv2D(20, kernel_size=5, activation="relu"),
        nn.MaxPool2D(pool_size=2, strides=2),
        nn.Conv2D(50, kernel_size=5, activation="relu"),
        nn.MaxPool2D(pool_size=2, strides=2),
        nn.Dense(500, activation="relu"),
        nn.Dense(10),
    )


def mlp(nn):
    """A perceptron 784-128-64-10."""
    return nn.Dense(128, activation="relu"), nn.Dense(64, activation="relu"), nn.Dense(10)


#: Name -> (layers, shape of the input)
NETWORKS = {"lenet": (lenet, (BATCH, 1, 28, 28)), "mlp": (mlp, (BATCH, 784))}


def stepper(mx, network, hybridize):
    """A function that makes one step of training a network with a batch of 64, and waits for it."""
    layers, shape = NETWORKS[network]
    mx.random.seed(0)
    net = mx.gluon.nn.HybridSequential()
    net.add(*layers(mx.gluon.nn))
    net.initialize(mx.init.Xavier())
    if hybridize:
        net.hybridize(static_alloc=True, static_shape=True)
    return classifying(mx, net, shape, 0.01, hybridize)


def classifying(mx, net, shape, rate, hybridize):
    """A function that makes one step of training a classifier with a batch of ten classes."""
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    if hybridize:
        loss.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": rate, "momentum": 0.9})
    x = mx.nd.random.uniform(shape=shape)
    y = mx.nd.array([i % 10 for i in range(shape[0])])
    return step_of(mx, trainer, shape[0], lambda: loss(net(x), y))


def step_of(mx, trainer, batch, forward, *head):
    """A function that makes one step of training, waits for it, and gives what `forward` gave."""

    def step():
        with mx.autograd.record():
            value = forward()
        value.backward(*head)
        trainer.step(batch)
        mx.nd.waitall()
        return value

    return step


if __name__ == "__main__":
    import mxnet

    serve(lambda network: stepper(mxnet, network, hybridize=True))
