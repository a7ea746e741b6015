"""Programs that others start with ranks, and clusters that are joined."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mxcore_kv_dist.cluster import keep

from .running import PATIENCE, SOON, lines, needs_ray

pytestmark = [needs_ray, pytest.mark.slow]

PROGRAM = """
import os, signal, sys, time
import mxcore as mx

kv = mx.kv.create("dist_sync")
kv.init("w", mx.nd.zeros((2, 3)))
w = mx.nd.zeros((2, 3))
for step in range(3):
    kv.push("w", mx.nd.ones((2, 3)) * (kv.rank + 1))
    kv.pull("w", out=w)
    print(f"step {step}: {w.asnumpy()[0, 0]:g}", flush=True)
if sys.argv[1:]:
    exec(sys.argv[1])
print("ray" in sys.modules, os.environ.get("LOCAL_RANK"), os.environ.get("LOCAL_WORLD_SIZE"), flush=True)
"""
STEPS = "step 0: 3\nstep 1: 3\nstep 2: 3\n"


@pytest.fixture
def workers(start, tmp_path):
    """Start two workers as torchrun would."""

    def run(what: str = "", before: str = "", **env: str) -> list:
        (tmp_path / "program.py").write_text(before + PROGRAM)
        # Nobody listens at the port: it is a name.
        env = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(os.getpid()), **env}
        args = [sys.executable, "program.py", *([what] if what else [])]
        return [start(*args, RANK=str(rank), **env) for rank in (0, 1)]

    return run


def test_started_by_others(workers):
    jobs = workers("time.sleep(kv.rank)", MXCORE_KV_NUM_SERVER="2")
    for job in jobs:
        assert job.wait() == (0, f"{STEPS}False None None\n", "")
    jobs[0].is_gone()


def test_who_starts_the_servers_may_have_many_files_open(workers, monkeypatch):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    monkeypatch.setenv("MXCORE_KV_DEADLINE", "60")
    held = f"import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({min(4096, most)}, {most}))\n"
    program = f"{held}files = [os.open('/dev/null', os.O_RDONLY) for _ in range(1200)]\n"
    for job in workers(before=program):
        assert job.wait() == (0, f"{STEPS}False None None\n", "")


def test_what_else_is_printed_while_servers_start_is_no_answer(workers, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("print('modules are loaded')")
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    for job in workers(PYTHONPATH=path):
        status, out, err = job.wait()
        assert status == 0 and out == f"modules are loaded\n{STEPS}False None None\n", err


TWO_THREADS = """
import threading, mxcore as mx
stores = []
threads = [threading.Thread(target=lambda t=t: stores.append(mx.kv.create(t))) for t in ("dist_async", "dist_async")]
for t in threads: t.start()
for t in threads: t.join()
assert len(stores) == 2
"""


def test_threads_that_make_stores_at_once_start_servers_once(workers):
    for job in workers(before=TWO_THREADS):
        assert job.wait() == (0, f"{STEPS}False None None\n", "")


INTERRUPTED = """
import os, signal, mxcore as mx
def late(*_):
    raise TimeoutError
if os.environ["RANK"] == "0":
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 2.5)
    try:
        mx.kv.create("dist_sync")
        assert "it was too fast to be interrupted" == 0
    except TimeoutError:
        pass
    signal.signal(signal.SIGALRM, before)
"""


def test_who_is_interrupted_while_servers_start_may_try_again(workers, monkeypatch):
    monkeypatch.setenv("MXCORE_KV_DEADLINE", "60")
    for job in workers(before=INTERRUPTED):
        assert job.wait() == (0, f"{STEPS}False None None\n", "")


def test_killed_rank_0(workers):
    """Its servers go with it, and the others hear of that."""
    jobs = workers("kv.rank or os.kill(os.getpid(), signal.SIGKILL); kv.barrier()")
    assert jobs[0].wait()[0] == -signal.SIGKILL
    status, _, err = jobs[1].wait()
    assert status == 1 and "lost" in err
    jobs[0].is_gone(SOON)


def test_failed_rank_0(workers):
    """It does not wait for the others, who could not go on."""
    jobs = workers("kv.rank or 1 / 0; kv.barrier()")
    start = time.monotonic()
    assert [job.wait()[0] for job in jobs] == [1, 1]
    assert time.monotonic() - start < 45
    jobs[0].is_gone(SOON)


class Joined:
    """A Ray cluster of two nodes, both on this host."""

    SETTINGS = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "5a" * 32}
    START = (
        "start --block --disable-usage-stats --num-cpus=4 --object-store-memory=80000000 --include-log-monitor=False"
    )

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._nodes = [self._start("--head", "--port=0", "--include-dashboard=False", f"--temp-dir={folder}")]
        told = Path(folder, "ray_current_cluster")
        self._until(told.exists)
        self.address = told.read_text()
        self._nodes.append(self._start(f"--address={self.address}"))
        # A node says so when the cluster knows it: its process is there earlier.
        self._until(lambda: Path(folder, "log").read_text().count("Ray runtime started.") == 2)

    def _start(self, *args: str) -> subprocess.Popen:
        ray = [sys.executable, "-m", "ray.scripts.scripts", *self.START.split(), *args]
        env = {**os.environ, **self.SETTINGS}
        with open(os.path.join(self.folder, "log"), "ab") as log:
            return keep("", ray, env=env, cwd=self.folder, stdout=log, stderr=log)

    def _until(self, there: Callable[[], bool], within: float = PATIENCE) -> None:
        end = time.monotonic() + within
        while not there():
            assert time.monotonic() < end, Path(self.folder, "log").read_text()
            time.sleep(0.1)

    def processes(self, *names: str) -> list[str]:
        """Processes of the cluster whose names begin so."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdecimal() and os.readlink(entry / "cwd") == self.folder:
                    command = (entry / "cmdline").read_bytes().decode().split("\0")[0]
                    found.append(command.rpartition("/")[2])
            except OSError:
                pass  # it has just ended
        return [name for name in found if name.startswith(names)]

    def is_free(self) -> None:
        """Fail if jobs do not leave it soon."""
        self._until(lambda: not self.processes("ray::Runner", "ray::ServerHost", "ray::Board"), SOON)

    def close(self) -> None:
        for node in reversed(self._nodes):
            node.stdin.close()
            node.wait()


@pytest.fixture(scope="module")
def cluster():
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="r") as folder:
        cluster = Joined(folder)
        yield cluster
        cluster.close()


def test_joined_cluster(launch, cluster):
    """Neighbouring ranks are on one node."""
    address = {"RAY_ADDRESS": cluster.address} | cluster.SETTINGS
    job = launch(PROGRAM.replace("range(3)", "range(1)"), options="-n 3 -s 2", **address)
    status, out, err = job.wait()
    assert (status, err) == (0, "")
    for rank, local, size in ((0, 0, 2), (1, 1, 2), (2, 0, 1)):
        assert lines(out, f"[{rank}] ") == ["step 0: 6", f"False {local} {size}"]
    job.is_gone()
    cluster.is_free()


def test_killed_launcher_in_a_cluster(launch, cluster):
    """The cluster stays, but nothing of the job does."""
    options = f"-n 2 --address {cluster.address}"
    job = launch("import time; print('ready', flush=True); time.sleep(600)", options=options, **cluster.SETTINGS)
    job.until("ready", 2)
    job.process.kill()
    job.is_gone(SOON)
    cluster.is_free()
    assert job.wait()[0] == -signal.SIGKILL


def test_wrong_token(launch, cluster):
    settings = {**cluster.SETTINGS, "RAY_AUTH_TOKEN": "a5" * 32}
    status, out, err = launch("", options=f"-n 2 --address {cluster.address}", **settings).wait()
    assert (status, out) == (1, "")
    assert "there is no Ray cluster to join at" in err and "Authentication token is missing or incorrect" in err


def test_started_by_others_in_a_cluster(workers, cluster):
    """They find each other through the cluster, wherever they are."""
    jobs = workers(RAY_ADDRESS=cluster.address, **cluster.SETTINGS)
    for job in jobs:
        assert job.wait() == (0, f"{STEPS}False None None\n", "")
    jobs[0].is_gone(SOON)
    cluster.is_free()


def test_two_launches_in_a_cluster(launch, cluster):
    """Both run the same program at the same time, and do not meet."""
    meet = PROGRAM.replace("range(3)", "range(8)").replace("if sys", "    time.sleep(0.5)\nif sys", 1)
    options = f"-n 2 --address {cluster.address} --env MXNET_KVSTORE_BIGARRAY_BOUND=4 -s 2"
    jobs = [launch(meet, options=options, **cluster.SETTINGS) for _ in range(2)]
    for job in jobs:
        job.until("step 1", 2)
    assert all(job.process.poll() is None for job in jobs)  # at the same time
    for job in jobs:
        status, out, err = job.wait()
        assert (status, err) == (0, "")
        assert [line for line in lines(out, "[0] ") if line.startswith("step")] == [f"step {i}: 3" for i in range(8)]
    cluster.is_free()


def test_two_jobs_of_one_name_in_a_cluster(workers, cluster):
    """Whoever comes second is told what to change, and the first goes on."""
    settings = {"RAY_ADDRESS": cluster.address, **cluster.SETTINGS}
    first = workers("while not os.path.exists('go'): time.sleep(0.1)", **settings)
    for job in first:
        job.until("step 2")
    second = workers(**settings, MXCORE_KV_DEADLINE="5")
    status, _, err = second[0].wait()
    assert status == 1
    assert "another job with the same name runs in this Ray cluster; set another MASTER_PORT" in err
    status, _, err = second[1].wait()
    assert (status, "rank 1 is taken" in err) == (1, True)
    (first[0].folder / "go").touch()
    for job in first:
        assert job.wait() == (0, f"{STEPS}False None None\n", "")
    cluster.is_free()
