"""The type stubs are what the declarations give."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_stubs_are_fresh():
    done = subprocess.run([sys.executable, "tools/make_stubs.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"run tools/make_stubs.py; stale: {done.stdout}{done.stderr}"
