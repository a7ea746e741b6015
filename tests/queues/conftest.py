"""The device whose queues run as late as their waits allow, for the tests of this folder."""

import pytest

import mxcore as mx
from mxcore._core.manager import manager

from . import late as late_plugin


@pytest.fixture(scope="session")
def registered():
    """The plugin, while the session lasts."""
    manager.load()
    manager.register(late_plugin, "late_device")
    yield
    manager.unregister("late_device")


@pytest.fixture
def late(registered):
    """The contexts of both indices; index 0 is the active one."""
    contexts = mx.Context("late", 0), mx.Context("late", 1)
    contexts[0].device.activate(0)
    return contexts
