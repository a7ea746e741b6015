"""Blocks: the parts networks are made of."""

from __future__ import annotations

from ..._reexports import reexports
from ...base import MXNetError
from ...ndarray import NDArray
from ..parameter import DeferredInitializationError, Parameter, ParameterDict
from ..utils import HookHandle, is_np_array
from .block import Block
from .hybrid_block import HybridBlock
from .symbol_block import SymbolBlock

__all__ = [
    "Block",
    "DeferredInitializationError",
    "HookHandle",
    "HybridBlock",
    "MXNetError",
    "NDArray",
    "Parameter",
    "ParameterDict",
    "SymbolBlock",
    "is_np_array",
]

__getattr__ = reexports(__name__)
