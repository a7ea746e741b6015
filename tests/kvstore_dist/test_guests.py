"""Strangers who connect and say nothing: neither the descriptors and threads of a job nor its places are theirs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import mxcore as mx
from mxcore_kv_dist import guests, wire
from mxcore_kv_dist.job import Job
from mxcore_kv_dist.store import DistKVStore
from tests.kvstore_dist.jobs import TOKEN, servers, together
from tests.kvstore_dist.processes import ROOT, reaped, said, spawn, wait_until
from tests.kvstore_dist.processes import TOKEN as PROCESS_TOKEN

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of open files")


def limited(files: int) -> tuple[str, ...]:
    """A command that runs another one with no more open files than these."""
    return "sh", "-c", f'ulimit -n {files} && exec "$@"', "sh"


@pytest.fixture
def visit() -> Iterator[Any]:
    """Connect idle strangers to an address; they stay until the end."""
    with ExitStack() as stack:

        def some(address: Any, number: int = 1) -> list[socket.socket]:
            return [stack.enter_context(socket.create_connection(address[:2], timeout=20)) for _ in range(number)]

        yield some


def is_sent_away(visitor: socket.socket, within: float) -> bool:
    visitor.settimeout(within)
    try:
        while visitor.recv(1000):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def answer_of(program: str, *within: str, **env: str) -> Any:
    """What a program says, as JSON."""
    command = [*within, sys.executable, "-c", program]
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": paths, **env}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("transport", ["auto", "tcp"])
def test_a_job_goes_on_beside_hundreds_of_idle_strangers(transport: str, visit: Any) -> None:
    def run(store: Any) -> Any:
        out = mx.nd.zeros(3)
        for key in map(str, range(20)):  # each has memory, whose file is open
            store.init(key, mx.nd.zeros(3))
            store.push(key, mx.nd.ones(3))
            store.pull(key, out=out)
        return out.asnumpy().tolist()

    with reaped() as made:
        host = spawn("serve.py", "1", "2", within=limited(512))
        made.append(host)
        (address,) = said(host)
        places = [Job(rank, 2, [address], PROCESS_TOKEN.encode(), 20.0, transport) for rank in range(2)]
        early = DistKVStore("dist_sync", places[0])
        visit(address, 350)  # of 512 descriptors, of which each took two
        start = time.monotonic()
        late = DistKVStore("dist_sync", places[1])
        assert time.monotonic() - start < 8  # the strangers before it in the queue have their time, too
        assert together([early, late], run) == [[2] * 3] * 2
        time.sleep(1.2)
        start = time.monotonic()
        wire.connect(address, PROCESS_TOKEN.encode(), transport).close()  # all are old by now, and go at once
        assert time.monotonic() - start < 2
        if sys.platform == "linux":
            threads = int(Path(f"/proc/{host.pid}/status").read_text().split("Threads:")[1].split()[0])
            assert threads < 128 + 40 and len(os.listdir(f"/proc/{host.pid}/fd")) < 128 + 100
        for store in (early, late):
            store.close()


def test_the_oldest_guest_goes(visit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guests, "_MOST", 3)
    monkeypatch.setattr(guests, "_GRACE", 0.05)
    with servers(2, 1) as made:  # what counts is how many this process has, not each of its servers
        visitors = []
        for i in range(3):
            visitors += visit(made[i % 2].address)
            wait_until(lambda: sum(len(server._guests) for server in made) == len(visitors))
        time.sleep(0.1)
        channel = wire.connect(made[1].address, TOKEN)
        assert is_sent_away(visitors[0], 10)
        assert not is_sent_away(visitors[1], 0.2) and not is_sent_away(visitors[2], 0.2)
        channel.close()
    assert is_sent_away(visitors[1], 10) and is_sent_away(visitors[2], 10)  # the servers have ended


def test_workers_who_come_at_once_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guests, "_MOST", 2)
    monkeypatch.setattr(guests, "_GRACE", 20.0)
    with servers(1, 1) as (server,):
        channels = together(range(40), lambda _: wire.connect(server.address, TOKEN, "tcp"))
        for channel in channels:
            assert isinstance(channel, wire.Channel), channel
            channel.close()


def test_there_can_be_no_more_threads(visit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    with servers(1, 1) as (server,):
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", full)
            (visitor,) = visit(server.address)
            assert is_sent_away(visitor, 10)
        wire.connect(server.address, TOKEN).close()
        wait_until(lambda: not len(server._guests))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_leaves_guests_to_its_parent(visit: Any) -> None:
    with servers(1, 1) as (server,):
        (visitor,) = visit(server.address)
        wait_until(lambda: len(server._guests) == 1)
        pid = os.fork()
        if not pid:
            os._exit(len(guests._all))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert len(server._guests) == 1 and not is_sent_away(visitor, 0.2)


#: Two workers in a ring; to each of them, strangers of another process have come first.
RING = """
import json, subprocess, sys
import mxcore as mx
from mxcore_kv_dist import guests
from mxcore_kv_dist.ring import Ring
from tests.kvstore_dist.jobs import all_well, rings, together

guests._GRACE = 0.1
STRANGERS = '''
import json, socket, sys
made = [socket.create_connection(json.loads(sys.argv[1])[:2]) for _ in range(150)]
print("here", flush=True)
sys.stdin.read()
'''
join, crowds = Ring.join, []

def visited(self, *args):
    crowd = subprocess.Popen([sys.executable, "-c", STRANGERS, json.dumps(self.address)], stdin=-1, stdout=-1)
    crowds.append(crowd)
    assert crowd.stdout.readline() == b"here\\n"
    return join(self, *args)

Ring.join = visited
try:
    with rings(2, sys.argv[1]) as stores:
        outs = [mx.nd.zeros(3) for _ in stores]
        all_well(together(stores, lambda store: store.pushpull(0, mx.nd.ones(3), out=outs[store.rank])))
        print(json.dumps([out.asnumpy().tolist() for out in outs]))
finally:
    for crowd in crowds:
        crowd.kill()
        crowd.communicate()
"""


@pytest.mark.parametrize("transport", ["auto", "tcp"])
def test_a_ring_closes_beside_hundreds_of_idle_strangers(transport: str) -> None:
    program = f"import sys; sys.argv[1:] = [{transport!r}]\n{RING}"
    assert answer_of(program, *limited(256)) == [[2.0] * 3] * 2


def test_a_ring_without_descriptors_goes_on_when_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    from mxcore_kv_dist.ring import Ring

    accept, failures = socket.socket.accept, [True] * 3

    def failing(self: Any) -> Any:
        if threading.current_thread().name.startswith("mxcore-kv-ring-door") and failures:
            failures.pop()
            raise OSError(24, "Too many open files")
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", failing)
    made = [Ring(rank, 2, TOKEN, "127.0.0.1", 20.0, "tcp", str) for rank in range(2)]
    addresses = [ring.address for ring in made]
    assert together(made, lambda ring: ring.join(addresses, 0)) == [None, None] and not failures
    for ring in made:
        ring.close()


def test_a_server_that_closes_without_a_word() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=lambda: listening.accept()[0].close())
        thread.start()
        with pytest.raises(ConnectionError, match=r"closed without a word; the server has ended, or .*`ulimit -n`"):
            wire.connect((*listening.getsockname(), ""), TOKEN)
        thread.join()


@pytest.mark.parametrize("size", [-1, 257, 2**31 - 1])
def test_what_is_no_proof(size: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(size.to_bytes(4, "big", signed=True))
        with pytest.raises(OSError, match="no proof"):
            wire.accept(ours, TOKEN)


LIMIT = """
import json, os, resource
out = os.dup(1)
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
{begin}
os.write(out, json.dumps(resource.getrlimit(resource.RLIMIT_NOFILE)).encode())
os._exit(0)
"""


@pytest.mark.parametrize(
    "begin",
    [
        "from mxcore_kv_dist.actors import ServerHost; ServerHost(0, 1, 1, 'token', '127.0.0.1')",
        "from mxcore_kv_dist.job import current_job; assert current_job('dist_sync').workers == 1",
    ],
    ids=["server", "worker"],
)
def test_processes_of_a_job_may_open_all_the_files_they_can(begin: str) -> None:
    job = {"RANK": "0", "WORLD_SIZE": "1", "MXCORE_KV_SERVERS": '[["127.0.0.1", 1, ""]]', "MXCORE_KV_TOKEN": "token"}
    assert answer_of(LIMIT.format(begin=begin), *limited(700), **job) == [700, 700]


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        ((256, 4096), (4096, 4096)),
        ((1024, 1 << 30), (65536, 1 << 30)),
        ((100_000, 1 << 30), (100_000, 1 << 30)),
        ((1024, -1), (65536, -1)),
        ((-1, -1), (-1, -1)),
        ((4096, 4096), (4096, 4096)),
    ],
)
@pytest.mark.parametrize("system", [None, 20_000, 0])
def test_the_limit_of_open_files(
    limits: tuple[int, int], found: tuple[int, int], system: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some systems give a process less than its limit says."""
    import resource

    now = [limits]

    def setrlimit(what: int, new: tuple[int, int]) -> None:
        if system is not None and new[0] > system:
            raise ValueError("current limit exceeds maximum limit")
        now[0] = new

    monkeypatch.setattr(resource, "getrlimit", lambda what: now[0])
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    monkeypatch.setattr(resource, "RLIM_INFINITY", -1)
    guests.allow_files()
    if system is None or found == limits:
        assert now == [found]
    elif system:
        assert now == [(min(found[0], 10240), found[1])]
    else:
        assert now == [limits]
