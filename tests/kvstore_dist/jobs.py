"""Jobs whose workers are threads of the test: stores, servers and connections are the real ones."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mxcore_kv_dist.allreduce import AllReduce
from mxcore_kv_dist.job import Job
from mxcore_kv_dist.server import Server
from mxcore_kv_dist.store import DistKVStore

TOKEN = secrets.token_bytes(16)

_running: list[Server] = []


@contextmanager
def servers(number: int, workers: int, token: bytes = TOKEN) -> Iterator[list[Server]]:
    """Servers in this process."""
    made = [Server(i, number, workers, token) for i in range(number)]
    _running.extend(made)
    try:
        yield made
    finally:
        for server in made:
            server.close()
            _running.remove(server)


def server_of(store: DistKVStore) -> Server:
    """The first server of a store, in this process."""
    return next(server for server in _running if server.address == store._job.servers[0])


def job(made: list[Server], rank: int, workers: int, deadline: float = 20.0, transport: str = "auto") -> Job:
    return Job(rank, workers, [s.address for s in made], TOKEN, deadline, transport)


@contextmanager
def stores(
    workers: int, number: int = 1, type: str = "dist_sync", deadline: float = 20.0, transport: str = "auto"
) -> Iterator[list[DistKVStore]]:
    """The stores of all workers of a job."""
    with servers(number, workers) as made:
        opened = [DistKVStore(type, job(made, rank, workers, deadline, transport)) for rank in range(workers)]
        try:
            yield opened
        finally:
            for store in opened:
                store.close()


@contextmanager
def rings(workers: int, transport: str = "auto", deadline: float = 20.0) -> Iterator[list[Any]]:
    """The stores without servers of all workers of a job."""
    with servers(1, workers) as made:
        jobs = [job(made, rank, workers, deadline, transport) for rank in range(workers)]
        opened = all_well(together(jobs, lambda job: AllReduce("allreduce", job)))
        try:
            yield opened
        finally:
            together(opened, lambda store: store.close())


def together(stores: Sequence[Any], run: Callable[[Any], Any]) -> list[Any]:
    """Let all workers do something at the same time; what they return, or the exception that they raise."""
    results: list[Any] = [None] * len(stores)

    def one(i: int) -> None:
        try:
            results[i] = run(stores[i])
        except Exception as e:
            results[i] = e

    threads = [threading.Thread(target=one, args=(i,), daemon=True) for i in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a worker hangs"
    return results


def all_well(results: list[Any]) -> list[Any]:
    """What `together` gave, if nothing was raised."""
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results
