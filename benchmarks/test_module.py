"""Module beside a hybridised block, and the memory of ten buckets beside that of the longest."""

from __future__ import annotations

import re

import pytest

import mxcore as mx
from mxcore.testing.table import seconds

from .child import child
from .peer import fastest
from .training import BATCH, stepper

ROUNDS = 8
LENGTHS = [10 * (i + 1) for i in range(10)]


def module_step(ctx):
    """A function that makes one step of LeNet by Module, as `training.stepper` makes one by Gluon."""
    x = mx.sym.Variable("data")
    for filters in (20, 50):
        x = mx.sym.Activation(mx.sym.Convolution(x, kernel=(5, 5), num_filter=filters), act_type="relu")
        x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    x = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=500), act_type="relu")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=10), name="softmax"), context=ctx)
    module.bind([("data", (BATCH, 1, 28, 28))], [("softmax_label", (BATCH,))])
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.01, "momentum": 0.9})
    batch = mx.io.DataBatch(
        [mx.nd.random.uniform(shape=(BATCH, 1, 28, 28))], [mx.nd.array([i % 10 for i in range(BATCH)])]
    )

    def step():
        module.forward_backward(batch)
        module.update()
        mx.nd.waitall()

    return step


def test_lenet_step(row, ctx, few):
    with ctx:
        gluon, module = stepper(mx, "lenet", hybridize=True), module_step(ctx)
        gluon(), module()
        theirs, ours = [], []
        number = few(10, module, most=3)

        def both():
            theirs.append(fastest(gluon, number))
            ours.append(fastest(module, number))

        for _ in range(few(ROUNDS, both, most=3)):
            both()
    row(
        "lenet step, Module",
        seconds=min(ours),
        against=f"hybridised {seconds(min(theirs))}",
        ratio=min(ours) / min(theirs),
        at_most=1.2,
    )


def peak():
    """The largest resident memory of this process so far, in KB (`getrusage` would tell a larger parent's)."""
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1])


def train_buckets(lengths):
    """Train an LSTM over sequences of these lengths; returns the bytes by which the process grew at most."""
    hidden, batch, words = 256, 64, 2000

    def network(length):
        cell = mx.rnn.LSTMCell(hidden, prefix="lstm_")
        embedded = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=words, output_dim=hidden, name="embed")
        outputs, _ = cell.unroll(length, inputs=embedded, merge_outputs=True)
        scores = mx.sym.FullyConnected(mx.sym.reshape(outputs, shape=(-1, hidden)), num_hidden=words, name="scores")
        return (
            mx.sym.SoftmaxOutput(scores, mx.sym.reshape(mx.sym.Variable("softmax_label"), shape=(-1,)), name="softmax"),
            ("data",),
            ("softmax_label",),
        )

    def batch_of(length):
        shapes = [("data", (batch, length))], [("softmax_label", (batch, length))]
        arrays = [[mx.nd.zeros(s) for _, s in descriptions] for descriptions in shapes]
        return mx.io.DataBatch(*arrays, bucket_key=length, provide_data=shapes[0], provide_label=shapes[1])

    small = mx.nd.ones((8, 8))
    mx.nd.dot(small, small).wait_to_read()  # what every process needs
    before = peak()
    longest = batch_of(max(lengths))
    module = mx.mod.BucketingModule(network, default_bucket_key=max(lengths))
    module.bind(longest.provide_data, longest.provide_label)
    module.init_params(mx.init.Xavier())
    module.init_optimizer()
    for _ in range(2):
        for length in lengths:
            module.forward_backward(batch_of(length))
            module.update()
        mx.nd.waitall()
    return 1024 * (peak() - before)


@pytest.mark.slow
@pytest.mark.backends("cpu")  # the memory of other devices does not show in that of the process
def test_ten_buckets(row, ctx):
    ten, longest = (child("test_module", f"train_buckets({lengths})") for lengths in (LENGTHS, LENGTHS[-1:]))
    row(
        "memory of 10 buckets",
        value=f"{ten / 1e6:.0f} MB",
        against=f"the longest {longest / 1e6:.0f} MB",
        ratio=ten / longest,
        at_most=1.2,
    )
