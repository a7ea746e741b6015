"""How long a push and pull of a whole model takes, by a small model, and by measurement where that can be had.

``python tools/kvstore_model.py`` measures this machine (a round trip, copies, sums, bytes through a connection),
predicts jobs of 1 to 4 workers on it, by each way that values go, and measures them, then predicts clusters of 2 to
1,024 hosts. The tables of docs/distributed.md are its output.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.exchange import Job  # of this checkout

#: Bytes that the ring moves at once, as in mxcore_kv_dist.ring.
ROOM = 8 << 20


class Machine(NamedTuple):
    """What a host does, in seconds and bytes per second."""

    #: A message and its answer.
    latency: float
    #: All cores together copy, or add up, so many bytes: they share the memory.
    copy: float
    add: float
    #: Bytes through a connection, each way.
    network: float
    cores: int


def servers_on_host(machine: Machine, size: float, workers: int) -> float:
    """Seconds for workers and a server on one host: each value is copied twice and added once, by whatever core."""
    return machine.latency + workers * size * (2 / machine.copy + 1 / machine.add)


def servers_by_connections(machine: Machine, size: float, workers: int) -> float:
    """Seconds for workers and a server on one host that share no memory: values go through connections twice."""
    return machine.latency + workers * size * (2 / machine.network + 1 / machine.add)


def ring_on_host(machine: Machine, size: float, workers: int) -> float:
    """Seconds for a ring on one host: each value is copied in and out, and goes round by sums and by copies."""
    steps = 2 * (workers - 1)
    rooms = max(1, -(-size // ROOM))
    round_ = (workers - 1) * (1 / machine.add + 1 / machine.copy)
    return rooms * steps * machine.latency / 2 + size * (2 * workers / machine.copy + round_)


#: What is measured: store type, transport, and what the model says of it.
WAYS = {
    "shared memory": ("dist_sync", "auto", servers_on_host),
    "connections": ("dist_sync", "tcp", servers_by_connections),
    "ring": ("allreduce", "auto", ring_on_host),
}


def servers_between_hosts(machine: Machine, size: float, workers: int, servers: int, values: int) -> float:
    """Seconds for one worker or server a host; sending, adding up and receiving overlap, the slowest counts.

    Values that are too small to be split lie on one server each.
    """
    servers = min(servers, values)
    through_worker = size / machine.network
    through_server = workers * size / servers / machine.network
    adding = workers * size / servers / machine.add
    return 2 * machine.latency + max(through_worker, through_server, adding)


def ring_between_hosts(machine: Machine, size: float, workers: int) -> float:
    """Seconds for a ring: each room goes round twice, a chunk at a time."""
    steps = 2 * (workers - 1)
    rooms = max(1, -(-size // ROOM))
    moved = size * steps / workers
    return rooms * steps * machine.latency / 2 + moved / machine.network + moved / 2 / machine.add


# -- measuring -------------------------------------------------------------------------------------------------------


def together(run, cores, size):
    """Bytes per second of all cores, each of which works on arrays of its own."""
    share = size // 4 // cores
    arrays = [[np.ones(share, np.float32) for _ in range(2)] for _ in range(cores)]
    found = []
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(7):
            start = time.perf_counter()
            list(pool.map(lambda pair: run(*pair), arrays))
            found.append(time.perf_counter() - start)
    return 4 * share * cores / min(found)


def through_a_connection(size):
    """Seconds for bytes through a connection of this host."""
    listening = socket.create_server(("127.0.0.1", 0))
    sent, received = memoryview(bytearray(size)), memoryview(bytearray(size))

    def send():
        with socket.create_connection(listening.getsockname()) as out:
            for _ in range(5):
                out.sendall(sent)

    thread = threading.Thread(target=send)
    thread.start()
    times = []
    with listening, listening.accept()[0] as incoming:
        for _ in range(5):
            start, at = time.perf_counter(), 0
            while at < size:
                at += incoming.recv_into(received[at:])
            times.append(time.perf_counter() - start)
    thread.join()
    return min(times)


def measure(size):
    """This machine."""
    cores = len(os.sched_getaffinity(0))
    with Job(sys.executable, False, 1) as job:
        latency = min(job.run(1, 1, 30))
    return Machine(
        latency=latency,
        copy=together(lambda a, b: np.copyto(b, a), cores, size),
        add=together(lambda a, b: np.add(a, b, out=a), cores, size),
        network=size / through_a_connection(size),
        cores=cores,
    )


def show(name, times, more=""):
    """A row of a table."""
    print(f"| {name} | " + " | ".join(f"{1e3 * t:.0f} ms" for t in times) + f" |{more}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=100_000_000, metavar="BYTES", help="of all values (100000000)")
    parser.add_argument("--keys", type=int, default=60, help="how many values (60)")
    parser.add_argument("--rounds", type=int, default=10, help="of each measurement (10)")
    size = (args := parser.parse_args()).size
    here = measure(size)
    copy, add, network = (f"{rate / 1e9:.1f} GB/s" for rate in (here.copy, here.add, here.network))
    print(f"this machine: a round trip takes {1e6 * here.latency:.0f} us, {here.cores} cores copy {copy}")
    print(f"and add up {add}, {network} go through a connection\n")
    print("| way | workers | predicted | best | median | best / predicted |\n| --- | --- | --- | --- | --- | --- |")
    for way, (type, transport, predict) in WAYS.items():
        for workers in (1, 2, 4):
            with Job(sys.executable, False, workers, type=type, MXCORE_KV_TRANSPORT=transport) as job:
                times = job.run(args.keys, size // 4 // args.keys, args.rounds)
            predicted, best = predict(here, size, workers), min(times)
            show(f"{way} | {workers}", [predicted, best, statistics.median(times)], f" {best / predicted:.2f} |")
    cluster = here._replace(latency=100e-6, network=1.25e9)  # 10 Gbit/s
    print(f"\nhosts with {cluster.network * 8e-9:.0f} Gbit/s and {1e6 * cluster.latency:.0f} us a round trip\n")
    print("| workers | 1 server | a server for 4 workers | as many servers | ring |\n| --- | --- | --- | --- | --- |")
    for workers in (2, 4, 8, 16, 64, 256, 1024):
        counts = 1, max(1, workers // 4), workers
        times = [servers_between_hosts(cluster, size, workers, s, args.keys) for s in counts] + [
            ring_between_hosts(cluster, size, workers)
        ]
        show(f"{workers:,}", times)


if __name__ == "__main__":
    main()
