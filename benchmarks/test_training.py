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
