"""What the profiler costs: nothing while it is off, and little while it is on."""

from __future__ import annotations

import time

import pytest

import mxcore as mx
from mxcore.testing.table import seconds


@pytest.fixture
def both(row, few, finish, tmp_path):
    """Measure a function with the profiler on and off, in turns; the fastest round of each counts."""
    profiler = mx.profiler
    profiler.set_config(filename=str(tmp_path / "p.json"))

    def timed(fn, number):
        fn()  # plans are made anew after a change of state
        start = time.perf_counter()
        for _ in range(number):
            fn()
        finish()
        return (time.perf_counter() - start) / number

    def measure(name, fn, number, rounds=30):
        number = few(number, fn, most=number // 10)
        timed(fn, number)
        off = on = float("inf")
        try:
            for _ in range(few(rounds)):
                off = min(off, timed(fn, number))
                profiler.start()
                on = min(on, timed(fn, number))
                profiler.stop()
                profiler.dumps(reset=True)
        finally:
            profiler.stop()
        row(f"{name}, profiler on", seconds=on, against=f"off {seconds(off)}", ratio=on / off, at_most=1.5)
        return on / off

    return measure


def test_eager(both, ctx):
    a, b = mx.nd.ones((4, 4), ctx=ctx), mx.nd.full((4, 4), 3, ctx=ctx)
    assert both("a + b, 4 x 4", lambda: a + b, 5000) > 0


def test_record_and_backward(both, ctx):
    x = mx.nd.ones((4, 4), ctx=ctx)
    x.attach_grad()

    def step():
        with mx.autograd.record():
            y = (x * 2 + 1).sum()
        y.backward()

    assert both("record + backward of (x*2+1).sum()", step, 1000) > 0


def test_program(both, ctx):
    x = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=64, name="fc1")
    net = mx.sym.FullyConnected(mx.sym.Activation(x, act_type="tanh"), num_hidden=10, name="fc2")
    exe = net.simple_bind(ctx, x=(16, 64), grad_req="null")
    assert both("forward of an MLP, 16 x 64", exe.forward, 1000) > 0
