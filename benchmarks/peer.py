"""The real MXNet as a peer: a child process that measures the same workload in turns with ours.

A module of workloads (`training`, `recurrent`, `pictures`, `figures`) holds functions of ``mx`` and a case; run as a
script by an interpreter that has MXNet, it calls `serve`, and is MXNet's side of the comparison. Nothing here imports
mxcore.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

#: Names an interpreter that has MXNet 1.9.1.
VARIABLE = "MXCORE_ORACLE_PYTHON"


def fastest(run, number):
    """Seconds of the fastest of some calls."""
    times = []
    for _ in range(number):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def serve(prepare):
    """Answer ``[case, number]``, a line of the standard input each, with the seconds of a call.

    It is the fastest of so many calls of ``prepare(*case)``.

    ``null`` ends it: what workers of the other side hold open of the pipe, which they inherit, would keep it waiting
    for an end.
    """
    last = run = None
    for line in iter(sys.stdin.readline, "null\n"):
        if not line:
            break
        case, number = json.loads(line)
        if case != last:
            last, run = case, None  # before the next one is made, for its memory
            run = prepare(*case)
            run()
        print(fastest(run, number), flush=True)


@contextmanager
def peer(workloads):
    """A function ``ask(case, number)`` that measures a case of a module of workloads in MXNet.

    It is None if `VARIABLE` names no interpreter.
    """
    python = os.environ.get(VARIABLE)
    if not python:
        yield None
        return
    command, root = [python, "-m", workloads.__name__], Path(__file__).parents[1]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def ask(case, number):
            process.stdin.write(json.dumps([case, number]) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            if not answer:
                raise RuntimeError(
                    f"{python} -m {workloads.__name__} ended without an answer to {case}; "
                    f"{VARIABLE} has to name an interpreter with MXNet"
                )
            return float(answer)

        try:
            yield ask
        finally:
            with suppress(BrokenPipeError):
                process.stdin.write("null\n")
                process.stdin.close()
