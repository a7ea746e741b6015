"""How long a model takes, and what memory it has."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from ...executor.costs import program_of

if TYPE_CHECKING:
    from ...executor import Executor
    from .subject import Subject

__all__ = ["memory", "run_times", "summary", "timed", "warm"]

#: Seconds and runs at most, unless told, and runs at least.
SECONDS, MOST, LEAST = 2.0, 200, 3
#: Seconds of a first run from which nothing is done twice to warm it up.
SLOW = 1.0


def warm(run: Callable[[], None]) -> float:
    """Run something until it is compiled and its memory is there; the seconds of the last run."""
    took = 0.0
    for _ in range(3):
        start = time.perf_counter()
        run()
        took = time.perf_counter() - start
        if took > SLOW:
            break
    return took


def run_times(run: Callable[[], None], repeat: int | None) -> list[float]:
    """Seconds of so many runs, or of as many as fit.

    Parameters
    ----------
    run : callable
    repeat : int or None
    """
    took = warm(run)
    number = repeat or min(max(int(SECONDS / max(took, 1e-9)), LEAST), MOST)
    return [timed(run) for _ in range(number)]


def timed(run: Callable[[], None]) -> float:
    """Seconds of one run.

    Parameters
    ----------
    run : callable
    """
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def summary(times: Sequence[float], batch: int) -> dict[str, float]:
    """Best and median of some runs, and samples a second at best.

    Parameters
    ----------
    times : list of float
    batch : int
    """
    return {"runs": len(times), "best": min(times), "median": median(times), "samples_per_second": batch / min(times)}


def memory(model: Subject, bound: Executor) -> dict[str, Any]:
    """Bytes of the arrays, those planned for temporary results, and the largest share of this process.

    Parameters
    ----------
    model : Subject
    bound : Executor
    """
    program = program_of(bound, model.train)
    found: dict[str, Any] = {"arrays": model.bytes, "temporary": program.nbytes + program.scratch}
    device, index = model.ctx.device, model.ctx.device_id
    if device.async_:
        free, total = device.memory(index)
        found["device"] = total - free
    try:
        import resource
        import sys

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found["process_peak"] = peak if sys.platform == "darwin" else peak * 1024
    except ImportError:  # Windows has none
        pass
    return found
