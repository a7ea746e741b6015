"""What the machine can do at best: products of matrices, and bytes from and to memory; measured, in a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ... import ndarray as nd

if TYPE_CHECKING:
    from ...context import Context

__all__ = ["reached", "roofline"]

#: Rows of the matrices that are multiplied, and elements of the arrays that are copied: by whether the device computes
#: by itself, as GPUs do.
SIDE, SIZE = {False: 1024, True: 4096}, {False: 1 << 24, True: 1 << 26}
#: Seconds of each measurement.
SECONDS = 0.4


def roofline(ctx: Context) -> dict[str, float]:
    """``{'flops': …, 'bytes': …}`` a second, of float32.

    Parameters
    ----------
    ctx : Context
    """
    own = ctx.device.async_
    n, size = SIDE[own], SIZE[own]
    a, b, c = (nd.ones((n, n), ctx=ctx) for _ in range(3))
    flops = 2 * n**3 / _best(lambda: nd.dot(a, b, out=c), ctx)
    x, y, z = (nd.ones((size,), ctx=ctx) for _ in range(3))
    copied = 2 * x.size * 4 / _best(lambda: x.copyto(y), ctx)
    added = 3 * x.size * 4 / _best(lambda: nd.elemwise_add(x, y, out=z), ctx)
    return {"flops": flops, "bytes": max(copied, added)}


def _best(run: Callable[[], object], ctx: Context) -> float:
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        nd.waitall()
        if ctx.device.async_:
            ctx.device.synchronize(ctx.device_id)
        times.append(time.perf_counter() - start)
    return min(times)


def reached(flops: float, size: float, seconds: float, machine: dict[str, float]) -> float:
    """Which share of what the machine can do a piece of work of some seconds has reached.

    Parameters
    ----------
    flops, size : float
        Floating-point operations and bytes of the work: the one that takes longer bounds it.
    seconds : float
    machine : dict
        As `roofline` gives it.
    """
    return max(flops / machine["flops"], size / machine["bytes"]) / seconds if seconds else 0.0
