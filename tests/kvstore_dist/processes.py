"""Jobs of real processes: servers in one of their own or in the test's, workers that run a program of this folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TOKEN = "a token of tests"


def spawn(program: str, *args: str, within: Sequence[str] = (), **environment: Any) -> subprocess.Popen[str]:
    """Start a program of this folder, by a command such as ``ip netns exec`` if one is given."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MXCORE_KV", "RANK", "WORLD_SIZE"))}
    paths = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])  # the same sources as the test's
    env |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
    env |= {k: str(v) for k, v in environment.items()}
    command = [*within, sys.executable, str(HERE / program), *args]
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def worker(
    addresses: Sequence[Any], rank: int, workers: int, program: str, *args: str, **more: Any
) -> subprocess.Popen[str]:
    """Start a worker of a job."""
    place = {"RANK": rank, "WORLD_SIZE": workers, "MXCORE_KV_SERVERS": json.dumps(addresses), "MXCORE_KV_TOKEN": TOKEN}
    return spawn(program, *args, **{"MXCORE_KV_DEADLINE": 30, **place, **more})


@contextmanager
def reaped() -> Iterator[list[subprocess.Popen[str]]]:
    """A list of processes, none of which lives on."""
    made: list[subprocess.Popen[str]] = []
    try:
        yield made
    finally:
        for process in made:
            process.kill()
            process.communicate()


def said(process: subprocess.Popen[str]) -> Any:
    """Wait for the next line of a process, which is JSON."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"process {process.pid} has ended: {process.wait()}"
    return json.loads(line)


def tell(process: subprocess.Popen[str], what: str) -> None:
    """Send a process a line."""
    assert process.stdin is not None
    process.stdin.write(what + "\n")
    process.stdin.flush()


def ends(process: subprocess.Popen[str], seconds: float = 60) -> int:
    """Wait for the end of a process; its exit status."""
    process.communicate(timeout=seconds)
    return process.returncode


def say(what: Any) -> None:
    """In a process: send the test a line."""
    print(json.dumps(what), flush=True)


def wait_until(what: Any, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)
