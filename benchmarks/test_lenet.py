"""A training step of LeNet: ours eager, beside MXNet 1.9.1's hybridised where there is one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import mxcore as mx

from .lenet import fastest, stepper

#: Names an interpreter that has MXNet 1.9.1.
VARIABLE = "MXCORE_ORACLE_PYTHON"
ROUNDS, STEPS = 8, 10


@pytest.fixture
def theirs():
    """A function that asks MXNet for the fastest of some steps, or None."""
    python = os.environ.get(VARIABLE)
    if not python:
        yield None
        return
    script = Path(__file__).with_name("lenet.py")
    with subprocess.Popen([python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def ask(number):
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            return float(process.stdout.readline())

        yield ask
        process.stdin.close()


def test_lenet_step(row, ctx, theirs):
    with ctx:
        ours = stepper(mx, hybridize=False)
        first = ours()
        mine, other = [], []
        for _ in range(ROUNDS):  # in turns, so that both meet the same machine
            if theirs is not None:
                other.append(theirs(STEPS))
            mine.append(fastest(ours, STEPS))
        assert ours() < first
    if theirs is None:
        row("LeNet step, eager", seconds=min(mine), value=f"set {VARIABLE} to compare")
    else:
        row("LeNet step, eager", seconds=min(mine), against=f"MXNet hybridised {min(other) * 1e3:.1f} ms",
            ratio=min(mine) / min(other), at_most=2)  # fmt: skip
