"""`mxcore launch`: real processes, what they print, how they end, and that nothing of them is left."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mxcore import cli
from mxcore.base import MXNetError
from mxcore_kv_dist import wire

from .running import PATIENCE, SOON, Running, lines, needs_ray

#: Adds up ranks, and takes what it does from its arguments.
SUMS = """
import os, signal, sys, time
import mxcore as mx

kind, what = sys.argv[1:3]
kv = mx.kv.create(kind)
if "async" in kind:
    kv.set_optimizer(mx.optimizer.create("sgd", learning_rate=1.0))
kv.init("w", mx.nd.zeros((2, 3)))
w = mx.nd.zeros((2, 3))
first = os.environ["MXCORE_RESTART"] == "0"


def kill_server():
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            ours = os.readlink(f"/proc/{pid}/cwd") == os.getcwd()
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if ours and f.read().startswith(b"ray::ServerHost"):
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass


for step in range(8):
    kv.push("w", mx.nd.ones((2, 3)) * (kv.rank + 1))
    kv.pull("w", out=w)
    print(f"step {step}: {w.asnumpy()[0, 0]:g}", flush=True)
    if step == 3 and kv.rank == 1 and first:
        exec(what)
    time.sleep(0.1)
print(f"rank {kv.rank} of {kv.num_workers} is done", flush=True)
"""

#: Waits for a signal, or, told so, does not care for any.
SLEEPS = """
import signal, sys, time

if sys.argv[1:] == ["deaf"]:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
try:
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""


@needs_ray
def test_whole_job(launch):
    """Two workers and two servers: who they are, what they compute and print, who can come in, and what is left."""
    job = launch(
        """
import os, sys, time
import mxcore as mx

names = ("DMLC_", "LOCAL_", "RANK", "WORLD", "GREETING", "MXCORE_RESTART")
print(*[f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(names)])
sys.stdout.buffer.write(b"\\xff no text\\r\\n" + b"x" * 200_000 + b"\\n")
print("to stderr", file=sys.stderr)
kv = mx.kv.create("dist_sync")
kv.init([1, 2], [mx.nd.zeros((2, 3)), mx.nd.ones((4,))])
out = [mx.nd.zeros((2, 3)), mx.nd.zeros((4,))]
kv.push([1, 2], [mx.nd.ones((2, 3)) * (kv.rank + 1), mx.nd.ones((4,))])
kv.pull([1, 2], out=out)
print("sums", out[0].asnumpy().sum(), out[1].asnumpy().sum())
print("servers", os.environ["MXCORE_KV_SERVERS"])
while not os.path.exists("go"):
    time.sleep(0.1)
sys.stdout.write("no end of line")
""",
        options="-n 2 -s 2 --env GREETING=hello=you",
    )
    job.until("servers", 2)
    said = lines(job.said()[0], "[0] servers ")
    servers = json.loads(said[0])
    assert len(servers) == 2 and servers[0][0] == "127.0.0.1"
    listening = job.listening()
    assert {address for address, _ in listening} == {"127.0.0.1"}
    assert {(host, port) for host, port, _ in servers} < listening
    for address in servers:
        for transport in ("auto", "tcp"):
            with pytest.raises(MXNetError, match="do not have the same token"):
                wire.connect(address, b"guessed", transport)
    assert "Authentication token is missing or incorrect" in strangers_words(job)
    (job.folder / "go").touch()
    status, out, err = job.wait()
    assert (status, sorted(err.splitlines())) == (0, ["[0] to stderr", "[1] to stderr"])
    job.is_gone()
    host, port, _ = servers[0]
    for rank in (0, 1):
        assert lines(out, f"[{rank}] ") == [
            f"DMLC_NUM_SERVER=2 DMLC_NUM_WORKER=2 DMLC_PS_ROOT_PORT={port} DMLC_PS_ROOT_URI={host} DMLC_ROLE=worker "
            f"DMLC_WORKER_ID={rank} GREETING=hello=you LOCAL_RANK={rank} LOCAL_WORLD_SIZE=2 MXCORE_RESTART=0 "
            f"RANK={rank} WORLD_SIZE=2",
            "\udcff no text\r",
            "x" * 200_000,
            "sums 18.0 8.0",
            f"servers {json.dumps(servers)}",
            "no end of line",
        ]


def strangers_words(job: Running) -> str:
    """What Ray tells somebody on this host who knows where a cluster is, but not its token."""
    (told,) = Path(job.temporary).glob("mxcore-*/ray_current_cluster")
    env = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    env |= {"RAY_AUTH_MODE": "disabled", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    code = f"from ray._raylet import GcsClient; print(GcsClient({told.read_text()!r}).internal_kv_keys(b'', None))"
    stranger = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert stranger.returncode != 0 and stranger.stdout == ""
    return stranger.stderr


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, what, options, status, said, ranks",
    [
        # A worker that fails ends a synchronous job, whose others know whom they have lost.
        ("dist_sync", "sys.exit(7)", "", 7, "rank 1 exited with status 7; the job ends", ()),
        ("dist_sync", "os.kill(os.getpid(), 9)", "", 137, "rank 1 was ended by SIGKILL; the job ends", ()),
        ("dist_sync", "kill_server()", "", 1, "server 0 is lost: its process, or its host, is gone; the job ends", ()),
        # An asynchronous one goes on.
        ("dist_async", "sys.exit(7)", "", 7, "rank 1 exited with status 7; the others go on", (0,)),
        # What may be started again is.
        ("dist_sync", "sys.exit(7)", "--restart 1", 0, "the job starts again (1 of 1)", (0, 1)),
        ("dist_sync", "kill_server()", "--restart 2", 0, "the job starts again (1 of 2)", (0, 1)),
        ("dist_async", "os.kill(os.getpid(), 9)", "--restart 1", 0, "it starts again (1 of 1)", (0, 1)),
    ],
)
def test_failures(launch, kind, what, options, status, said, ranks):
    job = launch(SUMS, kind, what, options=f"-n 2 {options}")
    ended, out, err = job.wait()
    assert (ended, said in err) == (status, True), err
    assert sorted(re.findall(r"rank (\d) of 2 is done", out)) == [str(rank) for rank in ranks]
    assert ("a dist_sync job cannot go on" in err) == (kind == "dist_sync" and "server" not in what)
    assert ("server 0 at 127.0.0.1" in err) == ("server" in what)
    job.is_gone()


@needs_ray
@pytest.mark.slow
def test_restarts_end(launch):
    job = launch("import os; print('run', os.environ['MXCORE_RESTART']); 1 / 0", options="-n 1 --restart 2")
    status, out, err = job.wait()
    assert (status, out) == (1, "[0] run 0\n[0] run 1\n[0] run 2\n")
    assert err.count("ZeroDivisionError") == err.count("rank 0 exited with status 1; the job ends") == 3


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize("signals, args, status", [([2], [], 130), ([15], [], 143), ([2, 2], ["deaf"], 130)])
def test_signals(launch, signals, args, status):
    job = launch(SLEEPS, *args)
    job.until("ready", 2)
    for number in signals:
        job.process.send_signal(number)
        time.sleep(0.5)
    start = time.monotonic()
    ended, out, _ = job.wait()
    assert ended == status
    assert time.monotonic() - start < 10  # it does not wait for the deaf
    assert out.count("interrupted") == (2 if signals == [2] else 0)
    job.is_gone()


@needs_ray
@pytest.mark.slow
def test_deaf_worker(launch):
    """One Ctrl-C ends also those that do not listen, after a while."""
    job = launch(SLEEPS, "deaf", options="-n 1")
    job.until("ready")
    job.process.send_signal(signal.SIGINT)
    assert job.wait()[0] == 130
    job.is_gone()


@needs_ray
@pytest.mark.slow
def test_early_interrupt(launch):
    """Ctrl-C while Ray starts."""
    job = launch(SLEEPS)
    while len(job.processes()) < 3:
        time.sleep(0.02)
    job.process.send_signal(signal.SIGINT)
    assert job.wait()[0] == 130
    job.is_gone()


@needs_ray
@pytest.mark.slow
def test_killed_launcher(launch):
    """Whatever the launcher had no time for, the processes themselves see to."""
    job = launch(SLEEPS, "deaf")
    job.until("ready", 2)
    job.process.kill()
    job.is_gone(SOON)
    assert job.wait()[0] == -signal.SIGKILL


@needs_ray
@pytest.mark.slow
def test_descendants(launch):
    """What a worker leaves running ends with it."""
    program = "import subprocess, sys; subprocess.Popen(['sleep', '600'], start_new_session=True)"
    job = launch(program, options="-n 1")
    assert job.wait()[0] == 0
    job.is_gone()


@pytest.mark.parametrize(
    "args, says",
    [
        ("-n 0 true", "-n must be at least 1, it is 0"),
        ("-n 2 -s 0 true", "-s must be at least 1, it is 0"),
        ("-n 2 --restart -1 true", "--restart must be at least 0, it is -1"),
        ("-n 2", "what is to be run? Say `mxcore launch -n 2 python train.py`"),
        ("-n 2 no-such-program", "there is no program 'no-such-program' that can be run\n"),
        (
            "-n 2 -- program.py --lr 0.1",
            "there is no program 'program.py' that can be run; did you mean `python program.py`?",
        ),
        ("-n 2 --env A true", "--env takes NAME=VALUE, not 'A'"),
    ],
)
def test_bad_arguments(args, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").touch()
    assert cli.main(["launch", *args.split()]) == 1
    assert says in capsys.readouterr().err


def test_without_ray(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert cli.main(["launch", "-n", "2", "true"]) == 1
    assert "mxcore launch needs Ray, which is not installed: `pip install 'mxcore[dist]'`" in capsys.readouterr().err


@needs_ray
def test_no_cluster(monkeypatch, capsys):
    assert cli.main(["launch", "-n", "2", "--address", "nowhere", "true"]) == 1
    assert "there is no Ray cluster to join at nowhere" in capsys.readouterr().err
