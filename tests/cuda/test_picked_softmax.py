"""A loss of classes computes on a GPU, too, no more logarithms than it picks: the same numbers."""

from contextlib import nullcontext

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon
from mxcore.executor import passes_off
from mxcore.testing.ways import kernels_reached, without_kernels_of

JOINED = {"_pick_log_softmax", "_backward_pick_log_softmax"}
APART = {"log_softmax", "pick", "_backward_pick", "_backward_log_softmax"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_loss_of_gluon(gpus, dtype):
    rng, found, ran = np.random.default_rng(2), [], []
    values, labels, weights = rng.standard_normal((6, 9)) * 3, rng.integers(0, 9, 6), rng.random((6, 1))
    for off in (True, False):
        x, t, weight = (mx.nd.array(a, ctx=gpus[1], dtype=dtype) for a in (values, labels, weights))
        x.attach_grad()
        loss = gluon.loss.SoftmaxCrossEntropyLoss()
        loss.hybridize()
        with passes_off("picked_softmax") if off else nullcontext(), kernels_reached() as reached:
            for _ in range(3):
                with autograd.record():
                    value = loss(x, t, weight)
                value.backward()
            mx.nd.waitall()
        ran.append(reached & (JOINED | APART))
        found.append((value.asnumpy(), x.grad.asnumpy()))
    assert ran == [APART, JOINED]
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("without", [True, False])
def test_where_there_are_no_kernels_all_stays(gpus, without):
    rows = 1 + without  # another program
    data, label = mx.nd.array([[1.0, 2, 3]] * rows, ctx=gpus[0]), mx.nd.array([1] * rows, ctx=gpus[0])
    symbol = mx.sym.pick(mx.sym.log_softmax(mx.sym.Variable("data")), mx.sym.Variable("label"))
    with without_kernels_of("cuda") if without else nullcontext():
        executor = symbol.bind(gpus[0], {"data": data, "label": label})
        values = executor.forward()[0].asnumpy()
        names = {step.op.name for step in executor._instance(False, False)[0].program.steps}
    np.testing.assert_allclose(values, -1.4076059, rtol=1e-6)
    assert names == ({"log_softmax", "pick"} if without else {"_pick_log_softmax"})
