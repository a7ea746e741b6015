"""Throwaway plugins for the tests of the microkernel."""
import types

import pytest

from mxcore._core.manager import manager
from mxcore.plugin import hookimpl


def make_plugin(name="throwaway", api=1, **hooks):
    """A plugin module with the given hooks, each a value to return or a function."""
    module = types.ModuleType(name)
    if api is not None:
        module.API_VERSION = api
    for hook, value in hooks.items():
        fn = value if callable(value) else (lambda value=value: value)

        def impl(fn=fn):
            return fn()

        module.__dict__[hook] = hookimpl(types.FunctionType((lambda: fn()).__code__, globals(), hook, None,
                                                            (types.CellType(fn),)))
    return module


@pytest.fixture
def plug():
    """Register throwaway plugins; they are gone after the test."""
    manager.load()
    names = []

    def register(name="throwaway", api=1, **hooks):
        manager.register(make_plugin(name, api, **hooks), name, f"dist-{name}", "1.0")
        names.append(name)

    yield register
    for name in names:
        if name in manager.origin:
            manager.unregister(name)
