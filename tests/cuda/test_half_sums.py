"""Sums of half precision on a GPU: of kernels, and of bodies on its array namespace."""

import pytest

from ..ops.test_half_sums import CALLS, DTYPES, units


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name",
    ["LayerNorm", "LayerNorm of many rows", "GroupNorm", "InstanceNorm", "Embedding", "take", "Pad edge", "np.trace"],
)
def test_calls_lose_nothing_but_one_rounding(gpus, name, dtype):
    fn, *arrays = CALLS[name]
    with gpus[0]:
        assert units(fn, arrays, dtype) < 2
