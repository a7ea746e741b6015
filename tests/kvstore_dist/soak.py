"""Two workers push and pull for as long as one likes: memory, descriptors and threads must not grow.

``python -m tests.kvstore_dist.soak --seconds 180``
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.kvstore_dist.processes import ends, reaped, said, say, spawn, tell, worker

#: By how much the resident memory of a process may grow while it does the same again and again, in MiB.
GROWTH = 12
#: How many steps are between two short-lived stores.
STORES = 200
#: Where nobody says how long OpenMP's threads wait awake, two more come as soon as others want the cores, and go again.
SETTLED = {"GOMP_SPINCOUNT": "5000"}


class Usage(NamedTuple):
    """What a process holds."""

    mebibytes: float
    files: int
    threads: int


def usage(pid: int) -> Usage:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    own = int(status["RssAnon"].split()[0]) + int(status["RssShmem"].split()[0])
    return Usage(own / 1024, len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"]))


def shared() -> set[str]:
    return set(os.listdir("/dev/shm"))


def soak(seconds: float, transport: str = "auto") -> list[str]:
    """Let a job run, and compare what its processes hold early and late.

    Parameters
    ----------
    seconds : float
        The first third warms up.
    transport : {'auto', 'tcp'}

    Returns
    -------
    list of str
        What has grown.
    """
    before = shared()
    with reaped() as made:
        host = spawn("serve.py", "1", "2", **SETTLED)
        made.append(host)
        addresses = said(host)
        more = {"MXCORE_KV_TRANSPORT": transport, **SETTLED}
        workers = [worker(addresses, rank, 2, "soak.py", "--worker", **more) for rank in range(2)]
        made += workers
        names = {host.pid: "the server", **{w.pid: f"rank {r}" for r, w in enumerate(workers)}}

        def run(span: float) -> dict[int, Usage]:
            for process in workers:
                tell(process, str(span))
            steps = [said(process) for process in workers]
            time.sleep(1)  # threads of stores that were closed end
            found = {pid: usage(pid) for pid in names}
            print(
                f"{steps[0]} steps by {transport}:", *(f"{names[p]} {tuple(u)}" for p, u in found.items()), sep="\n  "
            )
            return found

        early, late = run(seconds / 3), run(seconds * 2 / 3)
        for process in workers:
            assert ends(process) == 0
        assert ends(host) == 0
    grown = [
        f"{name}: from {early[pid]} to {late[pid]}"
        for pid, name in names.items()
        if late[pid].mebibytes > early[pid].mebibytes + GROWTH or late[pid][1:] > early[pid][1:]
    ]
    left = shared() - before
    return grown + [f"left in /dev/shm: {left}"] * bool(left)


def work() -> None:
    """Be a worker: each line says for how long."""
    import numpy as np

    import mxcore as mx

    def begin(**compression: str) -> Any:
        store = mx.kv.create("dist_sync")
        if compression:
            store.set_gradient_compression(compression)
        store.init(keys, values)
        store.init("rows", mx.nd.zeros((100, 4)).tostype("row_sparse"))
        store.init("time is over", mx.nd.zeros(1))
        return store

    keys = [f"w{i}" for i in range(20)]
    values = [mx.nd.ones((50 * (i + 1), 20)) for i in range(20)]
    outs = [value.copy() for value in values]
    ids = mx.nd.array([3, 50])
    rows = mx.nd.sparse.row_sparse_array((np.ones((2, 4), "f"), [3, 50]), shape=(100, 4))
    stores = [begin(), begin(type="fp16")]
    over, fetched = mx.nd.zeros(1), mx.nd.sparse.zeros("row_sparse", (100, 4))
    for line in sys.stdin:
        end = time.monotonic() + float(line)
        steps = 0
        over[:] = 0
        while not over.asscalar():  # all workers stop at the same step
            for store in stores:
                store.pushpull(keys, values, out=outs)
            stores[0].push("rows", rows)  # which the other one, that compresses, does not take
            stores[0].row_sparse_pull("rows", out=fetched, row_ids=ids)
            stores[0].pushpull("time is over", mx.nd.full(1, time.monotonic() > end), out=over)
            steps += 1
            if steps % STORES == 1:  # in the time that warms up as well, however slow the machine is
                stores[0].barrier()
                short = begin()
                short.pushpull(keys, values, out=outs)
                short.close()
        assert outs[0].asnumpy().tolist() == (values[0] * 2).asnumpy().tolist()
        say(steps)


def main() -> None:
    parser = argparse.ArgumentParser(description="See whether a job of two workers grows.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work()
    found = [line for transport in ("auto", "tcp") for line in soak(options.seconds / 2, transport)]
    sys.exit("\n".join(["what has grown:", *found]) if found else 0)


if __name__ == "__main__":
    main()
