"""What tests of several parts use."""
import types

import pytest

from mxcore._core.manager import manager
from mxcore.plugin import API_VERSION, hookimpl


@pytest.fixture
def passes():
    """Register graph passes of a plugin named 'passing'."""
    def register(*found):
        plugin = types.SimpleNamespace(
            API_VERSION=API_VERSION, mxcore_graph_passes=hookimpl(lambda: found, specname="mxcore_graph_passes"))
        manager.load()
        manager.register(plugin, "passing")

    yield register
    if "passing" in manager.origin:
        manager.unregister("passing")
