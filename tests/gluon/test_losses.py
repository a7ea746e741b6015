"""Every loss: value and gradient as in MXNet 1.9.1, eager and hybridised."""

import os

import numpy as np
import pytest

import mxcore as mx
from mxcore.gluon import loss as losses

from . import cases

with np.load(os.path.join(os.path.dirname(__file__), "golden", "losses.npz")) as _file:
    GOLDEN = dict(_file)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("i", range(len(GOLDEN) // 2))
def test_loss_is_as_in_mxnet(i, hybrid):
    name, kw, args = cases.losses(mx)[i]
    loss = getattr(losses, name)(**kw)
    if hybrid and name != "SDMLLoss" and all(a is not None for a in args):
        loss.hybridize()
    value, gradient = cases.run_loss(loss, args, mx)
    assert value.shape == GOLDEN[f"{i}.value"].shape
    np.testing.assert_allclose(value, GOLDEN[f"{i}.value"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradient, GOLDEN[f"{i}.gradient"], rtol=1e-4, atol=1e-5)


def test_printed_form():
    assert repr(losses.L2Loss()) == "L2Loss(batch_axis=0, w=1.0)"
    assert repr(losses.SoftmaxCELoss(weight=2, batch_axis=1)) == "SoftmaxCrossEntropyLoss(batch_axis=1, w=2)"
    assert losses.SoftmaxCELoss().name.startswith("softmaxcrossentropyloss")


def test_full_poisson_loss():
    pred, counts = np.array([[0.5, 1.0, 2.0]], "float32"), np.array([[0, 1, 5]], "float32")
    loss = losses.PoissonNLLLoss(compute_full=True)
    p = mx.nd.array(pred)
    p.attach_grad()
    with mx.autograd.record():
        value = loss(p, mx.nd.array(counts))
    value.backward()
    stirling = np.array([0, 0, 5 * np.log(5) - 5 + 0.5 * np.log(2 * np.pi * 5)])
    np.testing.assert_allclose(value.asscalar(), (np.exp(pred) - counts * pred + stirling).mean(), rtol=1e-5)
    np.testing.assert_allclose(p.grad.asnumpy(), (np.exp(pred) - counts) / 3, rtol=1e-5)


def test_extreme_scores_stay_finite():
    pred, label = mx.nd.array([[-1e4, 1e4]]), mx.nd.array([[0, 1]])
    assert losses.SigmoidBCELoss()(pred, label).asscalar() == 0
    assert np.isfinite(losses.LogisticLoss()(pred, 1 - 2 * label).asscalar())


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: losses.L2Loss(weight="heavy"), ["weight", "heavy"]),
        (lambda: losses.LogisticLoss(label_format="ternary"), ["ternary"]),
        (lambda: losses.CTCLoss(layout="CTN"), ["layout", "CTN"]),
        (lambda: losses.SDMLLoss()(mx.nd.ones((2, 3)), mx.nd.ones((2, 4))), ["(2, 3)", "(2, 4)"]),
    ],
)
def test_bad_arguments_are_named(make, words):
    with pytest.raises(mx.base.MXNetError) as e:
        make()
    assert all(w in str(e.value) for w in words), str(e.value)
