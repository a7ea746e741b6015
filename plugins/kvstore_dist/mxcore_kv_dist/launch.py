"""``mxcore launch``: run a program as the workers of a distributed job, with servers, on this host or on a cluster.

mxcore launch -n 4 -s 2 python train.py --kv-store dist_sync
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

from mxcore.base import error

from .actors import Runner, start_servers
from .cluster import Cluster, require_ray
from .job import deadline

__all__ = ["add_arguments", "help", "main"]

help = "run a program as the workers of a distributed job"

#: How workers are stopped: signals, and how many seconds later the next one follows.
_INTERRUPT = ((signal.SIGINT, 5.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))
_TERMINATE = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))
_KILL = ((signal.SIGKILL, 5.0),)
#: Those who waited for a worker that failed know it at once, and have so many seconds to say so before they are
#: stopped; the one that went first, which is to blame, has more to come to its end.
_FAREWELL, _TEARDOWN = 2.0, 5.0
#: How often signals to the launcher are looked for, in seconds.
_POLL = 0.1
#: How long servers may take to answer, in seconds.
_PATIENCE = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        Where to add them.
    """
    parser.usage = (
        "mxcore launch -n WORKERS [-s SERVERS] [--address auto|HOST:PORT] [--restart N] [--env K=V] COMMAND ..."
    )
    parser.description = (
        "Run a program as the workers of a distributed job. Each gets its rank and the addresses of the servers, which "
        "mx.kv.create('dist_sync') finds. What workers print comes with their ranks. When one fails, all end, unless "
        "the store is asynchronous. Nothing is left behind."
    )
    parser.add_argument("-n", dest="workers", type=int, required=True, metavar="WORKERS", help="how many workers")
    parser.add_argument("-s", dest="servers", type=int, default=1, metavar="SERVERS", help="how many servers; 1")
    parser.add_argument(
        "--address",
        default=os.environ.get("RAY_ADDRESS"),
        help="the Ray cluster to join: HOST:PORT, or auto for the one of this host; default: RAY_ADDRESS if that is "
        "set, else a cluster of its own, on this host and for this user only",
    )
    parser.add_argument(
        "--restart",
        type=int,
        default=0,
        metavar="N",
        help="start again up to N times what fails; MXCORE_RESTART counts",
    )
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="K=V",
        help="a variable for workers and servers; as often as there are some",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the program and its arguments: python train.py ...")


def main(args: argparse.Namespace) -> int:
    """Run the job.

    Parameters
    ----------
    args : argparse.Namespace
        See `add_arguments`.

    Returns
    -------
    int
        The exit status of the worker that failed first, or 128 and the number of the signal that ended it or the job.
    """
    _check(args)
    env = dict(os.environ)  # before Ray's settings come into it
    args.env = dict(_pairs(args.env))
    env.update(args.env)
    env.setdefault("PYTHONUNBUFFERED", "1")
    streams = {1: sys.stdout.buffer, 2: sys.stderr.buffer}
    # Standard output is for the program; what Ray has to say is not.
    with _Signals() as signals, contextlib.redirect_stdout(sys.stderr):
        try:
            with Cluster(args.address, args.workers + args.servers, deadline()) as cluster:
                return _Job(cluster, args, env, streams, signals).run()
        except KeyboardInterrupt:
            return 128 + signals.came[0]


def _check(args: argparse.Namespace) -> None:
    """Complain about arguments that make no sense."""
    if os.name != "posix":
        raise error(NotImplementedError, "mxcore launch needs Linux or macOS")
    if args.command[:1] == ["--"]:
        del args.command[0]
    for what, number, least in (("-n", args.workers, 1), ("-s", args.servers, 1), ("--restart", args.restart, 0)):
        if number < least:
            raise error(ValueError, f"{what} must be at least {least}, it is {number}")
    if not args.command:
        raise error(ValueError, "what is to be run? Say `mxcore launch -n 2 python train.py`")
    program = args.command[0]
    if shutil.which(program) is None:
        hint = f"; did you mean `python {program}`?" if os.path.isfile(program) else ""
        raise error(FileNotFoundError, f"there is no program {program!r} that can be run{hint}")
    require_ray("mxcore launch")


def _pairs(texts: list[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise error(ValueError, f"--env takes NAME=VALUE, not {text!r}")
        yield name, value


class _Signals:
    """Signals to this process: the first interrupts what goes on, unless somebody looks for them."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self.looked_for = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._come)
        return self

    def _come(self, number: int, frame: Any) -> None:
        self.came.append(number)
        if not self.looked_for:
            self.looked_for = True  # what is cleared up now is not to be interrupted again
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


class _Process(NamedTuple):
    """A server, or a worker with a rank, on its node."""

    name: str
    prefix: bytes
    rank: int | None
    actor: Any


class _Stop:
    """Signals that follow each other until all workers have ended."""

    def __init__(self, steps: Iterable[tuple[int | None, float]]) -> None:
        self._steps = iter(steps)
        self._due = 0.0

    def due(self) -> int | None:
        """The signal that is due, if one is.

        Raises
        ------
        StopIteration
            If none of them has helped.
        """
        now = time.monotonic()
        if now < self._due:
            return None
        number, seconds = next(self._steps)
        self._due = now + seconds
        return number


class _Job:
    """Servers and workers.

    Parameters
    ----------
    cluster : Cluster
    args : argparse.Namespace
    env : dict of str to str
        What all workers have in their environments.
    streams : dict of int to BinaryIO
        Where output goes: standard output is 1, standard error 2.
    signals : _Signals
    """

    def __init__(
        self,
        cluster: Cluster,
        args: argparse.Namespace,
        env: dict[str, str],
        streams: dict[int, BinaryIO],
        signals: _Signals,
    ) -> None:
        self._cluster, self._args, self._env = cluster, args, env
        self._streams, self._signals = streams, signals
        self._restarts = self._heeded = 0
        self._token = secrets.token_hex(32)
        n = len(cluster.nodes)
        #: Neighbouring ranks are on one node, as far as that goes.
        self._homes = [rank * min(n, args.workers) // args.workers for rank in range(args.workers)]

    def run(self) -> int:
        """Run the job, again if it fails and may; return its exit status."""
        while not self._signals.came:
            status = self._attempt()
            if not self._signals.came:
                if status == 0 or not self._may_restart():
                    return status
                _say(f"the job starts again ({self._restarts} of {self._args.restart})")
        return 128 + self._signals.came[0]

    def _may_restart(self) -> bool:
        if self._restarts == self._args.restart:
            return False
        self._restarts += 1
        return True

    def _attempt(self) -> int:
        """Start servers and workers, and be there until they end."""
        import ray

        self._status = 0
        self._stop: _Stop | None = None
        #: Whether workers were sent signals, and those who failed before, of which one is to blame.
        self._signalled = False
        self._failed: list[tuple[_Process, int | None]] = []
        #: What was started; workers that have not ended; and who is asked for output by which call.
        self._servers: list[_Process] = []
        self._runners: list[_Process] = []
        self._workers: list[_Process] = []
        self._calls: dict[Any, _Process] = {}
        try:
            runners = [self._runner(rank) for rank in range(self._args.workers)]
            self._start_servers()
            for runner in runners:
                self._start(runner)
            self._watch()
        finally:
            for process in [*self._runners, *self._servers]:
                ray.kill(process.actor)  # with all that it has started
        return self._status

    # -- starting ----------------------------------------------------------------------------------------------------

    def _start_servers(self) -> None:
        args = self._args
        hosts, self._addresses = start_servers(self._cluster, args.servers, args.workers, self._token, args.env)
        for number, host in enumerate(hosts):
            server = _Process(f"server {number}", f"[server {number}] ".encode(), None, host)
            self._servers.append(server)
            self._listen(server)

    def _runner(self, rank: int) -> _Process:
        actor = self._cluster.actor(Runner, self._cluster.nodes[self._homes[rank]])
        self._runners.append(_Process(f"rank {rank}", f"[{rank}] ".encode(), rank, actor))
        return self._runners[-1]

    def _start(self, worker: _Process) -> None:
        assert worker.rank is not None
        env = {**self._env, **self._variables(worker.rank)}
        neighbours = self._homes.count(self._homes[worker.rank])
        self._workers.append(worker)
        self._calls[worker.actor.start.remote(self._args.command, env, os.getcwd(), neighbours)] = worker

    def _variables(self, rank: int) -> dict[str, str]:
        """Who a worker is, in the words of mxcore and torchrun, and in those of MXNet."""
        host, port, _ = self._addresses[0]
        home = self._homes[rank]
        variables = {
            "RANK": rank,
            "WORLD_SIZE": self._args.workers,
            "LOCAL_RANK": rank - self._homes.index(home),
            "LOCAL_WORLD_SIZE": self._homes.count(home),
            "MXCORE_KV_SERVERS": json.dumps(self._addresses),
            "MXCORE_KV_TOKEN": self._token,
            "MXCORE_KV_HOST": self._cluster.nodes[home].address,
            "MXCORE_RESTART": self._restarts,
            "DMLC_ROLE": "worker",
            "DMLC_NUM_WORKER": self._args.workers,
            "DMLC_NUM_SERVER": self._args.servers,
            "DMLC_WORKER_ID": rank,
            "DMLC_PS_ROOT_URI": host,
            "DMLC_PS_ROOT_PORT": port,
        }
        return {name: str(value) for name, value in variables.items()}

    # -- running -----------------------------------------------------------------------------------------------------

    def _listen(self, process: _Process) -> None:
        self._calls[process.actor.lines.remote()] = process

    def _watch(self) -> None:
        """Pass on what processes print, until all workers have ended."""
        import ray

        self._signals.looked_for = True
        while self._workers:
            ready, _ = ray.wait(list(self._calls), timeout=_POLL)
            for call in ready:
                self._hear(call)
            self._heed()
        self._blame()

    def _hear(self, call: Any) -> None:
        """Print what a process says, and see to its end."""
        import ray

        process = self._calls.pop(call)
        try:
            lines, status = ray.get(call)
        except ray.exceptions.RayTaskError as e:
            raise error(RuntimeError, f"{process.name} cannot go on: {e.cause}") from None
        except ray.exceptions.RayError:
            return self._ended(process, None)
        for stream, text in lines:
            out = self._streams[stream]
            out.write(b"".join(process.prefix + line for line in text.splitlines(keepends=True)))
            out.flush()
        if status is None:
            self._listen(process)
        else:
            self._ended(process, status)

    def _ended(self, process: _Process, status: int | None) -> None:
        """See to the end of a process; the status is None where its host, or Ray's process there, is gone."""
        if process.rank is not None:
            self._workers.remove(process)
        if status == 0 or self._signalled:
            return
        if self._stop is not None or process.rank is None or self._synchronous():
            self._failed.append((process, status))
            self._stop = self._stop or _Stop(self._farewell())
            return
        what = f"{process.name} {_fate(status)}"
        if self._may_restart():
            _say(f"{what}; it starts again ({self._restarts} of {self._args.restart})")
            return self._start(self._runner(process.rank))
        _say(f"{what}; the others go on")
        self._status = self._status or _exit_status(status)

    def _farewell(self) -> Iterator[tuple[int | None, float]]:
        """How the others are stopped when one has failed."""
        yield None, _FAREWELL
        end = time.monotonic() + _TEARDOWN
        while time.monotonic() < end and self._running(self._first_gone()):
            yield None, _POLL
        yield from _TERMINATE

    def _blame(self) -> None:
        """Say who has failed first: others failed because it had gone, and may have ended before it."""
        if not self._failed:
            return
        first = self._first_gone()
        process, status = next((f for f in self._failed if f[0].rank in (None, first)), self._failed[0])
        self._failed.clear()
        left = "".join(f"{worker.name} left first, and has not ended; " for worker in self._running(first))
        _say(f"{left}{process.name} {_fate(status)}; the job ends")
        self._status = self._status or _exit_status(status)

    def _running(self, rank: int | None) -> list[_Process]:
        """The worker with a rank, if it runs."""
        return [worker for worker in self._workers if worker.rank == rank]

    def _first_gone(self) -> int | None:
        """The rank of the worker that went first, as far as the first server knows."""
        import ray

        try:
            # A server that hangs must not keep the launcher from passing on what others say.
            rank: int | None = ray.get(self._servers[0].actor.first_gone.remote(), timeout=_TEARDOWN)
        except ray.exceptions.RayError:
            return None
        return rank

    def _synchronous(self) -> bool:
        """Whether the others cannot go on without one of them."""
        import ray

        try:
            return any(ray.get([s.actor.synchronous.remote() for s in self._servers], timeout=_PATIENCE))
        except ray.exceptions.RayError:
            return True

    # -- ending ------------------------------------------------------------------------------------------------------

    def _heed(self) -> None:
        """Do what signals ask for, and press on with ending the workers."""
        came = self._signals.came
        if len(came) > self._heeded:
            again = self._heeded or self._stop is not None
            self._stop = _Stop(_KILL if again else _INTERRUPT if came[0] == signal.SIGINT else _TERMINATE)
            self._heeded = len(came)
        if self._stop is None:
            return
        try:
            number = self._stop.due()
        except StopIteration:
            return self._workers.clear()
        if number is not None:
            self._blame()
            self._signalled = True
            for worker in self._workers:
                worker.actor.signal.remote(number)


def _fate(status: int | None) -> str:
    """How a process has ended, in words."""
    if status is None:
        return "is lost: its process, or its host, is gone"
    return f"was ended by {_signal_name(-status)}" if status < 0 else f"exited with status {status}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _exit_status(status: int | None) -> int:
    """What a shell would say of such an end."""
    return 1 if status is None else 128 - status if status < 0 else status


def _say(text: str) -> None:
    print(f"mxcore launch: {text}", file=sys.stderr, flush=True)
