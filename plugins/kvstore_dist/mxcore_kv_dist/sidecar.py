"""The process beside a program that another launcher started: Ray is here, not in the program.

``python -m mxcore_kv_dist.sidecar FD host NAME WORKERS SERVERS DEADLINE`` runs servers beside rank 0, and
``… FD find NAME DEADLINE`` finds them for another one in a Ray cluster (``RAY_ADDRESS``). The answer is a line of JSON
in a descriptor of its own, for anything may print: what the program's environment lacks, or an error. A host ends with
its input; says that `WAIT`, then only when the other workers have left.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
from typing import Any, TextIO

from mxcore.base import MXNetError

from . import board
from .cluster import Cluster

__all__ = ["WAIT"]

#: What the program says at its end if it goes well.
WAIT = "wait\n"
#: How often the end of the program is looked for, in seconds.
_POLL = 0.1


def _host(answer: TextIO, name: str, workers: int, servers: int, deadline: float) -> None:
    """Run servers until the program that started this process ends."""
    from .actors import start_servers

    joined = os.environ.get("RAY_ADDRESS")
    place = None if joined else board.claim_host(name)
    token = secrets.token_hex(32)
    with Cluster(joined, servers, deadline) as cluster:
        hosts, addresses = start_servers(cluster, servers, workers, token)
        text = json.dumps({"MXCORE_KV_SERVERS": json.dumps(addresses), "MXCORE_KV_TOKEN": token})
        if place is None:
            told = board.tell_cluster(cluster, name, text)  # noqa: F841  # it is there as long as this
        else:
            board.tell_host(place, text)
        _say(answer, text, cluster)
        _serve(hosts, deadline)


def _serve(hosts: list[Any], deadline: float) -> None:
    """Show what servers print until the program ends; then wait for its other workers, if it says so."""
    import ray

    said: list[str] = []
    program = threading.Thread(target=lambda: said.append(sys.stdin.readline()), daemon=True)
    program.start()
    calls = {host.lines.remote(): host for host in hosts}
    while program.is_alive() and calls:
        ready, _ = ray.wait([*calls], timeout=_POLL)
        for call in ready:
            host = calls.pop(call)
            try:
                lines, _ = ray.get(call)
            except ray.exceptions.RayError:
                continue  # workers know it already
            for _, text in lines:
                sys.stderr.buffer.write(text)
            sys.stderr.flush()
            calls[host.lines.remote()] = host
    if said == [WAIT]:
        ray.wait([host.wait.remote(deadline) for host in hosts], num_returns=len(hosts), timeout=deadline)


def _find(answer: TextIO, name: str, deadline: float) -> None:
    """Say what the board of a job says."""
    with Cluster(os.environ["RAY_ADDRESS"], deadline=deadline) as cluster:
        _say(answer, board.ask_cluster(name, deadline), cluster)


def _say(answer: TextIO, text: str, cluster: Cluster) -> None:
    """Tell the program beside this process about the servers, and where itself is."""
    print(json.dumps({**json.loads(text), "MXCORE_KV_HOST": cluster.here}), file=answer, flush=True)


def _main(descriptor: str, what: str, name: str, *numbers: str) -> None:
    os.set_inheritable(int(descriptor), False)
    with open(int(descriptor), "w") as answer:
        try:
            if what == "host":
                workers, servers, deadline = numbers
                _host(answer, name, int(workers), int(servers), float(deadline))
            else:
                _find(answer, name, float(numbers[0]))
        except Exception as e:  # the program is to hear of it, whatever it is
            text = str(e).removeprefix("kvstore: ") if isinstance(e, MXNetError) else repr(e)
            print(json.dumps({"error": text}), file=answer, flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
