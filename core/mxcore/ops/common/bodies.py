"""What bodies of operators share: precision, silence, formulas."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...fusion import Expr, print_with
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


def is_half(t: Any) -> bool:
    """Whether a dtype is of half precision: float16 or bfloat16, in which sums stop at 2048 or at 256."""
    return bool(t.itemsize == 2 and t.kind in "fV")


def wide(a: Any) -> Any:
    """Half precision, bfloat16 too, as float32: sums are kept in it, and only there BLAS is fast."""
    return a.astype(np.float32) if is_half(a.dtype) else a


def sum_dtype(data: Any) -> Any:
    """The dtype to add up in: float32 for half precision, else the function's own choice."""
    return np.float32 if is_half(data.dtype) else None


def sum_over(data: Any, axes: Any) -> Any:
    """The sum over axes, in the data's dtype; half precision is added up in float32."""
    return data.sum(axes, dtype=sum_dtype(data)).astype(data.dtype, copy=False)
