"""Blocks: the parts networks are made of."""
from __future__ import annotations

from ...base import MXNetError
from ..parameter import DeferredInitializationError, Parameter, ParameterDict
from ..utils import HookHandle, is_np_array
from .block import Block
from .hybrid_block import HybridBlock
from .symbol_block import SymbolBlock

__all__ = ["Block", "DeferredInitializationError", "HookHandle", "HybridBlock", "MXNetError", "Parameter",
           "ParameterDict", "SymbolBlock", "is_np_array"]  # fmt: skip
