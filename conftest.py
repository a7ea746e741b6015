"""Benchmarks apart from tests, and the options of `mxcore.testing.plugin` also where the installed entry points are older than this tree."""

from pathlib import Path

from mxcore.testing.plugin import add_options, given

BENCHMARKS = Path(__file__).parent / "benchmarks"


def pytest_addoption(parser, pluginmanager):
    if not pluginmanager.hasplugin("mxcore.testing.plugin"):
        pluginmanager.import_plugin("mxcore.testing.plugin")
        add_options(parser)


def pytest_ignore_collect(collection_path, config):
    inside = BENCHMARKS in (collection_path, *collection_path.parents)
    around = collection_path in BENCHMARKS.parents
    return None if around or inside == bool(given(config, "--benchmark")) else True
