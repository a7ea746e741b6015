"""Eight bits beside our own float32, which they beat where the processor sums products of them, and MXNet 1.9.1's."""

from __future__ import annotations

import pytest

import mxcore as mx
from mxcore.testing.table import seconds

from . import quantized
from .peer import fastest
from .quantized import runner


def at_most():
    """The share of float32's time that is wanted: where oneDNN computes eight bits on a processor with VNNI."""
    try:
        from mxcore_onednn.library import ISA_VNNI, library
    except ImportError:
        return None
    lib = library()
    return 0.8 if lib is not None and any(lib.isa & bits == bits for bits in ISA_VNNI) else None


@pytest.mark.parametrize("case", quantized.LAYERS)
def test_layers(beside, case):
    beside(case, quantized.layer(mx, case), quantized, (case,), 10, rounds=4)


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
    row(
        f"LeNet int8, ranges: {calibration}",
        seconds=min(mine),
        against=f"float32 {seconds(min(other))}",
        ratio=ratio,
        at_most=at_most(),
    )
