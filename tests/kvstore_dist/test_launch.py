"""`mxcore launch`: real processes, what they print, how they end, and that nothing of them is left."""

import json
import os
import re
import signal
import socket
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
    if step == 6 and kv.rank == 0 and what == "sys.exit(7)" and kind == "dist_async":
        time.sleep(5)  # or else nobody might be left, who could go on
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
@pytest.mark.parametrize(
    "seconds, status, said",
    [
        (1, 7, "rank 1 exited with status 7; the job ends"),
        pytest.param(4, 7, "rank 1 exited with status 7; the job ends", marks=pytest.mark.slow),
        pytest.param(
            60,
            1,
            "rank 1 left first, and has not ended; rank 0 exited with status 1; the job ends",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_who_fails_first_is_to_blame(launch, seconds, status, said):
    """Also if it takes longer to end than the others, who fail because it has left."""
    program = """
import sys, time
import mxcore as mx


class Slow:
    def __del__(self, sleep=time.sleep, seconds=float(sys.argv[1])):  # there are no modules any more by then
        sleep(seconds)


kv = mx.kv.create("dist_sync")
kv.init("w", mx.nd.zeros(3))
if kv.rank == 1:
    slow = Slow()
    sys.exit(7)
kv.barrier()
"""
    job = launch(program, str(seconds), options="-n 2")
    ended, _, err = job.wait()
    assert (ended, f"mxcore launch: {said}" in err) == (status, True), err


@needs_ray
@pytest.mark.slow
def test_who_closed_an_earlier_store_first_is_not_to_blame(launch):
    program = """
import sys, time
import mxcore as mx

first = mx.kv.create("dist_sync")
first.barrier()
time.sleep(1 - first.rank)
first.close()
kv = mx.kv.create("dist_sync")
kv.barrier()
if kv.rank == 0:
    sys.exit(7)
kv.barrier()
"""
    job = launch(program, options="-n 2")
    ended, _, err = job.wait()
    assert (ended, "mxcore launch: rank 0 exited with status 7; the job ends" in err) == (7, True), err
    job.is_gone()


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize(
    "options, status, said", [("", 7, "rank 1 exited with status 7; the job ends"), ("--restart 1", 0, "(1 of 1)")]
)
def test_an_asynchronous_job_whose_last_worker_fails_starts_again(launch, options, status, said):
    """From the beginning: with the others their values have gone."""
    program = """
import os, sys, time
import mxcore as mx

kv = mx.kv.create("dist_async")
kv.init("w", mx.nd.zeros(3))
print("run", os.environ["MXCORE_RESTART"])
if os.environ["MXCORE_RESTART"] == "1":
    pass
elif kv.rank == 0:
    with open("pid", "w") as f:
        f.write(str(os.getpid()))
    os.rename("pid", "done")
else:
    while not os.path.exists("done"):
        time.sleep(0.05)
    with open("done") as f:
        process = f"/proc/{f.read()}"
    while os.path.exists(process) and ") Z " not in open(f"{process}/stat").read():
        time.sleep(0.05)
    time.sleep(1)
    sys.exit(7)
"""
    job = launch(program, options=f"-n 2 {options}")
    ended, out, err = job.wait()
    assert (ended, said in err) == (status, True), err
    for rank in (0, 1):
        assert lines(out, f"[{rank}] ") == ["run 0", "run 1"][: 2 if options else 1]
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
@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("later", [0, 0.05])
def test_interrupt_while_ray_is_joined(launch, number, status, later):
    """Ray's threads are there, but what would end them does not know of them yet."""
    job = launch(SLEEPS)
    tasks, end = Path(f"/proc/{job.process.pid}/task"), time.monotonic() + PATIENCE
    while not any(name.read_text().strip() == "worker.io" for name in tasks.glob("*/comm")):
        assert time.monotonic() < end
        time.sleep(0.005)
    time.sleep(later)
    job.process.send_signal(number)
    assert job.wait()[0] == status
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
@pytest.mark.parametrize("address, says", [("nowhere", ""), ("127.0.0.1:9", "Connection refused"), ("", "0.5 s")])
def test_no_cluster(address, says, monkeypatch, capsys):
    """Whether nobody is there, or somebody who says nothing."""
    monkeypatch.setenv("MXCORE_KV_DEADLINE", "0.5")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = address or f"127.0.0.1:{silent.getsockname()[1]}"
        start = time.monotonic()
        assert cli.main(["launch", "-n", "2", "--address", address, "true"]) == 1
        assert time.monotonic() - start < 30  # to import Ray, on a busy machine
    said = capsys.readouterr().err
    assert f"there is no Ray cluster to join at {address}" in said and says in said


#: Its optimizer tells what the server's environment is.
ASKS = """
import os, sys
import mxcore as mx

kv = mx.kv.create("dist_async")
kv.init("w", mx.nd.zeros(1))
sys.path.insert(0, os.environ["MODULES"])
import telling

kv.set_optimizer(telling.Telling())
kv.push("w", mx.nd.ones(1))
w = mx.nd.zeros(1)
kv.pull("w", out=w)
print(w.asnumpy()[0])
"""
TELLING = """
import os
import mxcore as mx

@mx.optimizer.register
class Telling(mx.optimizer.Optimizer):
    def create_state(self, index, weight):
        return None

    def update(self, index, weight, grad, state):
        weight[:] = float(os.environ["ANSWER"])
"""


@needs_ray
@pytest.mark.slow
def test_environment_of_servers(launch, tmp_path):
    """They get what --env says, and find the optimizer's module by it."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "telling.py").write_text(TELLING)
    folder = tmp_path / "modules"
    options = f"-n 1 --env ANSWER=42 --env PYTHONPATH={folder} --env MODULES={folder}"
    assert launch(ASKS, options=options).wait() == (0, "[0] 42.0\n", "")


#: Counts the pushes of both workers in a weight; the first one is killed in the middle, and loads an older checkpoint.
COUNTS = """
import os, signal
import mxcore as mx

net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, no_bias=True, name="count")
module = mx.mod.Module(net, label_names=None)
module.bind([("data", (1, 1))])
module.init_params(mx.init.Zero())
kv = mx.kv.create("dist_async")
module.init_optimizer(kv, "sgd", {"learning_rate": 1.0, "momentum": 0.5, "rescale_grad": 1.0})
again = os.environ["MXCORE_RESTART"] != "0"
if again and kv.rank == 0:
    arguments, auxiliary = mx.model.load_params("model", 1)
    module.set_params(arguments, auxiliary)
    kv.load_optimizer_states("model.states")


def pull():
    out = mx.nd.zeros((1, 1))
    kv.pull("count_weight", out=out)
    return out.asscalar()


def push():
    kv.push("count_weight", -mx.nd.ones((1, 1)))


if kv.rank == 0 and not again:
    push()
    module.save_checkpoint("model", 1)  # holds less than what comes now
    kv.save_optimizer_states("model.states")
    for _ in range(5):
        push()
    print("before", pull(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
if kv.rank == 0:
    print("after", pull(), flush=True)
    push()
    print("next", pull(), flush=True)
    open("done", "w").close()
else:
    while not os.path.exists("done"):
        pull()
"""


@needs_ray
@pytest.mark.slow
def test_a_worker_that_comes_back_to_a_living_job(launch):
    """It brings no old values back: those on the servers have gone on."""
    status, out, err = launch(COUNTS, options="-n 2 --restart 1").wait()
    assert status == 0 and "rank 0 was ended by SIGKILL; it starts again (1 of 1)" in err, err
    assert "rank 0 has come back; what it sets is older than what the others have made, which stays" in err
    weight = momentum = 0.0
    counts = [weight := weight + (momentum := 0.5 * momentum + 1) for _ in range(7)]
    assert lines(out, "[0] ") == [f"before {counts[5]}", f"after {counts[5]}", f"next {counts[6]}"]
