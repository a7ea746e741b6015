"""Training steps of recurrent networks beside MXNet 1.9.1's."""

from __future__ import annotations

import pytest

import mxcore as mx

from . import recurrent


@pytest.mark.parametrize(
    "case, at_most, number",
    [
        ("lstm", 1.5, 10),
        ("lstm, eager", 1.5, 10),
        ("lstm, unrolled cells", None, 3),
        ("lstm, layer", 0.8, 10),
        ("lstm, hybridised cells", 1, 3),
        ("lstm, both directions", 1.5, 5),
        ("lstm, small", 1.5, 50),
        ("gru", 1.5, 10),
        ("gru, layer", 0.8, 10),
        ("rnn_tanh", 1.5, 10),
    ],
)
def test_step(beside, ctx, case, at_most, number):
    with ctx:
        step, value = recurrent.stepper(mx, case)
        step()
        first = value()
        beside(f"{case} step", step, recurrent, (case,), number, at_most=at_most)
        assert value() < first
