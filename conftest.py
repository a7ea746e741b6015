"""Benchmarks apart from tests, and the options of `mxcore.testing.plugin`.

They are there also where the installed entry points are older than this tree.
"""

from pathlib import Path

BENCHMARKS = Path(__file__).parent / "benchmarks"
PLUGIN = "mxcore.testing.plugin"


def pytest_addoption(parser, pluginmanager):
    if not pluginmanager.hasplugin(PLUGIN):
        pluginmanager.import_plugin(PLUGIN)
        pluginmanager.get_plugin(PLUGIN).add_options(parser)


def pytest_ignore_collect(collection_path, config):
    inside = BENCHMARKS in (collection_path, *collection_path.parents)
    around = collection_path in BENCHMARKS.parents
    plugin = config.pluginmanager.get_plugin(PLUGIN)
    return None if around or inside == bool(plugin.given(config, "--benchmark")) else True
