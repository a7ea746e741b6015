"""How long a model takes, and each of its nodes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from ... import profiler
from ...executor import passes_off
from ...executor.costs import costs, program_of
from ...executor.passes.settings import Settings
from ...profiler.record import recorder
from .machine import reached

if TYPE_CHECKING:
    from ...executor import Executor
    from .subject import Subject

__all__ = ["memory", "nodes", "operators", "run_times", "summary", "timed", "warm"]

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
    found: dict[str, Any] = {"arrays": model.bytes, "temporary": program_of(bound, model.train).nbytes}
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


def nodes(
    model: Subject, bound: Executor, machine: dict[str, float], repeat: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Every node with the seconds it takes in a run, longest first, from the profiler; operator by operator.

    Parameters
    ----------
    model : Subject
    bound : Executor
    machine : dict
        As `machine.roofline` gives it.
    repeat : int
        Runs that are profiled, 20 at most.

    Returns
    -------
    nodes : list of dict
    apart : list of str
        The graph passes that are left out for it, since they compute several operators at once.
    """
    steps = program_of(bound, model.train).steps
    late = [*Settings.now().late] if any(hasattr(step.op, "bind") for step in steps) else []
    if late:
        with passes_off(*late):
            bound = model.bind()
    repeat, run = min(repeat, 20), model.runner(bound)
    work: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for cost in costs(program_of(bound, model.train)):
        work[cost.op, cost.node].append(cost)
    profiler.set_config(profile_memory=False, profile_api=False, profile_imperative=False)
    profiler.start()
    try:
        run()  # bound anew for who watches
        recorder.clear()
        for _ in range(repeat):
            run()
        events = recorder.snapshot()
    finally:
        profiler.stop()
        recorder.clear()
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    for label, begin, end, _, _ in events:
        if label.section == "operator" and label.args and "node" in label.args:
            taken[label.name, label.args["node"]].append((end - begin) / 1e9)
    return sorted(_nodes(taken, work, repeat, machine), key=lambda n: -n["seconds"]), late


def _nodes(taken: Any, work: Any, repeat: int, machine: dict[str, float]) -> Iterable[dict[str, Any]]:
    for (op, node), times in taken.items():
        found, seconds = work.get((op, node), []), sum(times) / repeat
        flops, size = sum(c.flops for c in found), sum(c.bytes for c in found)
        yield {
            "op": op,
            "node": node,
            "calls": round(len(times) / repeat),
            "seconds": seconds,
            "flops": flops,
            "bytes": size,
            "reached": reached(flops, size, seconds, machine),
            "shapes": [list(s) if s is not None else None for c in found[:1] for s in c.shapes],
            "by": found[0].owner if found else "",
        }


def operators(found: Iterable[dict[str, Any]], machine: dict[str, float]) -> list[dict[str, Any]]:
    """The nodes of each operator taken together, longest first.

    Parameters
    ----------
    found : list of dict
        As `nodes` gives them.
    machine : dict
    """
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    sums = ("calls", "seconds", "flops", "bytes")
    for node in found:
        row = rows.setdefault((node["op"], node["by"]), {"op": node["op"], "by": node["by"], **dict.fromkeys(sums, 0)})
        row["ideal"] = row.get("ideal", 0) + node["reached"] * node["seconds"]
        for name in sums:
            row[name] += node[name]
    for row in rows.values():
        row["reached"] = row.pop("ideal") / row["seconds"] if row["seconds"] else 0.0
    return sorted(rows.values(), key=lambda r: -r["seconds"])
