"""Fixtures of tests that start processes."""

import sys
import tempfile

import pytest

from .running import MXCORE, SOON, Running


@pytest.fixture
def start(tmp_path):
    """Start a command; whatever happens, it has ended afterwards, and left nothing."""
    started = []
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="k") as temporary:

        def run(*command: str, **env: str) -> Running:
            started.append(Running(tmp_path, temporary, [*command], env))
            return started[-1]

        yield run
        for each in started:
            each.process.kill()
            each.process.wait()
            each.is_gone(SOON)


@pytest.fixture
def launch(start, tmp_path):
    """Running a program, given as text."""

    def run(program: str, *args: str, options: str = "-n 2", **env: str) -> Running:
        (tmp_path / "program.py").write_text(program)
        return start(*MXCORE, "launch", *options.split(), sys.executable, "program.py", *args, **env)

    return run
