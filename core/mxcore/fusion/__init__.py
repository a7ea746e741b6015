"""The contract of fusion: the executor finds chains, devices compile them. Expressions, chains, printing."""

from __future__ import annotations

from .chain import Fused, layout
from .expr import FUNCTIONS, Expr, Tree
from .printing import print_with

__all__ = ["Expr", "FUNCTIONS", "Fused", "Tree", "layout", "print_with"]
