"""Training with a decaying learning rate, or with ever new shapes, neither grows a cache nor leaks."""

import gc
import os
import subprocess
import sys

import pytest

import mxcore as mx

PROGRAM = """
import os
import mxcore as mx
x, b, mom = mx.nd.ones((4, 4)), mx.nd.ones((4, 4)), mx.nd.zeros((4, 4))
x.attach_grad()

def rss():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def steps(first, last):
    for i in range(first, last):
        with mx.autograd.record():
            y = (x * (1 + 1 / (i + 1)) + b).sum()
        y.backward()
        mx.nd.sgd_mom_update(x, x.grad, mom, out=x, lr=0.1 / (i + 1), momentum=0.9, wd=1e-4 / (i + 1))

steps(0, 3000)
before = rss()
steps(3000, 23000)
print(rss() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads its memory from /proc")
def test_no_growth_over_many_steps():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert int(done.stdout) < 1 << 20, done.stdout + done.stderr


SHAPES = """
import os
import random
import mxcore as mx
from mxcore.gluon import nn

def rss():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

net = nn.HybridSequential()
net.add(nn.Dense(8, activation="relu", flatten=False, in_units=4), nn.Dense(2, flatten=False, in_units=8))
net.initialize()
net.hybridize()
shapes = [(a, b, 4) for a in range(1, 150) for b in range(1, 150)]
random.Random(0).shuffle(shapes)

def steps(first, last):
    for shape in shapes[first:last]:
        x = mx.nd.ones(shape)
        x.attach_grad()
        with mx.autograd.record():
            y = net(x).sum()
        y.backward()

steps(0, 1000)
before = rss()
steps(1000, 4000)
print(rss() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads its memory from /proc")
def test_no_growth_over_many_shapes():
    """Arrays of ever new sizes use the memory of those before."""
    done = subprocess.run([sys.executable, "-c", SHAPES], capture_output=True, text=True)
    assert int(done.stdout) < 40, done.stdout + done.stderr


def test_fused_operators_go_with_their_programs():
    """More shapes than are kept, again and again."""

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.exp(F.tanh(x) * 2 + F.exp(-x)) / (x + 3)

    net = Net()
    net.hybridize()

    def alive():
        gc.collect()
        return sum(type(o).__name__ == "Op" for o in gc.get_objects())

    def turn():
        for n in range(100, 170):
            net(mx.nd.ones((n, 20)))
        return alive()

    turn()
    first = turn()
    turn()
    assert turn() <= first + 5
