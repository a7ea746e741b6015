"""Training steps of small networks, eager and hybridised, beside MXNet 1.9.1's hybridised ones where there is one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import mxcore as mx

from .training import fastest, stepper

#: Names an interpreter that has MXNet 1.9.1.
VARIABLE = "MXCORE_ORACLE_PYTHON"
ROUNDS = 8


@pytest.fixture
def theirs():
    """A function that asks MXNet for the fastest of some steps of a network, or None."""
    python = os.environ.get(VARIABLE)
    if not python:
        yield None
        return
    script = Path(__file__).with_name("training.py")
    with subprocess.Popen([python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def ask(network, number):
            process.stdin.write(f"{network} {number}\n")
            process.stdin.flush()
            return float(process.stdout.readline())

        yield ask
        process.stdin.close()


@pytest.mark.parametrize(
    "network, hybridize, at_most, steps",
    [("lenet", False, 2, 10), ("lenet", True, 1.5, 10), ("mlp", True, 1, 50)],
    ids=["lenet-eager", "lenet-hybridised", "mlp-hybridised"],
)
def test_step(row, ctx, theirs, network, hybridize, at_most, steps):
    name = f"{network} step, {'hybridised' if hybridize else 'eager'}"
    with ctx:
        ours = stepper(mx, network, hybridize)
        first = float(ours().mean().asscalar())
        mine, other = [], []
        for _ in range(ROUNDS):  # in turns, so that both meet the same machine
            if theirs is not None:
                other.append(theirs(network, steps))
            mine.append(fastest(ours, steps))
        assert float(ours().mean().asscalar()) < first
    if theirs is None:
        row(name, seconds=min(mine), value=f"set {VARIABLE} to compare")
    else:
        row(name, seconds=min(mine), against=f"MXNet hybridised {min(other) * 1e3:.2f} ms",
            ratio=min(mine) / min(other), at_most=at_most)  # fmt: skip
