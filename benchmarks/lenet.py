"""One training step of LeNet, written so that MXNet and mxcore run the same lines.

Run by an interpreter that has MXNet, this file is its side of the comparison: for each number read from the standard
input it makes so many steps and writes the fastest one's seconds.
"""

from __future__ import annotations

import sys
import time

BATCH = 64


def stepper(mx, hybridize):
    """A function that makes one step of training LeNet (20 and 50 filters, 28 x 28, batch 64) and waits for it."""
    mx.random.seed(0)
    nn = mx.gluon.nn
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(20, kernel_size=5, activation="relu"), nn.MaxPool2D(pool_size=2, strides=2),
        nn.Conv2D(50, kernel_size=5, activation="relu"), nn.MaxPool2D(pool_size=2, strides=2),
        nn.Dense(500, activation="relu"), nn.Dense(10),
    )  # fmt: skip
    net.initialize(mx.init.Xavier())
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    if hybridize:
        net.hybridize(static_alloc=True, static_shape=True)
        loss.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})
    x = mx.nd.random.uniform(shape=(BATCH, 1, 28, 28))
    y = mx.nd.array([i % 10 for i in range(BATCH)])

    def step():
        with mx.autograd.record():
            value = loss(net(x), y)
        value.backward()
        trainer.step(BATCH)
        mx.nd.waitall()
        return float(value.mean().asscalar())

    return step


def fastest(step, number):
    """Seconds of the fastest of some steps."""
    times = []
    for _ in range(number):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    import mxnet

    theirs = stepper(mxnet, hybridize=True)
    theirs()
    for line in sys.stdin:
        print(fastest(theirs, int(line)), flush=True)
