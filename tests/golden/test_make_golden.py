"""What makes the golden files: processes that may end, and the command around them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: A program with jobs of every fate. It is a process of its own since forks and the threads of the other tests do not
#: mix.
JOBS = """
import json, os, signal, sys, time
from apart import apart

def work(what):
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "exit":
        os._exit(3)
    if what == "hang":
        time.sleep(60)
    return what

print(json.dumps(apart(work, [(w,) for w in sys.argv[1:]], limit=2)))
"""


def run_apart(*jobs):
    """What comes of jobs."""
    done = subprocess.run(
        [sys.executable, "-c", JOBS, *jobs],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    return json.loads(done.stdout)


def test_jobs_run_apart_from_one_another():
    assert run_apart() == []
    assert run_apart("a", "b") == ["a", "b"]
    assert run_apart("a", "kill", "exit", "b") == ["a", "the process ends with SIGKILL", "the process ends early", "b"]


def test_a_job_has_a_time_limit():
    assert run_apart("hang") == ["the process does not end within 2 seconds"]


def command(*args):
    """Run the tool without an interpreter of MXNet's."""
    env = {k: v for k, v in os.environ.items() if k != "MXCORE_ORACLE_PYTHON"}
    done = subprocess.run(
        [sys.executable, "tools/make_golden.py", *args], cwd=ROOT, env=env, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_the_command():
    assert command("--check") == (0, "")
    code, text = command("--families", "pooling")
    assert code == 2 and "which Python has MXNet 1.9.1? Name it with --oracle or MXCORE_ORACLE_PYTHON" in text
    code, text = command("--families", "poolings")
    assert code == 2 and "no family of operators is named 'poolings'; families: " in text
    code, text = command("--families", "pooling", "--oracle", "/no/such/python")
    assert code == 2 and "cannot run /no/such/python" in text
