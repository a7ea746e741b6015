"""Distributed stores against MXNet's, in turns: each has a standing job of as many processes on this machine."""

from __future__ import annotations

import os
import statistics
import sys
from contextlib import ExitStack

import pytest

from benchmarks.exchange import Job
from benchmarks.peer import VARIABLE

#: What goes through the store: keys, elements of each, ratio to MXNet at most (same host, network forced).
CASES = {"100 MB in 60 keys": (60, 416_667, 0.6, 1.5), "1,000 keys of 1 kB": (1000, 256, 1.0, None)}
WORKERS = 2


@pytest.fixture(scope="module")
def jobs():
    with ExitStack() as ends:
        made = {
            "dist_sync": Job(sys.executable, False, WORKERS),
            "dist_sync, tcp": Job(sys.executable, False, WORKERS, MXCORE_KV_TRANSPORT="tcp"),
            "allreduce": Job(sys.executable, False, WORKERS, type="allreduce"),
        }
        for job in made.values():
            ends.enter_context(job)
        if os.environ.get(VARIABLE):
            made["MXNet"] = ends.enter_context(Job(os.environ[VARIABLE], True, WORKERS))
        yield made


@pytest.mark.parametrize("case", CASES)
def test_push_and_pull(row, few, jobs, case):
    keys, size, local, network = CASES[case]
    times = {name: [] for name in jobs}
    for _ in range(few(5, lambda: None, most=1)):
        for name, job in jobs.items():
            times[name] += job.run(keys, size, 5)
    for name, limit in (("dist_sync", local), ("dist_sync, tcp", network), ("allreduce", None)):
        best, median = min(times[name]), statistics.median(times[name])
        fields = {"value": f"median {1e3 * median:.1f} ms"}
        if peer := times.get("MXNet"):
            fields |= {
                "against": f"MXNet {1e3 * min(peer):.1f} ms, median {1e3 * statistics.median(peer):.1f} ms",
                "ratio": max(best / min(peer), median / statistics.median(peer)),
                "at_most": limit,
            }
        row(f"{case}, {name}, {WORKERS} workers", seconds=best, **fields)
