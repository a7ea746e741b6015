"""What binding a graph costs, what its memory is, and what a node of a lowered program adds to its kernel."""

from __future__ import annotations

import time

import pytest

import mxcore as mx
from mxcore.executor import passes_off

#: MB that MXNet 1.9.1's executor tells for the training graph of ResNet-50 v1 (`debug_str`), by batch.
PLANNED = {4: 346, 32: 2772}


def resnet50():
    net = mx.gluon.model_zoo.vision.resnet50_v1(prefix="resnet_")
    return mx.sym.SoftmaxOutput(net(mx.sym.Variable("data")), name="softmax")


def test_bind(row, ctx):
    """ResNet-50 for training: the first time, again, and the bytes that were planned."""
    mx.nd.ones((2, 2), ctx=ctx).asnumpy()  # plugins are loaded
    net, times = resnet50(), []
    for _ in range(2):
        start = time.perf_counter()
        ex = net.simple_bind(ctx, data=(4, 3, 224, 224))
        text = ex.debug_str()
        times.append(time.perf_counter() - start)
    row("bind of ResNet-50", seconds=times[0], wanted="at most 2 s", met=times[0] <= 2)
    row("bind of ResNet-50, the same again", seconds=times[1], wanted="at most 0.3 s", met=times[1] <= 0.3)
    mega = int(text.split("\n")[-3].split()[1])  # as scripts read it
    row(
        "memory of ResNet-50, batch 4",
        value=f"{mega} MB",
        against=f"MXNet {PLANNED[4]} MB",
        ratio=mega / PLANNED[4],
        at_most=1.1,
    )
    assert mega > 0


@pytest.mark.slow
def test_first_step(row, ctx):
    """Forward and backward of ResNet-50 for the first time in this process: kernels are compiled or loaded."""
    ex = resnet50().simple_bind(ctx, data=(1, 3, 64, 64))
    start = time.perf_counter()
    ex.forward(is_train=True)
    ex.backward()
    mx.nd.waitall()
    row(
        "first step of ResNet-50, 64 x 64",
        seconds=time.perf_counter() - start,
        wanted="at most 15 s",
        met=time.perf_counter() - start <= 15,
    )


def chain(n):
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    for i in range(n):
        x = x + w if i % 2 else x - w
    return x


def best(f, rounds, finish):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        f()
        finish()
        times.append(time.perf_counter() - start)
    return min(times)


def test_node(row, ctx, few, finish):
    """A thousand additions of 4 x 4: program beside the bare calls that it makes."""
    with passes_off():
        short, long = (chain(n).simple_bind(ctx, x=(4, 4), w=(4, 4), grad_req="null") for n in (10, 1010))
    for ex in (short, long):
        ex.forward()
    xp = ctx.device.xp
    (a, out), add = (mx.nd.ones((4, 4), ctx=ctx)._data for _ in range(2)), xp.add

    def bare():
        for _ in range(1000):
            add(a, a, out=out)

    def cost_of_all():
        return best(long.forward, rounds, finish) - best(short.forward, rounds, finish) - best(bare, rounds, finish)

    rounds = few(20, long.forward)
    cost = min(cost_of_all() for _ in range(few(5))) / 1000
    row("a node above its kernel", seconds=max(cost, 0), wanted="at most 0.33 us", met=cost <= 0.33e-6)
