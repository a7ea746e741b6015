"""Figures that single operators have to meet: softmax and LayerNorm beside MXNet 1.9.1, updates beside copies."""

from __future__ import annotations

import time

import numpy as np
import pytest

import mxcore as mx

from . import figures

try:
    from mxcore_cpu import jit
except ImportError:
    jit = None

N = 1 << 24
#: Share of the bandwidth of a copy that an update has to reach.
SHARE = 0.7


@pytest.mark.parametrize("way", figures.WAYS)
@pytest.mark.parametrize("graph", figures.GRAPHS)
def test_normalization(beside, ctx, graph, way):
    with ctx:
        run = figures.runner(mx, graph, way)
        assert np.isfinite(run().asnumpy()).all()
        beside(f"{graph}, 8192 x 1024, {way}", run, figures, (graph, way), 5, rounds=5, at_most=1)


def copies(ctx, number):
    """Ways of copying an array of so many float32, by name."""
    x, y = mx.nd.ones(number, ctx=ctx), mx.nd.empty(number, ctx=ctx)
    ways = {"copyto": lambda: x.copyto(y)}
    if ctx.device_type == "cpu" and jit is not None and jit.available():
        from mxcore_cpu.kernels.columns import copy

        @jit.kernel
        def loop(first, last, x, y):
            x, y = x[first:last], y[first:last]
            for i in range(x.size):
                y[i] = x[i]

        @jit.kernel
        def block(first, last, x, y):
            copy(x, first, last - first, y, first)

        source, target = np.ones(number, np.float32), np.empty(number, np.float32)
        ways |= {"loop": lambda: loop(number, source, target), "memcpy": lambda: block(number, source, target)}
    return ways


def test_update(row, ctx, few, finish):
    """Bytes a second of sgd_mom_update, which reads three arrays and writes two, by those of the fastest copy."""
    with ctx:
        weight, grad, mom = (mx.nd.random.normal(shape=(N,)) for _ in range(3))

    def update():
        mx.nd.sgd_mom_update(weight, grad, mom, out=weight, lr=0.01, momentum=0.9, wd=1e-4)

    runs = {"update": update, **copies(ctx, N)}
    times = dict.fromkeys(runs, float("inf"))
    for _ in range(few(20)):
        for name, run in runs.items():
            finish()
            start = time.perf_counter()
            run()
            mx.nd.waitall()
            times[name] = min(times[name], time.perf_counter() - start)
    took = times.pop("update")
    how = min(times, key=times.__getitem__)
    share = (5 * N * 4 / took) / (2 * N * 4 / times[how])
    row(
        "sgd_mom_update, 16 M",
        seconds=took,
        against=f"copy ({how}) {2 * N * 4 / times[how] / 1e9:.1f} GB/s",
        value=f"{share:.0%} of it",
        wanted=f"at least {SHARE:.0%}",
        met=share >= SHARE,
    )
    assert np.isfinite(weight[:8].asnumpy()).all()
