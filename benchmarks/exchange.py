"""Workers that push and pull in turns, in mxcore and in MXNet: standing jobs, which are told how much.

As a script it is a process of a job: ``exchange.py worker TYPE KIND``, by either interpreter, or
``exchange.py server``.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]


def work(mx, type):
    """Answer ``[keys, size, rounds, optimizer]``, a line each, with the seconds of each round of this worker."""
    fresh = {}
    for line in sys.stdin:
        keys, size, rounds, optimizer = json.loads(line)
        case = keys, size, optimizer
        if case not in fresh:
            fresh[case] = prepare(mx, type, *case)
        kv, step = fresh[case]
        times = []
        for _ in range(rounds):
            kv._barrier()
            start = time.perf_counter()
            step()
            mx.nd.waitall()
            times.append(time.perf_counter() - start)
        print(json.dumps(times), flush=True)


_stores = []
#: Where the keys of a case begin.
_first = [0]


def prepare(mx, type, keys, size, optimizer):
    """A store with keys, and a function that pushes and pulls all of them once."""
    if not _stores:  # MXNet's process can make one
        _stores.append(mx.kv.create(type))
    kv = _stores[0]
    names = list(range(_first[0], _first[0] + keys))
    _first[0] += keys
    values = [mx.nd.ones(size) for _ in names]
    outs = [mx.nd.zeros(size) for _ in names]
    if type == "allreduce":
        return kv, lambda: kv.pushpull(names, values, out=outs)
    kv.init(names, values)
    if optimizer:
        kv.set_optimizer(mx.optimizer.create(optimizer, learning_rate=1e-3, momentum=0.9))

    def step():
        kv.push(names, values)
        kv.pull(names, out=outs)

    return kv, step


class Job:
    """A standing job: servers and workers as processes.

    Parameters
    ----------
    python : str
        The interpreter.
    mxnet : bool
        Whether it runs MXNet, with its own servers.
    workers, servers : int
    type : str
        Of the store.
    **environment
        Further variables.
    """

    def __init__(self, python, mxnet, workers, servers=1, type="dist_sync", **environment):
        self._ends = ExitStack()
        self._env = os.environ | {"PYTHONPATH": str(ROOT)} | environment
        self._command = [python, str(Path(__file__).resolve())]
        try:
            envs = self._mxnet(workers, servers) if mxnet else self._mxcore(workers, servers)
            kind = "mxnet" if mxnet else "mxcore"
            self._workers = [self._start(["worker", type, kind], env) for env in envs]
        except BaseException:
            self._ends.close()
            raise

    def _start(self, arguments, env):
        process = subprocess.Popen(
            [*self._command, *arguments], env=self._env | env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._ends.callback(self._end, process)
        return process

    @staticmethod
    def _end(process):
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def _mxcore(self, workers, servers):
        token = secrets.token_hex(16)
        made = [self._start(["server", str(i), str(servers), str(workers), token], {}) for i in range(servers)]
        addresses = [json.loads(process.stdout.readline()) for process in made]
        common = {"WORLD_SIZE": str(workers), "MXCORE_KV_SERVERS": json.dumps(addresses), "MXCORE_KV_TOKEN": token}
        return [{**common, "RANK": str(rank)} for rank in range(workers)]

    def _mxnet(self, workers, servers):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        common = {
            "DMLC_PS_ROOT_URI": "127.0.0.1",
            "DMLC_PS_ROOT_PORT": str(port),
            "DMLC_NUM_WORKER": str(workers),
            "DMLC_NUM_SERVER": str(servers),
            "DMLC_INTERFACE": "lo",
        }
        for role in ["scheduler"] + ["server"] * servers:
            self._start(["worker", "dist_sync", "mxnet"], {**common, "DMLC_ROLE": role})
        return [{**common, "DMLC_ROLE": "worker"}] * workers

    def run(self, keys, size, rounds, optimizer=None):
        """Seconds of each of some rounds, of the worker that takes longest."""
        for process in self._workers:
            process.stdin.write(json.dumps([keys, size, rounds, optimizer]) + "\n")
            process.stdin.flush()
        times = [json.loads(process.stdout.readline()) for process in self._workers]
        return [max(of_one) for of_one in zip(*times)]

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        for process in self._workers:
            with suppress(BrokenPipeError):
                process.stdin.close()
        self._ends.close()


def serve(number, servers, workers, token):
    """Be a server of mxcore until the standard input ends."""
    from mxcore_kv_dist.server import Server

    server = Server(int(number), int(servers), int(workers), token.encode())
    print(json.dumps(server.address), flush=True)
    sys.stdin.read()
    server.close()


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    if role == "server":
        serve(*arguments)
    else:
        type, kind = arguments
        if kind == "mxnet":
            import mxnet as library
        else:
            import mxcore as library
        work(library, type)
