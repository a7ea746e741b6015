"""`mxcore launch`: real processes, what they print, how they end, and that nothing of them is left."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest

from mxcore import cli
from mxcore.base import MXNetError
from mxcore_kv_dist import wire

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed: mxcore[dist]")

#: The command, also where it is not on the path.
MXCORE = (sys.executable, "-c", "from mxcore.cli import main; raise SystemExit(main())")
#: How long one launch may take on a busy machine, and how long whatever it started may outlive it, in seconds.
PATIENCE, SOON = 120, 15

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


class Launch:
    """A running `mxcore launch`, in a folder of its own, or another program that starts a job."""

    def __init__(self, folder: Path, temporary: str, command: list[str], env: dict[str, str]) -> None:
        name, value = "MXCORE_TEST_MARK", str(uuid.uuid4())
        self.mark = f"{name}={value}".encode()
        self.folder, self.temporary = folder, temporary
        self._out, self._err = folder / f"{value}.out", folder / f"{value}.err"
        env = {**os.environ, **env, name: value, "TMPDIR": temporary}
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, cwd=folder, env=env)

    def said(self) -> tuple[str, str]:
        """Standard output and standard error so far."""
        out, err = (path.read_bytes().decode(errors="surrogateescape") for path in (self._out, self._err))
        return out, err

    def until(self, text: str, times: int = 1) -> None:
        """Wait until standard output holds a text so often."""
        end = time.monotonic() + PATIENCE
        while self.said()[0].count(text) < times:
            assert self.process.poll() is None and time.monotonic() < end, self.said()
            time.sleep(0.05)

    def wait(self) -> tuple[int, str, str]:
        """Wait for its end; status and output."""
        return self.process.wait(PATIENCE), *self.said()

    def processes(self) -> dict[int, str]:
        """What runs of it: Ray's processes hide their environment, but run in its folder."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdecimal() and (
                    self.mark in (entry / "environ").read_bytes() or (entry / "cwd").resolve() == self.folder.resolve()
                ):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                pass  # it has just ended
        return {pid: command for pid, command in found.items() if command}  # the others are ending

    def is_gone(self, within: float = 0.0) -> None:
        """Fail if processes, files or shared memory are left."""
        end = time.monotonic() + within
        while (left := [self.processes(), os.listdir(self.temporary)]) != [{}, []] and time.monotonic() < end:
            time.sleep(0.1)
        assert left == [{}, []]
        assert [name for name in os.listdir("/dev/shm") if re.search("plasma|mxcore", name)] == []

    def listening(self) -> set[tuple[str, int]]:
        """Address and port of each socket that waits for connections."""
        sockets = set()
        for pid in self.processes():
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                sockets.add(os.readlink(entry))
        found = set()
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                    address, port = fields[1].split(":")
                    found.add((str(ipaddress(address)), int(port, 16)))
        return found


def ipaddress(text: str) -> IPv4Address | IPv6Address:
    """An address as the kernel writes it: words of four bytes, the lowest byte first."""
    words = [bytes.fromhex(text[i : i + 8])[::-1] for i in range(0, len(text), 8)]
    address = ip_address(b"".join(words))
    return getattr(address, "ipv4_mapped", None) or address


@pytest.fixture
def start(tmp_path):
    """Start a command; whatever happens, it has ended afterwards, and left nothing."""
    started = []
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="k") as temporary:

        def run(*command: str, **env: str) -> Launch:
            started.append(Launch(tmp_path, temporary, [*command], env))
            return started[-1]

        yield run
        for each in started:
            each.process.kill()
            each.process.wait()
            each.is_gone(SOON)


@pytest.fixture
def launch(start, tmp_path):
    """Launch a program, given as text."""

    def run(program: str, *args: str, options: str = "-n 2", **env: str) -> Launch:
        (tmp_path / "program.py").write_text(program)
        return start(*MXCORE, "launch", *options.split(), sys.executable, "program.py", *args, **env)

    return run


def lines(text: str, prefix: str) -> list[str]:
    return [line.removeprefix(prefix) for line in text.split("\n") if line.startswith(prefix)]


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
    assert "Unauthenticated" in strangers_words(job)
    (job.folder / "go").touch()
    status, out, err = job.wait()
    assert (status, err) == (0, "[0] to stderr\n[1] to stderr\n")
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


def strangers_words(job: Launch) -> str:
    """What Ray tells somebody on this host who knows where a cluster is, but not its token."""
    (told,) = Path(job.temporary).glob("mxcore-*/ray_current_cluster")
    env = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    env |= {"RAY_AUTH_MODE": "disabled", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    code = f"import ray; ray.init({told.read_text()!r}, log_to_driver=False); print(ray.nodes())"
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
    assert ("lost rank 1" in err) == (kind == "dist_sync" and "getpid" in what)
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
