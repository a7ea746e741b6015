"""The options ``pytest --benchmark`` and ``--quick``: run the benchmarks instead of the tests, and print one table."""

import functools
import os
import re
import shlex
import signal
import threading
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent / "benchmarks"


def pytest_addoption(parser):
    parser.addoption(
        "--benchmark",
        action="store_true",
        help="run benchmarks/ on every device that is present, and print one table; `-m 'not slow'` leaves the long ones out",
    )
    parser.addoption(
        "--quick",
        action="store_true",
        help="with --benchmark: fewer rounds of each and none of the long ones, two minutes at most on two cores",
    )


def pytest_configure(config):
    option = config.option
    if not option.benchmark:
        if option.quick:
            raise pytest.UsageError("--quick belongs to --benchmark: pytest --benchmark --quick")
        return
    if not config.pluginmanager.hasplugin("benchmark"):
        raise pytest.UsageError("--benchmark needs pytest-benchmark, and not `-p no:benchmark`: pip install -e '.[test]'")
    if getattr(option, "numprocesses", None):
        raise pytest.UsageError("--benchmark measures in one process; leave `-n` out")
    if config.args_source is not config.ArgsSource.ARGS:
        config.args[:] = [str(BENCHMARKS)]
    given = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *config.invocation_params.args]
    if not any(re.match("-[lqsvx]*m", str(a)) for a in given):
        option.markexpr = "not slow" if option.quick else ""  # the tests' default leaves slow ones out
    option.benchmark_quiet = True  # our table takes the place of pytest-benchmark's
    option.continue_on_collection_errors = True
    config.addinivalue_line("filterwarnings", "ignore::pytest_benchmark.logger.PytestBenchmarkWarning")  # of what ended before it measured


def pytest_sessionstart(session):
    if not session.config.option.benchmark or threading.current_thread() is not threading.main_thread():
        return

    def stop(number, frame):
        session.shouldstop = signal.Signals(number).name  # the exception is lost where it is raised in a `__del__`
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):  # a limit on the time ends it like Ctrl-C: with the table so far
        session.config.add_cleanup(functools.partial(signal.signal, number, signal.signal(number, stop)))


def pytest_ignore_collect(collection_path, config):
    inside = BENCHMARKS in (collection_path, *collection_path.parents)
    around = collection_path in BENCHMARKS.parents
    return None if around or inside == config.option.benchmark else True
