"""LeNet over eight bits beside our own float32: measured, for being faster is the part of int8 kernels to come."""

from __future__ import annotations

import pytest

import mxcore as mx
from mxcore.testing.table import seconds

from .peer import fastest
from .quantized import runner


@pytest.mark.parametrize("calibration", ["none", "naive"])
def test_lenet(benchmark, row, few, calibration):
    whole, floats = runner(mx, calibration), runner(mx, None)
    number = few(20, whole)
    mine, other = [], []
    benchmark.pedantic(
        lambda: mine.append(fastest(whole, number)),
        setup=lambda: other.append(fastest(floats, number)),
        rounds=few(6, whole),
        iterations=1,
    )
    ratio = min(mine) / min(other)
    row(f"LeNet int8, ranges: {calibration}", seconds=min(mine), against=f"float32 {seconds(min(other))}", ratio=ratio)
