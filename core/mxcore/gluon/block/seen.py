"""The modules that ``hybrid_forward`` gets as F: under ``import mxnet`` those of that name."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


def as_seen_by(user: Any, module: ModuleType) -> ModuleType:
    """A class's or function's module as its program knows it: where it says ``mxnet``, ``F is mx.nd`` must hold."""
    answered = type(sys.modules.get("mxnet")).__module__ == "mxcore.compat.alias"  # not by an installed MXNet
    if not answered or (getattr(user, "__module__", None) or "").startswith("mxcore"):
        return module
    name = "mxnet." + module.__name__.partition(".")[2]
    return sys.modules.get(name) or importlib.import_module(name)
