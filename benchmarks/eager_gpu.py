"""What the host does for an eager call on a GPU: emulated, where launches do nothing and memory is NumPy's."""

from __future__ import annotations

import timeit

import numpy as np

import mxcore as mx
from mxcore_cuda.drivers import driver
from mxcore_cuda.emulation.arrays import EmulatedArray

__all__ = ["seconds_of_adding"]

SHAPE = 4, 4


def _empty_launches():
    """Take from the emulated driver what only emulation costs: launches that wait, memory that is watched."""
    d = driver()
    block = d.empty((1,), np.float32, 0).block
    d.empty = lambda shape, dtype, index: EmulatedArray(np.empty(shape, dtype), block, ptr=block.start)
    type(d).launch = lambda *arguments: None  # kernels hold it from when they are made


def seconds_of_adding(number, rounds):
    """The fastest ``a + b``: (on the CPU, on a GPU), measured in turns."""
    _empty_launches()
    calls = []
    for ctx in (mx.cpu(), mx.gpu(0)):
        a, b = mx.nd.ones(SHAPE, ctx=ctx), mx.nd.ones(SHAPE, ctx=ctx)
        a + b
        calls.append(lambda a=a, b=b: a + b)
    found = [[timeit.timeit(call, number=number) / number for call in calls] for _ in range(rounds)]
    return [min(times) for times in zip(*found, strict=True)]
