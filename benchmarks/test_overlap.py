"""Two independent chains of heavy work on two contexts, one compute thread each."""

from __future__ import annotations

import pytest

from mxcore.testing.table import seconds

from .child import child

ONE_THREAD = dict.fromkeys(("MXCORE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def chains(device, rounds):
    """Seconds of the two chains one after the other, and side by side."""
    import time

    import mxcore as mx

    start = [mx.nd.random.uniform(-1, 1, shape=(600, 600), ctx=mx.Context(device, i)) for i in range(2)]

    def chain(x):
        for _ in range(6):
            x = mx.nd.tanh(mx.nd.dot(x, x) * 0.01)
        return x

    def serial():
        for x in start:
            chain(x).wait_to_read()

    def together():
        for y in [chain(x) for x in start]:
            y.wait_to_read()

    times = {serial: [], together: []}
    for _ in range(rounds):
        for run in times:
            begin = time.perf_counter()
            run()
            mx.nd.waitall()
            times[run].append(time.perf_counter() - begin)
    return [min(t) for t in times.values()]


def test_two_contexts(row, ctx, few):
    if ctx.device.count() < 2:
        pytest.skip(f"there is one {ctx.device_type}")
    # A process of its own: how many threads BLAS takes is settled when it loads.
    serial, together = child("test_overlap", f"chains({ctx.device_type!r}, {few(20)})", **ONE_THREAD)
    row(
        "two chains on two contexts",
        seconds=together,
        against=f"one by one {seconds(serial)}",
        ratio=together / serial,
        at_most=0.65,
    )
    assert together > 0
