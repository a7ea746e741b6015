"""The contract of fusion between the executor, which finds chains, and devices, which compile them: expressions,
chains, printing.
"""

from __future__ import annotations

from .chain import Fused, layout
from .expr import FUNCTIONS, Expr, Tree
from .printing import print_with

__all__ = ["Expr", "FUNCTIONS", "Fused", "Tree", "layout", "print_with"]
