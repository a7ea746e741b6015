"""Numba: whether it will work, and its import."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import re
import sys
import types

import numpy as np

from mxcore.plugin import Uncollected, Uninterrupted, let_through

from . import locks

__all__ = ["available", "compiles", "numba", "reason"]


@functools.cache
def compiles() -> bool:
    """Whether Numba will work, as far as can be told without its import, which takes longer than mxcore's."""
    if importlib.util.find_spec("numba") is None or os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return False
    try:
        needs = importlib.metadata.requires("numba") or []
    except importlib.metadata.PackageNotFoundError:
        return True
    # It refuses a newer NumPy.
    below = next((m for m in (re.match(r"numpy\b.*?<\s*(\d+)\.(\d+)", r) for r in needs) if m), None)
    return below is None or tuple(map(int, np.__version__.split(".")[:2])) < (int(below[1]), int(below[2]))


_reason: str | None = None
_PACKAGES = ("numba", "llvmlite")


@functools.cache
@locks.once
def _load() -> types.ModuleType | None:
    """Import and configure Numba once; on failure remember why."""
    global _reason
    before = {*sys.modules}
    try:
        # Ctrl-C in its midst would leave half of it, and a finalizer that computes would find half of it.
        with Uninterrupted(), Uncollected():
            import numba
    except Exception as e:  # Numba raises more than ImportError, e.g. for a NumPy it does not know
        # Half of it would be found by who imports it next, such as for want of memory that is there by then.
        for name in {*sys.modules} - before:
            if name.partition(".")[0] in _PACKAGES:
                sys.modules.pop(name, None)
        let_through(e)
        _reason = f"numba cannot be imported: {type(e).__name__}: {e}"
        return None
    if numba.config.DISABLE_JIT:
        _reason = "NUMBA_DISABLE_JIT is set"
        return None
    if not any(name.startswith("NUMBA_THREADING_LAYER") for name in os.environ):
        numba.config.THREADING_LAYER_PRIORITY = ["omp", "tbb", "workqueue"]
    module: types.ModuleType = numba
    return module


def available() -> bool:
    """Tell whether kernels can be compiled; :func:`reason` says why not."""
    return _load() is not None


def reason() -> str | None:
    """Return why kernels cannot be compiled, or None where they can."""
    _load()
    return _reason


def numba() -> types.ModuleType:
    """Return the configured Numba module.

    Raises
    ------
    ImportError
        Where Numba is missing or disabled, with the remembered reason.
    """
    module = _load()
    if module is None:
        raise ImportError(_reason)
    return module
