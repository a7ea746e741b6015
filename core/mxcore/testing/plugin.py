"""What mxcore adds to pytest: the options of the conformance kit, and ``--benchmark``.

pytest finds this module by its entry point wherever mxcore is installed, so it imports nothing of mxcore, and takes no
name from anybody: an option becomes known only in runs that give it (on the command line or in ``addopts``), or ask for
help, and only if neither another plugin nor a ``conftest.py`` has it. ``-p mxcore.testing.plugin`` loads it where entry
points are switched off.
"""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from .options import OPTIONS, add_options, given

__all__ = ["OPTIONS", "add_options", "given"]

#: The arguments of a run, those of the environment included, without those of the folder's own settings.
TOLD = pytest.StashKey[list[str]]()


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: Any, parser: Any, args: list[str]) -> Any:
    """Make the options known that this run gives and nobody has: by now all others have declared theirs."""
    early_config.stash[TOLD] = args[len(early_config.getini("addopts")) :]
    result = yield
    helping = early_config.known_args_namespace.help
    wanted = [n for n in OPTIONS if helping or any(a.partition("=")[0] == n for a in args)]
    add_options(parser, [n for n in wanted if _free(parser, early_config, n)])
    return result


def _free(parser: Any, config: Any, name: str) -> bool:
    text = name if "action" in OPTIONS[name] else f"{name}=*"
    try:
        return text in parser.parse_known_and_unknown_args([text], namespace=copy.copy(config.option))[1]
    except pytest.UsageError:  # another's, which refuses the value
        return False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    """Without ``--benchmark``, skip benchmarks: what asks for a fixture of `measure` that nobody else has."""
    if item.path.parent.name != "benchmarks" or not isinstance(item, pytest.Function):
        return
    if {"compare", "row"} & {*item.fixturenames} - {*item._fixtureinfo.name2fixturedefs}:
        pytest.skip("a benchmark: pytest --benchmark runs it")


def pytest_configure(config: Any) -> None:
    """With ``--benchmark``, let benchmarks take the place of the tests."""
    option = config.option
    if not given(config, "--benchmark"):
        if given(config, "--quick"):
            raise pytest.UsageError("--quick belongs to --benchmark: pytest --benchmark --quick")
        return
    if not config.pluginmanager.hasplugin("benchmark"):
        raise pytest.UsageError(
            "--benchmark needs pytest-benchmark, and not `-p no:benchmark`: pip install pytest-benchmark"
        )
    if getattr(option, "numprocesses", None):
        raise pytest.UsageError("--benchmark measures in one process; leave `-n` out")
    if config.args_source is not config.ArgsSource.ARGS:
        own = config.rootpath / "benchmarks"
        config.args[:] = [str(own if any(own.glob("test_*.py")) else Path(__file__).with_name("benchmark.py"))]
    if not any(re.match("-[lqsvx]*m", str(a)) for a in config.stash.get(TOLD, config.invocation_params.args)):
        option.markexpr = "not slow" if given(config, "--quick") else ""  # the tests' default may leave slow ones out
    option.benchmark_quiet = True  # our table takes the place of pytest-benchmark's
    option.continue_on_collection_errors = True
    # Of what ended before it measured.
    config.addinivalue_line("filterwarnings", "ignore::pytest_benchmark.logger.PytestBenchmarkWarning")
    from . import measure

    # By its name it could not be loaded where a conftest.py has imported it.
    if not config.pluginmanager.is_registered(measure):
        config.pluginmanager.register(measure, measure.__name__)
