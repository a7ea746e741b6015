"""The device whose queues run as late as their waits allow, for the tests of this folder."""
import types

import pytest

import mxcore as mx
from mxcore._core.manager import manager
from mxcore.plugin import hookimpl

from .late import Late


@pytest.fixture(scope="session")
def registered():
    """The plugin, while the session lasts."""
    plugin = types.ModuleType("late_device")
    plugin.API_VERSION = 1

    @hookimpl
    def mxcore_devices():
        return [Late()]

    plugin.mxcore_devices = mxcore_devices
    manager.load()
    manager.register(plugin, "late_device")
    yield
    manager.unregister("late_device")


@pytest.fixture
def late(registered):
    """The contexts of both indices; index 0 is the active one."""
    contexts = mx.Context("late", 0), mx.Context("late", 1)
    contexts[0].device.activate(0)
    return contexts
