"""Times on a GPU: two functions in turn, so that both meet the same clocks."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Times", "bandwidth", "in_turn"]

#: How long a round takes at least, in seconds, and how many rounds there are.
ROUND, ROUNDS = 0.02, 15


class Times(NamedTuple):
    """Seconds of one call."""

    best: float
    median: float

    def __str__(self) -> str:
        return f"{self.best * 1e6:.1f} us, median {self.median * 1e6:.1f}"


def in_turn(*functions: tuple[Callable[[], Any], Callable[[], Any]], quick: bool = False) -> list[Times]:
    """The times of several (function, what waits for it), in turn; `quick` for rehearsals."""
    counts = []
    for call, wait in functions:
        for _ in range(1 if quick else 5):
            call()  # compiled, recorded, and its memory taken
        wait()
        start = time.perf_counter()
        call()
        wait()
        once = time.perf_counter() - start
        counts.append(1 if quick else max(1, min(2000, round(ROUND / max(once, 1e-7)))))
    found: list[list[float]] = [[] for _ in functions]
    for _ in range(2 if quick else ROUNDS):
        for (call, wait), n, times in zip(functions, counts, found):
            start = time.perf_counter()
            for _ in range(n):
                call()
            wait()
            times.append((time.perf_counter() - start) / n)
    return [Times(min(times), statistics.median(times)) for times in found]


def bandwidth() -> float:
    """Bytes per second that the memory of GPU 0 gives, by its clock and width; 0 if it does not tell."""
    from cupy.cuda import runtime

    clock = runtime.deviceGetAttribute(runtime.cudaDevAttrMemoryClockRate, 0)  # kHz, two transfers each
    width = runtime.deviceGetAttribute(runtime.cudaDevAttrGlobalMemoryBusWidth, 0)  # bits
    return 2e3 * float(clock) * float(width) / 8
