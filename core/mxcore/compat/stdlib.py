"""Small replacements for what the standard library lost: as much of it as scripts use, in today's terms."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import shutil
import sys
import sysconfig
import types
from collections.abc import Callable
from typing import Any

from .argspec import ArgSpec, getargspec

__all__ = [
    "MODULES",
    "ArgSpec",
    "LooseVersion",
    "StrictVersion",
    "copy_tree",
    "getargspec",
    "load_source",
    "mkpath",
    "strtobool",
]


@functools.total_ordering
class LooseVersion:
    """A version such as ``1.5.1.post0`` that compares part by part; words sort before numbers."""

    def __init__(self, vstring: str = "") -> None:
        self.vstring = vstring
        parts = re.findall(r"\d+|[a-z]+|[^\da-z.]+", vstring)
        self.version = [int(p) if p.isdigit() else p for p in parts]

    def _key(self, version: Any) -> list[tuple[bool, Any]]:
        other = version if isinstance(version, LooseVersion) else type(self)(version)
        return [(isinstance(p, int), p) for p in other.version]

    def __eq__(self, other: object) -> bool:
        return self._key(self) == self._key(other)

    def __lt__(self, other: object) -> bool:
        return self._key(self) < self._key(other)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.vstring

    def __repr__(self) -> str:
        return f"{type(self).__name__} ('{self}')"


class StrictVersion(LooseVersion):
    """A version of the form ``1.2[.3][a4|b4]``; releases sort after their alphas and betas."""

    def __init__(self, vstring: str = "0.0") -> None:
        match = re.fullmatch(r"(\d+)\.(\d+)(?:\.(\d+))?(?:([ab])(\d+))?", vstring)
        if match is None:
            raise ValueError(f"invalid version number '{vstring}'")
        major, minor, patch, stage, number = match.groups()
        self.vstring = vstring
        self.prerelease = (stage, int(number)) if stage else None
        self.version = [int(major), int(minor), int(patch or 0), *(self.prerelease or (1,))]


def strtobool(val: str) -> int:
    """1 for y, yes, t, true, on, 1; 0 for n, no, f, false, off, 0; anything else raises ValueError."""
    text = val.lower()
    if text in ("y", "yes", "t", "true", "on", "1"):
        return 1
    if text in ("n", "no", "f", "false", "off", "0"):
        return 0
    raise ValueError(f"invalid truth value {text!r}")


def mkpath(name: str, mode: int = 0o777, verbose: int = 1, dry_run: int = 0) -> list[str]:
    """Make a folder and those above it; returns the folders made."""
    made: list[str] = []
    path = os.path.abspath(name)
    while not os.path.isdir(path):
        made.insert(0, path)
        path = os.path.dirname(path)
    if not dry_run:
        os.makedirs(name, mode, exist_ok=True)
    return made


def copy_tree(src: str, dst: str, *args: Any, **kwargs: Any) -> list[str]:
    """Copy a folder into another, which may exist; returns the files written. Options are not looked at."""
    shutil.copytree(src, dst, dirs_exist_ok=True)
    inside = [os.path.relpath(os.path.join(d, f), src) for d, _, files in os.walk(src) for f in files]
    return [os.path.join(dst, f) for f in inside]


def load_source(name: str, pathname: str, file: Any = None) -> types.ModuleType:
    """Run a source file as the module `name`, which stays in `sys.modules`."""
    spec = importlib.util.spec_from_file_location(name, pathname)
    if spec is None or spec.loader is None:
        raise ImportError(f"load_source: {pathname!r} is not a Python source file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: The modules, and what makes the names that each holds.
MODULES: dict[str, Callable[[], dict[str, Any]]] = {
    "distutils": lambda: {"__version__": ".".join(map(str, sys.version_info[:3]))},
    "distutils.version": lambda: {"LooseVersion": LooseVersion, "StrictVersion": StrictVersion},
    "distutils.util": lambda: {"strtobool": strtobool, "get_platform": sysconfig.get_platform},
    "distutils.dir_util": lambda: {"copy_tree": copy_tree, "mkpath": mkpath, "remove_tree": shutil.rmtree},
    "distutils.spawn": lambda: {"find_executable": shutil.which},
    "distutils.sysconfig": lambda: {
        "get_python_lib": lambda *a, **k: sysconfig.get_path("purelib"),
        "get_python_inc": lambda *a, **k: sysconfig.get_path("include"),
        "get_config_var": sysconfig.get_config_var,
        "get_config_vars": sysconfig.get_config_vars,
    },
    "imp": lambda: {"load_source": load_source, "reload": importlib.reload, "new_module": types.ModuleType},
    "pipes": lambda: {"quote": importlib.import_module("shlex").quote},
    "xml.etree.cElementTree": lambda: {
        n: getattr(importlib.import_module("xml.etree.ElementTree"), n)
        for n in importlib.import_module("xml.etree.ElementTree").__all__
    },
}
