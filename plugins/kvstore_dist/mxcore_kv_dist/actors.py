"""What runs on the nodes of a cluster: servers, and the programs of workers; each in a process of its own."""

from __future__ import annotations

import os
import queue
import threading
from typing import Any, TypeAlias

from mxcore.base import error

from .cluster import Cluster, keep

__all__ = ["Runner", "ServerHost", "start_servers"]

#: Longer lines are cut, so that a program which never ends one does not fill the memory.
_LONGEST_LINE = 16 << 20
_CHUNK = 1 << 16
#: How many chunks of lines wait for the launcher before the program has to, and how many bytes it takes at once.
_WAITING, _MOST = 16, 1 << 20

#: How long servers may take to begin, in seconds.
_PATIENCE = 60.0

#: Lines with the numbers of their streams, and the status of a program that has ended.
_Said: TypeAlias = tuple[list[tuple[int, bytes]], int | None]


class _Output:
    """Whole lines that come out of pipes, until all of them have ended. Progress bars end theirs by a carriage return.

    Parameters
    ----------
    pipes : dict of int to int
        Number of the stream (1 or 2) -> descriptor to read from.
    """

    def __init__(self, pipes: dict[int, int]) -> None:
        self._lines: queue.Queue[tuple[int, bytes] | None] = queue.Queue(_WAITING)
        self._threads = [threading.Thread(target=self._read, args=pipe, daemon=True) for pipe in pipes.items()]
        for thread in self._threads:
            thread.start()

    def _read(self, stream: int, pipe: int) -> None:
        rest = b""
        while chunk := os.read(pipe, _CHUNK):
            rest += chunk
            # A carriage return that comes last may be the first half of a line's end.
            new = len(rest) - len(chunk)
            cut = max(rest.rfind(b"\n", new), rest.rfind(b"\r", max(0, new - 1), -1)) + 1
            if cut:
                self._lines.put((stream, rest[:cut]))
                rest = rest[cut:]
            elif len(rest) > _LONGEST_LINE:
                self._lines.put((stream, rest + b"\n"))
                rest = b""
        if rest:
            self._lines.put((stream, rest + b"\n"))
        os.close(pipe)

    def end(self) -> None:
        """Wait until all was read; `next` says then that there is no more."""
        for thread in self._threads:
            thread.join()
        self._lines.put(None)

    def next(self) -> tuple[list[tuple[int, bytes]], bool]:
        """Wait for lines, and return them with their streams, and whether more may come."""
        taken: list[tuple[int, bytes]] = []
        size = 0
        item = self._lines.get()
        while item is not None:
            taken.append(item)
            size += len(item[1])
            if size > _MOST:
                return taken, True
            try:
                item = self._lines.get_nowait()
            except queue.Empty:
                return taken, True
        return taken, False


class Runner:
    """Runs the program of one worker."""

    def start(self, command: list[str], env: dict[str, str], folder: str, neighbours: int) -> _Said:
        """Start it, and return what `lines` does.

        Parameters
        ----------
        command : list of str
        env : dict of str to str
            Its whole environment.
        folder : str
            Where it runs.
        neighbours : int
            How many programs this host runs.
        """
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"{os.uname().nodename} has no folder {folder!r}, where the program is to run")
        if not ("MXCORE_NUM_THREADS" in env or "OMP_NUM_THREADS" in env):
            env = {**env, "MXCORE_NUM_THREADS": str(max(1, _cores() // neighbours))}
        pipes = {1: os.pipe(), 2: os.pipe()}
        self._keeper = keep("", command, stdout=pipes[1][1], stderr=pipes[2][1], env=env, cwd=folder)
        for _, write in pipes.values():
            os.close(write)
        self._output = _Output({stream: read for stream, (read, _) in pipes.items()})
        threading.Thread(target=self._wait, daemon=True).start()
        return self.lines()

    def _wait(self) -> None:
        self._keeper.wait()
        self._output.end()

    def lines(self) -> _Said:
        """Wait for output, and return lines with their streams; with the last ones the status.

        Returns
        -------
        (list of (int, bytes), int or None)
            The status is minus the number of a signal if that ended the program.
        """
        lines, more = self._output.next()
        return lines, None if more else self._keeper.wait()

    def signal(self, number: int) -> None:
        """Send a signal to the program and what it started."""
        assert self._keeper.stdin is not None
        try:
            self._keeper.stdin.write(bytes([number]))
            self._keeper.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended


class ServerHost:
    """Runs a server.

    Parameters
    ----------
    number, servers, workers : int
    token : str
    host : str
        Where it listens.
    """

    def __init__(self, number: int, servers: int, workers: int, token: str, host: str) -> None:
        # What it prints, and what fails in its threads, is for the user.
        read, write = os.pipe()
        self._output = _Output({2: read})
        for stream in (1, 2):
            os.dup2(write, stream)
        os.close(write)
        from .guests import allow_files
        from .server import Server

        allow_files()

        self._server = Server(number, servers, workers, token.encode(), host)

    def address(self) -> tuple[str, int, str]:
        """Where it is."""
        return self._server.address

    def synchronous(self) -> bool:
        """Whether a worker that is lost stops the others."""
        return self._server.synchronous

    def first_gone(self) -> int | None:
        """The rank of the worker that went first, if one has gone."""
        return next(iter(self._server.gone), None)

    def wait(self, timeout: float) -> bool:
        """Wait until all workers have left."""
        return self._server.wait(timeout)

    def lines(self) -> _Said:
        """Wait for output, as `Runner.lines` does."""
        return self._output.next()[0], None


def start_servers(
    cluster: Cluster, servers: int, workers: int, token: str, env: dict[str, str] | None = None
) -> tuple[list[Any], list[Any]]:
    """Start the servers of a job.

    Parameters
    ----------
    cluster : Cluster
    servers, workers : int
    token : str
        What workers must know.
    env : dict of str to str, optional
        What their environments have beside that of the cluster.

    Returns
    -------
    (list of ray.actor.ActorHandle, list of (str, int, str))
        The servers and their addresses.
    """
    import ray

    nodes, hosts = cluster.nodes, []
    for number in range(servers):
        node = nodes[number % len(nodes)]
        hosts.append(cluster.actor(ServerHost, node, number, servers, workers, token, node.address, env=env))
    try:
        return hosts, ray.get([host.address.remote() for host in hosts], timeout=_PATIENCE)
    except ray.exceptions.RayError as e:
        raise error(RuntimeError, f"the servers do not start: {e}") from None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
