"""Training steps of small networks, eager and hybridised, beside MXNet 1.9.1's hybridised ones where there is one."""

from __future__ import annotations

import pytest

import mxcore as mx

from . import training


@pytest.mark.parametrize(
    "network, hybridize, at_most, steps",
    [("lenet", False, 2, 10), ("lenet", True, 1.5, 10), ("mlp", True, 1, 50)],
    ids=["lenet-eager", "lenet-hybridised", "mlp-hybridised"],
)
def test_step(beside, ctx, network, hybridize, at_most, steps):
    with ctx:
        step = training.stepper(mx, network, hybridize)
        first = float(step().mean().asscalar())
        beside(
            f"{network} step, {'hybridised' if hybridize else 'eager'}",
            step,
            training,
            (network,),
            steps,
            at_most=at_most,
        )
        assert float(step().mean().asscalar()) < first


@pytest.mark.parametrize("rule, at_most", [("sgd", 0.85), ("adam", 0.85)])
def test_weights_that_move_together(compare, ctx, rule, at_most):
    """A step of the six weights of a small network in one call, beside a call for each."""
    shapes = [(128, 784), (128,), (64, 128), (64,), (10, 64), (10,)]
    settings = {"momentum": 0.9} if rule == "sgd" else {}
    weights, grads = ([mx.nd.ones(shape, ctx=ctx) for shape in shapes] for _ in range(2))
    together, alone = (mx.optimizer.get_updater(mx.optimizer.create(rule, **settings)) for _ in range(2))
    index = list(range(len(shapes)))

    def one_by_one():
        for i, g, w in zip(index, grads, weights):
            alone(i, g, w)

    compare(
        f"{rule}: 6 weights at once",
        lambda: together(index, grads, weights),
        one_by_one,
        50,
        at_most=at_most,
        against="one by one",
    )
