"""What bodies of operators share: precision, silence, formulas."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...fusion import Expr, print_with
from ...halves import is_half, sum_dtype, sum_over, wide
from . import special_functions

__all__ = ["formula", "is_half", "silent", "sum_dtype", "sum_over", "wide"]


#: Decorates a body that sums, factorises or transforms: such calls warn in NumPy's own name, which the filter that
#: `mx.nd` sets for mxcore's modules does not reach. (Programs are silent as a whole.)
silent = np.errstate(all="ignore")


class _Functions:
    """The functions of expressions: the array namespace's own, but for those it lacks."""

    erf = staticmethod(special_functions.erf)

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
    # `__name__` is for filters of warnings.
    found: Callable[..., Any] = eval(
        f"lambda xp, {', '.join(sorted(expr.names))}: {source}", {"_functions": _Functions(), "__name__": __name__}
    )
    return found
