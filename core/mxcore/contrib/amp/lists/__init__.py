"""Which operators compute in what: the lists of float16 and of bfloat16."""

from __future__ import annotations

from . import symbol_bf16, symbol_fp16

__all__ = ["symbol_bf16", "symbol_fp16"]
