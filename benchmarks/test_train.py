"""``mxcore train`` as it stands: from cold, with everything compiled anew, and a second time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

#: First and second run: seconds at most.
LIMITS = {"cold": 60, "warm": 25}
ACCURACY, MEMORY = 97, 700


def train(folder, ctx):
    """Run the command on a context; returns seconds, test accuracy in % and the largest resident memory in MB."""
    env = os.environ | {name: str(folder / "cache") for name in ("XDG_CACHE_HOME", "MXCORE_CACHE_DIR", "MPLCONFIGDIR")}
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "mxcore", "train", "--ctx", str(ctx), "--output", str(folder / "out")],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, text
    accuracy = float(re.search(r"test accuracy ([\d.]+) %", text)[1])
    return time.perf_counter() - start, accuracy, usage.ru_maxrss / 1e3


def test_train(row, ctx, tmp_path):
    for name, limit in LIMITS.items():
        seconds, accuracy, memory = train(tmp_path, ctx)
        row(
            f"mxcore train, {name}",
            seconds=seconds,
            value=f"{accuracy:.2f} %, {memory:.0f} MB",
            wanted=f"{limit} s, {ACCURACY} %, {MEMORY} MB",
            met=seconds <= limit and accuracy >= ACCURACY and memory <= MEMORY,
        )
        assert accuracy > 50
