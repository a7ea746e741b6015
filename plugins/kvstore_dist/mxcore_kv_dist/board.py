"""Where rank 0 tells the workers of a job, known by its name, what they must know to reach the servers.

Where all is on one host, they ask through a socket whose name is no file, so that nothing can be left of it, and which
answers to the same user only. In a Ray cluster an actor tells them.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from mxcore.base import error
from mxcore.plugin import let_through

from .cluster import Cluster

__all__ = ["ask_cluster", "ask_host", "claim_host", "tell_cluster", "tell_host"]

#: How often something is tried again, and how long the name of a job that is ending may be taken, in seconds.
_POLL, _GRACE = 0.1, 10.0
#: How long an actor may take to answer, and who asks on this host to take the answer, in seconds.
_PATIENCE = 10.0
#: How many may wait for an answer; the system may allow less.
_MANY = 4096

_TAKEN = "another job with the same name runs {where}; set another MASTER_PORT"
_MISSING = (
    "no servers were found within {deadline:g} s: rank 0, which starts them, must run {where} and make a store as well"
)

T = TypeVar("T")


def _until(deadline: float, attempt: Callable[[], T | None], failure: str) -> T:
    """Try until there is a result."""
    end = time.monotonic() + deadline
    while (result := attempt()) is None:
        if time.monotonic() > end:
            raise error(TimeoutError, f"kvstore: {failure}")
        time.sleep(_POLL)
    return result


# -- one host --------------------------------------------------------------------------------------------------------


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


def claim_host(name: str) -> socket.socket:
    """Take the place where workers of this host ask."""
    sock, address = _socket(name)

    def attempt() -> bool | None:
        try:
            sock.bind(address)
        except OSError as e:
            let_through(e)
            return None
        return True

    _until(_GRACE, attempt, _TAKEN.format(where="on this host"))
    return sock


def tell_host(sock: socket.socket, text: str) -> None:
    """Tell everybody who asks and belongs to the user, in a thread."""

    def tell() -> None:
        while True:
            try:
                asking, _ = sock.accept()
            except OSError as e:  # out of descriptors, which may pass
                let_through(e)
                time.sleep(_POLL)
                continue
            with asking:
                asking.settimeout(_PATIENCE)
                try:
                    if _is_ours(asking):
                        asking.sendall(text.encode())
                except OSError as e:
                    let_through(e)
                    # who asked is gone

    sock.listen(_MANY)
    threading.Thread(target=tell, daemon=True).start()


def ask_host(name: str, deadline: float) -> str:
    """What was told to workers of this host, as soon as it is."""
    end = time.monotonic() + deadline
    where = "on this host"
    hint = "; for several hosts start a Ray cluster and set RAY_ADDRESS for all workers"

    def attempt() -> str | None:
        sock, address = _socket(name)
        sock.settimeout(max(_POLL, end - time.monotonic()))
        with sock:
            try:
                sock.connect(address)
                if not _is_ours(sock):
                    raise error(PermissionError, "kvstore: another user has taken the place where rank 0 should be")
                with sock.makefile() as f:
                    return f.read() or None
            except (BlockingIOError, ConnectionError, TimeoutError):  # the first: too many ask at once
                return None

    return _until(deadline, attempt, _MISSING.format(deadline=deadline, where=where) + hint)


# -- a cluster -------------------------------------------------------------------------------------------------------


class Board:
    """An actor that tells workers of a cluster where the servers of their job are."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self) -> str:
        """What it tells."""
        return self._text


def tell_cluster(cluster: Cluster, name: str, text: str) -> Any:
    """Tell everybody in a cluster who knows the job's name, as long as the caller has what this returns."""
    import ray

    def attempt() -> Any:
        try:
            board = cluster.actor(Board, cluster.nodes[0], text, name=name)
            ray.get(board.read.remote(), timeout=_GRACE)
        except (ValueError, ray.exceptions.RayError):  # the name is taken
            return None
        return board

    return _until(_GRACE, attempt, _TAKEN.format(where="in this Ray cluster"))


def ask_cluster(name: str, deadline: float) -> str:
    """What was told in the cluster that this process has joined, as soon as it is."""
    import ray

    def attempt() -> str | None:
        try:
            return str(ray.get(ray.get_actor(name).read.remote(), timeout=_PATIENCE))
        except (ValueError, ray.exceptions.RayError):
            return None

    return _until(deadline, attempt, _MISSING.format(deadline=deadline, where="with the same RAY_ADDRESS"))
