"""Expressions as functions over an array namespace: bodies of operators whose formula stands once, in their facet
`expr`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..fusion import Expr, print_with
from . import special

__all__ = ["formula"]


class _Functions:
    """The functions of expressions: the array namespace's own, but for those it lacks."""

    erf = staticmethod(special.erf)

    def __getattr__(self, name: str) -> Any:
        return lambda xp, *values: getattr(xp, name)(*values)


@lru_cache(256)
def formula(text: str) -> Callable[..., Any]:
    """An expression as a function of the array namespace and, by name, of what stands in it.

    Examples
    --------
    >>> import numpy as np
    >>> formula("exp(x) if x > 0 else 1 + x / s")(np, x=np.array([0.0, -2.0]), s=4).tolist()
    [1.0, 0.5]
    """
    expr = Expr(text)
    source = print_with(
        expr.tree,
        str,
        lambda fn, values: f"_functions.{fn}(xp, {', '.join(values)})",
        words={"and": "&", "or": "|", "not": "~"},
    )
    found: Callable[..., Any] = eval(
        f"lambda xp, {', '.join(sorted(expr.names))}: {source}", {"_functions": _Functions(), "__name__": __name__}
    )  # for filters of warnings
    return found
