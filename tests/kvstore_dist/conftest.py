"""Fixtures of all tests here, and of those that start processes."""

import contextlib
import sys
import tempfile

import pytest

import mxcore as mx

from .running import MXCORE, SOON, Running


@pytest.fixture(autouse=True)
def nothing_pending():
    """What failed here is not raised in another test."""
    yield
    with contextlib.suppress(Exception):
        mx.nd.waitall()


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
