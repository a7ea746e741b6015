"""Namespaces and devices over the libraries that are there."""

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from mxcore._core.manager import manager
from mxcore.plugin import ArrayAPINamespace

TOYS = Path(__file__).resolve().parents[1] / "toy_plugins"
LIBRARIES = ("numpy", "array_api_strict", "torch")


@cache
def module(name):
    """The module of a toy plugin."""
    spec = importlib.util.spec_from_file_location(name, TOYS / name / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@cache
def namespace(library):
    """The namespace over a library; skips where it is not installed."""
    if library == "torch":
        return module("torch_device").namespace(pytest.importorskip("torch"), "cpu")
    return ArrayAPINamespace(pytest.importorskip(library))


def host(a):
    """The values of an array on the CPU."""
    return np.asarray(a.value)


def registered(name):
    """Register a toy plugin; a function that takes it out again."""
    manager.load()
    if name in manager.origin:
        return lambda: None
    manager.register(module(name), name)
    return lambda: manager.unregister(name)
