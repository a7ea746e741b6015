"""A small network trained beside a process that keeps one core busy: who waits must not hold up who works."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import pytest

from mxcore.testing.table import seconds

from .child import child


def medians(rounds):
    """Seconds of a step alone, and beside one busy process, after what it takes to find out."""
    import mxcore as mx

    from . import training

    step = training.stepper(mx, "mlp", True)

    def median():
        end, times = time.monotonic() + 1, []
        while time.monotonic() < end:
            step()
        for _ in range(rounds):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
        return statistics.median(times)

    alone = median()
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        return alone, median()
    finally:
        other.kill()
        other.wait()


def test_beside_a_busy_process(row, ctx, few):
    if ctx.device_type != "cpu":
        pytest.skip("threads of the CPU")
    alone, beside = child("test_waiting", f"medians({few(500)})")
    row("mlp step, a core is busy", seconds=beside, against=f"alone {seconds(alone)}", ratio=beside / alone, at_most=2)
    assert alone > 0 < beside
