"""Servers for programs that another launcher started (torchrun, Slurm, MPI): rank 0 has them, the others find them.

Ray runs in a process beside rank 0, and ends with it: the program itself stays free of it. Where all is on one host,
the others ask that process, which answers to the same user only; in a Ray cluster (``RAY_ADDRESS``) an actor tells
them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO, TypeVar

from mxcore.base import MXNetError, error

from .cluster import Cluster, require_ray

__all__ = ["find_servers", "leave"]

#: What tells jobs on one host apart: torchrun, Slurm, PMIx and Open MPI. All of a row must be there.
_IDENTITIES = (
    ("MASTER_ADDR", "MASTER_PORT"),
    ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ("PMIX_NAMESPACE",),
    ("OMPI_MCA_ess_base_jobid",),
)
#: How often the others look, in seconds.
_LOOK = 0.1
#: How long what rank 0 has started may take to end, beyond the deadline, in seconds.
_GRACE = 10.0

T = TypeVar("T")

#: The process beside rank 0.
_host: subprocess.Popen[str] | None = None
_deadline = 0.0


# -- in the program's process ----------------------------------------------------------------------------------------


def find_servers(rank: int, workers: int, deadline: float) -> dict[str, str]:
    """Start the servers of this job, or find them.

    Parameters
    ----------
    rank, workers : int
    deadline : float
        In seconds.

    Returns
    -------
    dict of str to str
        What `mxcore launch` would have set in the environment.

    Raises
    ------
    MXNetError
        If they cannot be had, with what to do about it.
    """
    require_ray("a job of several workers")
    name = _name()
    if rank == 0:
        return _start(name, workers, deadline)
    if os.environ.get("RAY_ADDRESS"):
        with _beside("find", name, str(deadline)) as finder:
            return _told(finder)
    return _understood(_until(deadline, lambda: _ask(name), _missing(deadline)))


def leave() -> None:
    """End what rank 0 has started, when the other workers have left; at once if the program has failed."""
    if _host is None or _host.stdin is None or _host.stdin.closed:
        return
    try:
        if not hasattr(sys, "last_value"):
            _host.stdin.write("wait\n")
        _host.stdin.close()
        _host.wait(_deadline + _GRACE)
    except (OSError, subprocess.TimeoutExpired):
        pass  # it ends with this process


def _in_child() -> None:
    """In a forked child: the process beside rank 0 lives as long as somebody can write to it, which is its parent."""
    if _host is not None and _host.stdin is not None:
        _host.stdin.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _start(name: str, workers: int, deadline: float) -> dict[str, str]:
    global _host, _deadline
    text = os.environ.get("MXCORE_KV_NUM_SERVER", "1")
    if not text.isdecimal() or int(text) < 1:
        raise error(ValueError, f"MXCORE_KV_NUM_SERVER={text!r} must be a number of servers")
    _host, _deadline = _beside("host", name, str(workers), text, str(deadline)), deadline
    return _told(_host)


def _beside(*args: str) -> subprocess.Popen[str]:
    """Start this module in a process that takes no notice of signals to the program, and ends with its input."""
    return subprocess.Popen(
        [sys.executable, "-m", __name__, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _told(process: subprocess.Popen[str]) -> dict[str, str]:
    """What that process has to tell in its first line."""
    assert process.stdout is not None
    answer = _understood(process.stdout.readline() or '{"error": "Ray ended without a word"}')
    process.stdout.close()
    return answer


def _understood(text: str) -> dict[str, str]:
    answer: dict[str, str] = json.loads(text)
    if "error" in answer:
        raise error(ConnectionError, f"kvstore: {answer['error']}")
    return answer


def _name() -> str:
    """A name of this job that all of its workers know, and no other job has."""
    for names in _IDENTITIES:
        if all(n in os.environ for n in names):
            text = "\n".join(f"{n}={os.environ[n]}" for n in names)
            return hashlib.sha256(text.encode()).hexdigest()[:16]
    raise error(
        ValueError,
        "kvstore: there are ranks, but nothing that tells this job from others; set MASTER_ADDR and MASTER_PORT, the "
        "same for all workers, as torchrun does, or start them by `mxcore launch -n WORKERS python train.py`",
    )


def _missing(deadline: float) -> str:
    return (
        f"kvstore: no servers were found within {deadline:g} s: rank 0, which starts them, must run on this host and "
        "make a store as well; for several hosts start a Ray cluster and set RAY_ADDRESS for all workers"
    )


def _until(deadline: float, attempt: Callable[[], T | None], failure: str) -> T:
    """Try until there is a result."""
    end = time.monotonic() + deadline
    while (result := attempt()) is None:
        if time.monotonic() > end:
            raise error(TimeoutError, failure)
        time.sleep(_LOOK)
    return result


# -- one host: a socket whose name is no file, so that nothing can be left of it -------------------------------------


def _socket(name: str) -> tuple[socket.socket, str]:
    if sys.platform != "linux":
        raise error(
            NotImplementedError, "kvstore: workers that others start find each other on Linux only; use `mxcore launch`"
        )
    return socket.socket(socket.AF_UNIX), f"\0mxcore-job-{os.geteuid()}-{name}"


def _is_ours(sock: socket.socket) -> bool:
    """Whether a process of this user is at the other end."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] == os.geteuid())


def _ask(name: str) -> str | None:
    """What the process beside rank 0 says, if there is one."""
    sock, address = _socket(name)
    with sock:
        try:
            sock.connect(address)
        except ConnectionRefusedError:
            return None
        if not _is_ours(sock):
            raise error(PermissionError, "kvstore: another user has taken the place where rank 0 should be")
        with sock.makefile() as f:
            return f.read() or None


def _tell(sock: socket.socket, text: str) -> None:
    """Tell everybody who asks and belongs to the user."""
    while True:
        asking, _ = sock.accept()
        with asking:
            if _is_ours(asking):
                asking.sendall(text.encode())


# -- beside the program ----------------------------------------------------------------------------------------------


class Board:
    """An actor that tells workers of a cluster where the servers of their job are."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self) -> str:
        """What it tells."""
        return self._text


def _claim(name: str) -> socket.socket:
    """Take the place where workers of this host look."""
    sock, address = _socket(name)

    def attempt() -> bool | None:
        try:
            sock.bind(address)
        except OSError:
            return None
        return True

    _until(_GRACE, attempt, "kvstore: another job with the same name runs on this host; set another MASTER_PORT")
    return sock


def _host_servers(name: str, workers: int, servers: int, deadline: float, answer: TextIO) -> None:
    """Run servers until the program that started this process ends."""
    from .actors import start_servers

    joined = os.environ.get("RAY_ADDRESS")
    place = None if joined else _claim(name)
    token = secrets.token_hex(32)
    with Cluster(joined, servers) as cluster:
        hosts, addresses = start_servers(cluster, servers, workers, token)
        text = json.dumps({"MXCORE_KV_SERVERS": json.dumps(addresses), "MXCORE_KV_TOKEN": token})
        if place is None:
            board = cluster.actor(Board, cluster.nodes[0], text, name=name)  # noqa: F841  # it is there as long as this
        else:
            place.listen()
            threading.Thread(target=_tell, args=(place, text), daemon=True).start()
        _say(text, cluster, answer)
        _serve(hosts, deadline)


def _serve(hosts: list[Any], deadline: float) -> None:
    """Show what servers print until the program ends; then wait for its other workers, if it says so."""
    import ray

    said: list[str] = []
    program = threading.Thread(target=lambda: said.append(sys.stdin.readline()), daemon=True)
    program.start()
    calls = {host.take.remote(): host for host in hosts}
    while program.is_alive() and calls:
        ready, _ = ray.wait([*calls], timeout=_LOOK)
        for call in ready:
            host = calls.pop(call)
            try:
                lines, _ = ray.get(call)
            except ray.exceptions.RayError:
                continue  # workers know it already
            for _, text in lines:
                sys.stderr.buffer.write(text)
            sys.stderr.flush()
            calls[host.take.remote()] = host
    if said and said[0]:
        ray.wait([host.wait.remote(deadline) for host in hosts], num_returns=len(hosts), timeout=deadline)


def _find_board(name: str, deadline: float, answer: TextIO) -> None:
    """Say what the board of a job says."""
    with Cluster(os.environ["RAY_ADDRESS"]) as cluster:
        import ray

        def attempt() -> str | None:
            try:
                return str(ray.get(ray.get_actor(name).read.remote()))
            except (ValueError, ray.exceptions.RayError):
                return None

        _say(_until(deadline, attempt, _missing(deadline)), cluster, answer)


def _say(text: str, cluster: Cluster, answer: TextIO) -> None:
    """Tell the program beside this process about the servers, and where itself is."""
    print(json.dumps({**json.loads(text), "MXCORE_KV_HOST": cluster.here}), file=answer, flush=True)


def _main(what: str, name: str, *numbers: str) -> None:
    answer = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # Ray has things to say as well
        try:
            if what == "host":
                workers, servers, deadline = numbers
                _host_servers(name, int(workers), int(servers), float(deadline), answer)
            else:
                _find_board(name, float(numbers[0]), answer)
        except MXNetError as e:
            print(json.dumps({"error": str(e)}), file=answer, flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
