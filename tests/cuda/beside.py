"""What kernels compute beside the cases of operators in `test_kernels`: name -> function of a dtype, which compares."""

from collections.abc import Callable

import numpy as np

import mxcore as mx
from mxcore.philox import Rng
from mxcore_cuda.rng import Philox
from mxcore_cuda.sums import sum_each

from . import test_elementwise as elementwise

__all__ = ["BESIDE"]


def sums(dtype: str) -> None:
    """Groups of one array and of several, of a few elements and over many blocks; whole numbers wrap around."""
    rs, device = np.random.RandomState(0), mx.gpu(0).device
    for kind in (dtype, "int8", "int64"):
        low, high = (-1, 1) if kind == dtype else (np.iinfo(kind).min, np.iinfo(kind).max)
        parts = [
            [rs.uniform(low, high, n).astype(kind) for _ in range(k)]
            for n, k in [(1, 1), (33, 3), (0, 2), (7001, 3), (5, 1)]
        ]
        outs = [device.empty(some[0].shape, some[0].dtype, 0) for some in parts]
        sum_each(0, [(out, [device.from_host(a, 0) for a in some]) for out, some in zip(outs, parts)])
        for out, some in zip(outs, parts):
            wanted = some[0]
            for a in some[1:]:
                wanted = wanted + a
            np.testing.assert_array_equal(device.to_host(out), wanted)


def bits(dtype: str) -> None:
    """Words of random numbers, which have no dtype; from the middle of a block of them, too."""
    device, key = mx.gpu(0).device, (2**64 - 5, 1, 3)
    here, there = Rng(mx.cpu().device, key, 0), Philox(device, key, 0)
    for n in (1, 3, 2001):
        np.testing.assert_array_equal(device.to_host(there.bits(n)), here.bits(n))


def each(op: str) -> Callable[[str], None]:
    """An elementwise operator, over one element and over several blocks."""

    def compare(dtype: str) -> None:
        for shape in ((1,), (3, 171)):
            elementwise.compare(op, dtype, elementwise.inputs(shape))

    return compare


BESIDE = {"sums": sums, "bits": bits} | {op: each(op) for op in elementwise.OPS}
