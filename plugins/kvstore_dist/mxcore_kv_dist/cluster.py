"""Ray clusters: one of our own on this host, or one to join, and actors on their nodes."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple

from mxcore.base import error

__all__ = ["Cluster", "Node", "keep", "require_ray"]

_KEEPER = os.path.join(os.path.dirname(__file__), "keeper.py")
_LOOPBACK = "127.0.0.1"
#: How long Ray may take to start, in seconds.
_PATIENCE = 60.0
#: Where actors have their names.
_NAMESPACE = "mxcore"
#: Ray makes no smaller object store; ours has output of programs in it.
_STORE_BYTES = 80_000_000
#: A socket's path has at most 107 bytes, of which Ray takes about 65.
_LONGEST_FOLDER = 30

#: What a cluster of our own gets beside a token.
_SETTINGS = {
    "RAY_AUTH_MODE": "token",
    # Where other hosts cannot be had, Ray gives all processes loopback addresses.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Programs run as the user's others do, and are not killed because somebody fills the memory.
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_worker_niceness": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
#: What belongs to another cluster.
_OTHERS = ("RAY_ADDRESS", "RAY_AUTH_TOKEN_PATH", "RAY_NAMESPACE")

#: What a client of HTTP/2, which Ray speaks, says first; a server answers it.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])

_START = (
    f"start --head --block --port=0 --node-ip-address={_LOOPBACK} --object-store-memory={_STORE_BYTES} "
    "--include-dashboard=False --include-log-monitor=False --no-monitor --disable-usage-stats"
)


def require_ray(what: str) -> None:
    """Raise an error that says how to get Ray, if it is not installed.

    Parameters
    ----------
    what : str
        What needs it.
    """
    if importlib.util.find_spec("ray") is None:
        raise error(
            ModuleNotFoundError, f"{what} needs Ray, which is not installed: `pip install 'mxcore[dist]'` brings it"
        )


def keep(folder: str, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a command that does not outlive this process, nor does anything that it starts (see `keeper`).

    Parameters
    ----------
    folder : str
        Removed at its end; '' for none.
    command : list of str
    **options
        Of `subprocess.Popen`.

    Returns
    -------
    subprocess.Popen
        Its `stdin` takes signals, one in a byte; when that is closed, everything ends.
    """
    return subprocess.Popen(
        [sys.executable, "-I", "-S", _KEEPER, folder, *command],
        stdin=subprocess.PIPE,
        start_new_session=True,
        **options,
    )


class Node(NamedTuple):
    """A host of a cluster."""

    id: str
    #: Where its processes listen and are found.
    address: str


def _written(path: str) -> str:
    """What a file holds; nothing if it is not there yet. Ray makes it first, and writes to it then."""
    try:
        with open(path) as f:
            return f.read()
    except FileNotFoundError:
        return ""


class Cluster:
    """A Ray cluster, which is there within a ``with``.

    Parameters
    ----------
    address : str, optional
        Of a cluster to join: ``HOST:PORT``, or ``auto`` for the one of this host. Otherwise one is started, which
        nobody can join without its token, nor from other hosts.
    actors : int
        How many there will be: Ray starts their processes in time.
    deadline : float
        How long a cluster to join may take to answer, in seconds.

    Attributes
    ----------
    nodes : list of Node
        Where processes can run.
    here : str
        Where processes of this host are found by those of others.
    """

    def __init__(self, address: str | None = None, actors: int = 1, deadline: float = _PATIENCE) -> None:
        require_ray("a distributed job")
        self._address, self._actors, self._deadline = address, actors, deadline
        self._keeper: subprocess.Popen[bytes] | None = None
        self.nodes: list[Node] = []
        self.here = _LOOPBACK

    def __enter__(self) -> Cluster:
        try:
            if self._address is not None:
                _knock(self._address, self._deadline)
            address = self._address or self._start()
            import ray

            with _signals_wait():
                try:
                    ray.init(address, namespace=_NAMESPACE, log_to_driver=False, configure_logging=False)
                except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as e:
                    why = e.__cause__ or e
                    raise error(ConnectionError, f"there is no Ray cluster to join at {address}: {why}") from None
            alive = sorted(
                (node["NodeManagerAddress"], node["NodeID"], node["Resources"].get("CPU", 0))
                for node in ray.nodes()
                if node["Alive"]
            )
            # A head without CPUs is not meant to compute.
            usable = [node for node in alive if node[2]] or alive
            # On one host nobody needs to reach anything from outside.
            self.nodes = [Node(id, address if len(usable) > 1 else _LOOPBACK) for address, id, _ in usable]
            if len(usable) > 1:
                self.here = ray.util.get_node_ip_address()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> str:
        """Start a cluster and return its address."""
        for name in _OTHERS:
            os.environ.pop(name, None)
        os.environ.update(_SETTINGS, RAY_AUTH_TOKEN=secrets.token_hex(32))
        place = tempfile.gettempdir()
        folder = tempfile.mkdtemp(prefix="mxcore-", dir=place if len(place) < _LONGEST_FOLDER else "/tmp")
        told = os.path.join(folder, "ray_current_cluster")
        said = os.path.join(folder, "start.log")
        ray = [sys.executable, "-m", "ray.scripts.scripts", *_START.split()]
        ray += [f"--num-cpus={self._actors}", f"--temp-dir={folder}"]
        # Opened now, for the keeper removes the name when Ray has ended.
        with open(said, "wb") as log, open(said, errors="replace") as told_log:
            self._keeper = keep(folder, ray, stdout=log, stderr=log)
            importlib.import_module("ray")  # while it starts
            end = time.monotonic() + _PATIENCE
            while not (address := _written(told)):
                if self._keeper.poll() is not None or time.monotonic() > end:
                    raise error(RuntimeError, f"Ray does not start; it says\n{told_log.read()}")
                time.sleep(0.02)
        return address

    def actor(
        self, cls: type, node: Node, *args: Any, name: str | None = None, env: dict[str, str] | None = None
    ) -> Any:
        """Make an object in a process of its own on a node.

        Parameters
        ----------
        cls : type
        node : Node
        *args
            Its arguments.
        name : str, optional
            By which others find it.
        env : dict of str to str, optional
            What the environment of the process has beside that of the cluster.

        Returns
        -------
        ray.actor.ActorHandle
        """
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        remote = ray.remote(num_cpus=0, max_concurrency=8)(cls)
        there = NodeAffinitySchedulingStrategy(node.id, soft=False)
        runtime = {"env_vars": env} if env else None
        return remote.options(scheduling_strategy=there, name=name, runtime_env=runtime).remote(*args)

    def close(self) -> None:
        """Leave the cluster; one of our own ends with all of its processes."""
        if "ray" in sys.modules:
            import ray

            ray.shutdown()
        if self._keeper is not None:
            assert self._keeper.stdin is not None
            self._keeper.stdin.close()
            self._keeper.wait()
            self._keeper = None


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """A with-block in which Ray may start: a signal that would end it half-way comes behind it, a second one ends all.

    Ray's threads are at work before `ray.shutdown` could end them: an exception between leads to an exit beside them, a
    crash. Ray brings a handler of its own for SIGTERM, which aborts where it comes before this one is back.
    """
    came: list[int] = []

    def come(number: int, frame: Any) -> None:
        if came:  # it may wait for minutes for who does not answer; what we have started ends with us
            os._exit(128 + number)
        came.append(number)

    found = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    handlers = {number: handler for number, handler in found.items() if handler is not None}  # else it is C's
    try:
        for number in handlers:
            signal.signal(number, come)
        yield
    finally:
        for number, handler in handlers.items():  # that of Ctrl-C last: it may raise at once
            signal.signal(number, handler)
        for waiting in came:
            signal.raise_signal(waiting)


def _knock(address: str, deadline: float) -> None:
    """Raise an error if nobody who could be Ray answers at HOST:PORT: Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or "/" in host:
        return  # 'auto', or what Ray understands
    end = time.monotonic() + deadline
    try:
        with socket.create_connection((host, int(port)), deadline) as sock:
            sock.settimeout(max(0.1, end - time.monotonic()))
            sock.sendall(_GREETING)
            if sock.recv(1):
                return
            why = "the connection was closed"
    except TimeoutError:
        why = f"nobody has answered for {deadline:g} s"
    except OSError as e:
        why = e.strerror or str(e)
    raise error(ConnectionError, f"there is no Ray cluster to join at {address}: {why}")
