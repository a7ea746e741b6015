"""Throwaway plugins for the tests of the microkernel."""

import os
import subprocess
import sys
import textwrap
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

        module.__dict__[hook] = hookimpl(
            types.FunctionType((lambda: fn()).__code__, globals(), hook, None, (types.CellType(fn),))
        )
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


class Site:
    """A folder with installed plugins, and Python run beside it."""

    def __init__(self, folder):
        self.folder = folder

    def add(self, name, code, dist=None, entries=None):
        """Install module `name`, by default as the plugin `name` of the distribution `name`."""
        dist = dist or name
        (self.folder / f"{name}.py").write_text(textwrap.dedent(code))
        info = self.folder / f"{dist}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_bytes((entries or f"[mxcore]\n{name} = {name}\n").encode("latin-1"))

    def __call__(self, code, *options, **env):
        path = os.pathsep.join(filter(None, (str(self.folder), os.environ.get("PYTHONPATH"))))
        env = {**os.environ, "PYTHONPATH": path, **env}
        return subprocess.run(
            [sys.executable, *options, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            env=env,
            timeout=300,
        )


@pytest.fixture
def folder(tmp_path):
    """An empty :class:`Site`."""
    return Site(tmp_path)
