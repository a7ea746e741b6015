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


class Child:
    """A process that answers what `serve` is asked, and does nothing else.

    Parameters
    ----------
    command : list of str
        What starts it, in the folder above this one.
    hint : str
        What to look at if it ends without an answer.
    options
        Of `subprocess.Popen`.
    """

    def __init__(self, command, hint, **options):
        self.command, self.hint = command, hint
        root = Path(__file__).parents[1]
        self.process = subprocess.Popen(
            command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
        )

    def ask(self, case, number):
        """Seconds of the fastest of so many calls of a case."""
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps([case, number]) + "\n")
            self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{' '.join(self.command)} ended without an answer to {case}; {self.hint}")
        return float(answer)

    def peak(self):
        """Bytes of resident memory that it has had at most; None where the system does not tell."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return None
        return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), None)

    def close(self):
        """Let it end, and wait."""
        with suppress(BrokenPipeError):
            self.process.stdin.write("null\n")
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def kill(self):
        """End it whatever it does."""
        self.process.kill()
        self.close()


@contextmanager
def peer(workloads):
    """A function ``ask(case, number)`` that measures a case of a module of workloads in MXNet.

    It is None if `VARIABLE` names no interpreter.
    """
    python = os.environ.get(VARIABLE)
    if not python:
        yield None
        return
    child = Child([python, "-m", workloads.__name__], f"{VARIABLE} has to name an interpreter with MXNet")
    try:
        yield child.ask
    finally:
        child.close()
