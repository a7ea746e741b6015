"""Fresh names for every test, and graph passes that go away again."""
import types

import pytest

import mxcore as mx
from mxcore._core.manager import manager
from mxcore.plugin import API_VERSION, hookimpl


@pytest.fixture(autouse=True)
def fresh_names():
    with mx.name.NameManager():
        yield


@pytest.fixture
def a():
    return mx.sym.Variable("a")


@pytest.fixture
def b():
    return mx.sym.Variable("b")


@pytest.fixture
def fc():
    return mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")


@pytest.fixture
def passes():
    """Register graph passes of a plugin named 'passing'."""
    def register(*found):
        plugin = types.ModuleType("passing")
        plugin.API_VERSION = API_VERSION

        def mxcore_graph_passes():
            return found

        plugin.mxcore_graph_passes = hookimpl(mxcore_graph_passes)
        manager.load()
        manager.register(plugin, "passing")

    yield register
    if "passing" in manager.origin:
        manager.unregister("passing")
