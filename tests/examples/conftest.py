"""How tests run the scripts of ``examples/``."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def example(tmp_path):
    """Run an example in a fresh process, warnings being errors, and return what it printed.

    It is called as ``example("mlp_module", "--epochs", 2)``. The process works in `tmp_path`, so that files with
    relative names end up there.
    """

    def run(name, *args):
        command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
        if done.returncode:
            pytest.fail(
                f"{name} {' '.join(map(str, args))}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}",
                pytrace=False,
            )
        return done.stdout

    return run
