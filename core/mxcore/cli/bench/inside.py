"""Where the time of a run goes: its steps, watched one by one, and what regions tell of their insides."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import profiler
from ..._core.call import unwatch, watch
from ...executor.costs import Cost, costs, program_of
from ...looking import Piece, hearing, named, pieces
from ...profiler.record import recorder
from .machine import reached

if TYPE_CHECKING:
    from .subject import Subject

__all__ = ["MOST", "operators", "rows"]

#: Runs that are watched, at most; one of so many counts, the fastest ones, for other work may disturb the others.
MOST, COUNTS = 100, 4
#: Who takes a smaller share of a step is not named: of those to whom it was left, and of who left it, whose share is at
#: least that of finding them.
_LITTLE, _SHELL = 0.05, 0.2
#: What the call of a region takes beside the layers in it.
_AROUND = "calls and layouts"

#: Names of operator and node.
Key = tuple[str, str]


class _Run(NamedTuple):
    """What was seen of one run.

    Attributes
    ----------
    wall, update : float
        Seconds of all of it, and of the optimizer in it.
    taken : dict
        Step -> seconds of each of its calls.
    passed : dict
        Step -> owner -> seconds of what a kernel has left to another.
    pieces : dict
        Step -> its pieces.
    """

    wall: float
    update: float
    taken: dict[Key, list[float]]
    passed: dict[Key, dict[str, float]]
    pieces: dict[Key, list[Piece]]


class _Watch:
    """Observer of bound calls: who computes each step of programs, and of which pieces it is made."""

    def __init__(self, heard: dict[str, float]) -> None:
        self.heard = heard
        self.passed: dict[Key, dict[str, float]] = {}
        self.pieces: dict[Key, list[Piece]] = {}
        self.looks: dict[Key, Callable[[Callable[[], object]], list[Piece]]] = {}

    def __call__(self, fn: Any, name: str, ctx: Any, ins: Any, outs: Any, node: Any) -> Any:
        if node is None:
            return fn
        key, look = (name, node), self.looks.get((name, node))

        def call(*args: Any) -> Any:
            self.heard.clear()
            if look is None:
                found = fn(*args)
            else:
                found = self.pieces.setdefault(key, [])
                found += look(fn)
            passed = self.passed.setdefault(key, {}) if self.heard else {}
            for owner, seconds in self.heard.items():
                passed[owner] = passed.get(owner, 0.0) + seconds
            return found

        return call


def rows(model: Subject, machine: dict[str, float], repeat: int) -> tuple[list[dict[str, Any]], float]:
    """What a run consists of, longest first: its steps with all passes, as they are.

    Parameters
    ----------
    model : Subject
        Bound anew for it.
    machine : dict
        As `machine.roofline` gives it.
    repeat : int
        Runs that are watched, 100 at most; the fastest quarter of them counts.

    Returns
    -------
    rows : list of dict
    seconds : float
        What such a run takes.
    """
    with hearing() as heard:
        bound = model.bind()
        watcher = _Watch(heard)
        program = program_of(bound, model.train)
        for step in program.steps:
            if step.head < 0 and hasattr(step.op, "pieces"):
                watcher.looks[step.op.name, step.node.name] = partial(pieces, step.op)
        runs = _watched(model, model.steps(bound), watcher, min(repeat, MOST))
    work: dict[Key, list[Cost]] = defaultdict(list)
    for cost in costs(program):
        work[cost.op, cost.node].append(cost)
    best = sorted(runs, key=lambda run: run.wall)[: -(-len(runs) // COUNTS)]
    found = [row for key in best[0].taken for row in _rows(key, work.get(key, []), best, machine)]
    if model.update is not None:
        found.append(_row(f"update ({model.optimizer})", "", 1, _mean(run.update for run in best)))
    return sorted(found, key=lambda r: -r["seconds"]), _mean(run.wall for run in best)


def _watched(model: Subject, steps: Sequence[Callable[[], None]], watcher: _Watch, repeat: int) -> list[_Run]:
    """What was seen of so many runs."""
    compute, *update = steps
    runs = []
    profiler.set_config(profile_memory=False, profile_api=False, profile_imperative=False)
    watch(watcher)
    try:
        profiler.start()
        for i in range(-1, repeat):  # the first one is bound anew for who watches
            recorder.clear()
            watcher.passed, watcher.pieces = {}, {}
            start = time.perf_counter()
            compute()
            half = time.perf_counter()
            for step in update:
                step()
            end = time.perf_counter()
            taken: dict[Key, list[float]] = defaultdict(list)
            for label, begun, ended, _, _ in recorder.snapshot():
                if label.section == "operator" and label.args and "node" in label.args:
                    taken[label.name, label.args["node"]].append((ended - begun) / 1e9)
            if i >= 0:
                runs.append(_Run(end - start, end - half, taken, watcher.passed, watcher.pieces))
    finally:
        unwatch(watcher)
        profiler.stop()
        recorder.clear()
    return runs


def _rows(key: Key, work: Sequence[Cost], runs: Sequence[_Run], machine: dict[str, float]) -> Iterable[dict[str, Any]]:
    """The rows of a step: one, or one for each of its pieces and for what is around them."""
    (op, node), calls = key, len(runs[0].taken[key])
    seconds = _mean(sum(run.taken.get(key, ())) for run in runs)
    consists = work[0].consists if work else ()
    owner = work[0].owner if work else ""
    parts = [run.pieces.get(key, []) for run in runs]
    if parts[0] and all(len(p) == len(parts[0]) for p in parts):
        inside = 0.0
        for same in zip(*parts):
            took, piece = _mean(p.seconds for p in same), same[0]
            inside += took
            yield _row(
                named(piece.operators),
                piece.node,
                1,
                took,
                piece.owner,
                piece.flops,
                piece.bytes,
                piece.shapes,
                machine,
            )
        yield _row(_AROUND, node, calls, max(seconds - inside, 0.0), owner)
        return
    passed = {who: _mean(run.passed.get(key, {}).get(who, 0.0) for run in runs) for who in runs[0].passed.get(key, {})}
    shares = {owner: seconds - sum(passed.values())}
    for who, took in passed.items():
        shares[who] = shares.get(who, 0.0) + took
    least = {owner: _SHELL if passed else 0.0}
    told = [
        who for who, took in sorted(shares.items(), key=lambda s: -s[1]) if took >= least.get(who, _LITTLE) * seconds
    ]
    flops, size = sum(c.flops for c in work), sum(c.bytes for c in work)
    shapes = work[0].shapes if work else ()
    yield _row(named(consists) or op, node, calls, seconds, ", ".join(told), flops, size, shapes, machine)


def _row(
    op: str,
    node: str,
    calls: int,
    seconds: float,
    by: str = "",
    flops: float = 0.0,
    size: int = 0,
    shapes: Sequence[Any] = (),
    machine: dict[str, float] | None = None,
) -> dict[str, Any]:
    return {
        "op": op,
        "node": node,
        "calls": calls,
        "seconds": seconds,
        "flops": flops,
        "bytes": size,
        "reached": reached(flops, size, seconds, machine) if machine is not None else 0.0,
        "shapes": [list(s) if s is not None else None for s in shapes],
        "by": by,
    }


def _mean(values: Iterable[float]) -> float:
    found = [*values]
    return sum(found) / len(found)


def operators(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of equal operators taken together, longest first.

    Parameters
    ----------
    found : list of dict
        As `rows` gives them.
    """
    together: dict[tuple[str, str], dict[str, Any]] = {}
    sums = ("calls", "seconds", "flops", "bytes")
    for row in found:
        start = {"op": row["op"], "by": row["by"], **dict.fromkeys(sums, 0), "ideal": 0.0}
        same = together.setdefault((row["op"], row["by"]), start)
        same["ideal"] += row["reached"] * row["seconds"]
        for name in sums:
            same[name] += row[name]
    for row in together.values():
        ideal = row.pop("ideal")
        row["reached"] = ideal / row["seconds"] if row["seconds"] else 0.0
    return sorted(together.values(), key=lambda r: -r["seconds"])
