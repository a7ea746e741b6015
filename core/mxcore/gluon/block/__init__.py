"""Blocks: the parts networks are made of."""

from __future__ import annotations

import importlib

from ...base import MXNetError
from ...ndarray import NDArray
from ..parameter import DeferredInitializationError, Parameter, ParameterDict
from ..utils import HookHandle, is_np_array
from .block import Block
from .hybrid_block import HybridBlock
from .symbol_block import SymbolBlock

__all__ = ["Block", "DeferredInitializationError", "HookHandle", "HybridBlock", "MXNetError", "NDArray",
           "Parameter", "ParameterDict", "SymbolBlock", "is_np_array"]  # fmt: skip

#: Names that MXNet's module shows too, and where they are.
_ELSEWHERE = {"Symbol": "symbol", "load_json": "symbol", "np_array": "util", "np_shape": "util"}


def __getattr__(name):
    if name in _ELSEWHERE:
        return getattr(importlib.import_module(f"...{_ELSEWHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
