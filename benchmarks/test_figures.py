"""Figures that single operators have to meet: softmax and LayerNorm beside MXNet 1.9.1, an optimizer's update beside a copy."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx

from .figures import GRAPHS, WAYS, fastest, runner

#: Names an interpreter that has MXNet 1.9.1.
VARIABLE = "MXCORE_ORACLE_PYTHON"
ROUNDS, STEPS = 5, 5
N = 1 << 24
#: Share of the bandwidth of a copy that an update has to reach.
SHARE = 0.7


@pytest.fixture(scope="module")
def theirs():
    """A function that asks MXNet for the fastest of some runs of a graph, or None."""
    python = os.environ.get(VARIABLE)
    if not python:
        yield None
        return
    script = Path(__file__).with_name("figures.py")
    with subprocess.Popen([python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def ask(*words):
            process.stdin.write(" ".join(map(str, words)) + "\n")
            process.stdin.flush()
            return float(process.stdout.readline())

        yield ask
        process.stdin.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_normalization(row, ctx, theirs, graph, way):
    name = f"{graph}, 8192 x 1024, {way}"
    with ctx:
        run = runner(mx, graph, way)
        assert np.isfinite(run().asnumpy()).all()
        mine, other = [], []
        for _ in range(ROUNDS):  # in turns, so that both meet the same machine
            if theirs is not None:
                other.append(theirs(graph, way.replace(" ", "_"), STEPS))
            mine.append(fastest(run, STEPS))
    if theirs is None:
        row(name, seconds=min(mine), value=f"set {VARIABLE} to compare")
    else:
        row(name, seconds=min(mine), against=f"MXNet {min(other) * 1e3:.2f} ms", ratio=min(mine) / min(other), at_most=1)


def test_update(row):
    """Bytes a second of sgd_mom_update, which reads three arrays and writes two, by those of the fastest copy of one array."""
    jit = pytest.importorskip("mxcore_cpu.jit")
    if not jit.available():
        pytest.skip(jit.reason())
    from mxcore_cpu.kernels.columns import copy

    @jit.kernel
    def loop(first, last, x, y):
        x, y = x[first:last], y[first:last]
        for i in range(x.size):
            y[i] = x[i]

    @jit.kernel
    def block(first, last, x, y):
        copy(x, first, last - first, y, first)

    with mx.cpu():
        weight, grad, mom = (mx.nd.random.normal(shape=(N,)) for _ in range(3))
        x, y = np.ones(N, np.float32), np.empty(N, np.float32)

        def update():
            mx.nd.sgd_mom_update(weight, grad, mom, out=weight, lr=0.01, momentum=0.9, wd=1e-4)
            weight.wait_to_read()

        runs = {"update": update, "loop": lambda: loop(N, x, y), "memcpy": lambda: block(N, x, y), "NumPy": lambda: np.copyto(y, x)}
        times = dict.fromkeys(runs, float("inf"))
        for _ in range(20):
            for name, run in runs.items():
                start = time.perf_counter()
                run()
                times[name] = min(times[name], time.perf_counter() - start)
    how = min(("loop", "memcpy", "NumPy"), key=times.__getitem__)
    share = (5 * N * 4 / times["update"]) / (2 * N * 4 / times[how])
    row("sgd_mom_update, 16 M", seconds=times["update"], against=f"copy ({how}) {2 * N * 4 / times[how] / 1e9:.1f} GB/s",
        value=f"{share:.0%} of it", wanted=f"at least {SHARE:.0%}", met=share >= SHARE)  # fmt: skip
