"""The library's own tests on emulated GPUs, by `library.py`: a part, ``--whole`` all; with ``--share`` a third."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mxcore_cuda.emulation import compiler

from .library import LIST, REAL_LIST, exceptions

TESTS = Path(__file__).resolve().parents[1]
#: What is run always, and what takes longer.
PART = ["monitor", "executor", "kvstore", "ndarray", "symbol", "optimizer", "ops", "rnn", "test_utils"]
REST = "contrib gluon initializer io image metric module profiler visualization".split()
#: Folders that take many minutes -> so many processes do a part of their files each.
PROCESSES = {"ops": 4}


def jobs(folders):
    """(folder, part) of each process."""
    return [(folder, part) for folder in folders for part in range(PROCESSES.get(folder, 1))]


def pytest_generate_tests(metafunc):
    if "part" in metafunc.fixturenames:
        whole = metafunc.config.getoption("--whole", default=False)
        metafunc.parametrize("folder, part", jobs(PART + (REST if whole else [])))


@pytest.mark.slow
@pytest.mark.skipif(compiler.available() is None, reason="emulated kernels need g++, which is not there")
def test_the_librarys_tests_pass_on_a_gpu(folder, part, request):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.cuda.library", "-p", "no:cacheprovider"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    if (share := request.config.getoption("--share")) is not None:
        command += ["--share", share]
    files = sorted(str(f.relative_to(TESTS.parent)) for f in (TESTS / folder).rglob("test_*.py"))
    done = subprocess.run(
        [*command, *files[part :: PROCESSES.get(folder, 1)]],
        cwd=TESTS.parent, env=env, capture_output=True, text=True, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert re.search(r"\d+ passed", done.stdout)


@pytest.mark.parametrize("file", [LIST, REAL_LIST], ids=lambda file: file.name)
def test_exceptions_have_reasons_and_are_of_tests_that_there_are(file):
    found = [*exceptions(file)]
    assert len({test for test, _ in found}) == len(found)
    for test, reason in found:
        assert reason, test
        file, name = re.fullmatch(r"([\w/]+\.py)::(\w+|\*)(?:\[.*\])?", test).groups()
        defined = r"\w+" if name == "*" else name
        assert re.search(rf"^\s*def {defined}\(", (TESTS / file).read_text(encoding="utf-8"), re.M), test
