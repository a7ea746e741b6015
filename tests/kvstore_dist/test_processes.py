"""Real processes that are killed, stopped, doubled, or from elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mxcore_kv_dist.server import Server
from tests.kvstore_dist.processes import TOKEN, ends, reaped, said, spawn, tell, worker

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


class Cluster:
    """Servers of a job, and its workers, whose processes are started at once."""

    def __init__(self, made: list[subprocess.Popen[str]], kind: str, workers: int, own: int = 0, **more: Any) -> None:
        self.server = Server(0, 1, workers, TOKEN.encode()) if not own else None
        if self.server is not None:
            self.addresses: Any = [self.server.address]
        else:
            self.host = spawn("serve.py", str(own), str(workers))
            made.append(self.host)
            self.addresses = said(self.host)
        self.workers = [worker(self.addresses, r, workers, "stepping.py", kind, **more) for r in range(workers)]
        made.extend(self.workers)
        for process in self.workers:
            assert said(process) == "ready"

    def step(self, *ranks: int, what: str = "step") -> list[Any]:
        """What workers say to a step that they begin together."""
        for rank in ranks:
            tell(self.workers[rank], what)
        return [said(self.workers[rank]) for rank in ranks]


@pytest.fixture
def start() -> Iterator[Any]:
    servers = []
    with reaped() as made:

        def begin(*args: Any, **more: Any) -> Cluster:
            cluster = Cluster(made, *args, **more)
            servers.append(cluster.server)
            return cluster

        yield begin
    for server in servers:
        if server is not None:
            server.close()


def test_two_jobs_at_once_and_a_worker_that_is_killed(start: Any) -> None:
    """The killed worker's job ends within the deadline with its rank; the other job does not notice."""
    sync, other = start("dist_sync", 2), start("dist_async", 2)
    for step in range(3):
        assert sync.step(0, 1) == [{"value": 2, "other": 2}] * 2
        values = [a["value"] for a in other.step(0, 1)]
        assert -2 * (step + 1) <= min(values) <= max(values) <= -2 * step - 1

    tell(sync.workers[0], "step")
    tell(other.workers[0], "step")
    sync.workers[1].kill()
    other.workers[1].kill()
    answer = said(sync.workers[0])
    assert answer["type"] == "MXNetRuntimeError" and answer["seconds"] < 5
    assert "rank 1 was lost, as its connection ended without a word" in answer["error"]
    assert "last heard of" in answer["error"] and "key '" in answer["error"]
    assert ends(sync.workers[0]) == 3

    assert said(other.workers[0])["value"] == -7
    assert other.step(0)[0]["value"] == -8
    assert "error" not in other.step(0, what="barrier")[0]
    again = worker(other.addresses, 1, 2, "stepping.py", "dist_async")  # in the place of the one that was killed
    other.workers[1] = again
    assert said(again) == "ready"
    assert other.step(1)[0]["value"] == -9
    for process in other.workers:
        assert ends(process) == 0
    assert other.server.wait(10)


def test_a_worker_that_is_stopped_is_waited_for_and_a_server_that_is_killed_ends_the_job(start: Any) -> None:
    job = start("dist_sync", 2, own=2)
    os.kill(job.workers[1].pid, signal.SIGSTOP)
    tell(job.workers[0], "step")
    tell(job.workers[1], "step")
    time.sleep(1)
    os.kill(job.workers[1].pid, signal.SIGCONT)
    assert [said(w)["value"] for w in job.workers] == [2, 2]

    double = worker(job.addresses, 1, 2, "stepping.py", "dist_sync")
    try:
        assert ends(double) == 1  # rank 1 is taken
    finally:
        double.kill()
    assert job.step(0, 1) == [{"value": 2, "other": 2}] * 2

    tell(job.workers[0], "step")
    time.sleep(0.3)
    job.host.kill()
    answer = said(job.workers[0])
    assert answer["type"] == "MXNetConnectionError" and "at 127.0.0.1:" in answer["error"]
    assert "is lost" in answer["error"] and answer["seconds"] < 5
    for process in job.workers:
        ends(process, 20)


@pytest.mark.slow
@pytest.mark.parametrize("stopped", ["worker", "server"])
def test_who_stops_for_longer_than_the_deadline(start: Any, stopped: str) -> None:
    job = start("dist_sync", 2, own=1, MXCORE_KV_DEADLINE=2)
    assert job.step(0, 1) == [{"value": 2, "other": 2}] * 2
    process = job.workers[1] if stopped == "worker" else job.host
    os.kill(process.pid, signal.SIGSTOP)
    try:
        answer = job.step(0)[0]
    finally:
        os.kill(process.pid, signal.SIGCONT)
    if stopped == "worker":
        assert "waited 2 s for round 2 of key" in answer["error"]
        assert "rank 1 (last heard of" in answer["error"] and answer["seconds"] < 4
    else:
        assert "has not answered for 5 s (" in answer["error"] and answer["seconds"] < 8
    ends(job.workers[0], 20)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_an_interrupted_worker_ends_soon(start: Any) -> None:
    """Ctrl-C while it waits for the others, who are told."""
    job = start("dist_sync", 2)
    tell(job.workers[0], "barrier")
    time.sleep(0.3)
    begin = time.monotonic()
    job.workers[0].send_signal(signal.SIGINT)
    assert ends(job.workers[0], 10) == -signal.SIGINT
    assert time.monotonic() - begin < 5
    assert "rank 0 failed (KeyboardInterrupt)" in job.step(1)[0]["error"]


def test_a_worker_whose_program_fails_tells_the_others_at_once(start: Any) -> None:
    """Also while it has asked for what can only come with the others' pushes."""
    job = start("dist_sync", 2, MXCORE_KV_DEADLINE=60)
    begin = time.monotonic()
    tell(job.workers[1], "fail")
    answer = job.step(0)[0]
    assert "rank 1 failed (ZeroDivisionError: division by zero)" in answer["error"]
    assert ends(job.workers[1]) == 1
    assert time.monotonic() - begin < 15
