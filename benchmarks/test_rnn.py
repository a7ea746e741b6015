"""Training steps of recurrent networks beside MXNet 1.9.1's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import mxcore as mx

from .recurrent import fastest, stepper
from .test_training import VARIABLE

ROUNDS = 8


@pytest.fixture
def theirs():
    """A function that asks MXNet for the fastest of some steps of a case, or None."""
    python = os.environ.get(VARIABLE)
    if not python:
        yield None
        return
    script = Path(__file__).with_name("recurrent.py")
    with subprocess.Popen([python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def ask(case, number):
            process.stdin.write(f"{case} {number}\n")
            process.stdin.flush()
            return float(process.stdout.readline())

        yield ask
        process.stdin.close()


@pytest.mark.parametrize(
    "case, at_most, number",
    [("lstm", 1.5, 10), ("lstm, eager", 1.5, 10), ("lstm, unrolled cells", None, 3), ("lstm, both directions", 1.5, 5),
     ("lstm, small", 1.5, 50), ("gru", 1.5, 10), ("rnn_tanh", 1.5, 10)],
)  # fmt: skip
def test_step(row, ctx, theirs, case, at_most, number):
    with ctx:
        step, value = stepper(mx, case)
        step()
        first = value()
        mine, other = [], []
        for _ in range(ROUNDS):  # in turns, so that both meet the same machine
            if theirs is not None:
                other.append(theirs(case, number))
            mine.append(fastest(step, number))
        assert value() < first
    if theirs is None:
        row(f"{case} step", seconds=min(mine), value=f"set {VARIABLE} to compare")
    else:
        row(f"{case} step", seconds=min(mine), against=f"MXNet {min(other) * 1e3:.2f} ms",
            ratio=min(mine) / min(other), at_most=at_most)  # fmt: skip
