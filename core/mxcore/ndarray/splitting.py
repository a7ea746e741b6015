"""`split_v2`, which checks more than its operator does."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from .._core import tables
from .._core.errors import error
from .._core.params import Parser
from ..parameters import Shape
from . import checks

if TYPE_CHECKING:
    from .ndarray import NDArray

__all__ = ["split_v2"]

_SPLIT = Parser("split_v2", {"indices_or_sections": Shape()})


def split_v2(ary: NDArray, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Any:
    """Split at indices (a tuple) or into equal sections (an int)."""
    checks.arrays("split_v2", ary=ary)
    given: Any = _SPLIT({"indices_or_sections": indices_or_sections})
    n, where = 0, (0, *given.indices_or_sections)
    if isinstance(indices_or_sections, numbers.Integral):
        (n,), where = given.indices_or_sections, ()
        if n < 1:
            raise error(
                ValueError, f"operator split_v2: parameter 'indices_or_sections' must be int >= 1 or indices, got {n}"
            )
        # The operator itself makes unequal sections, and says what is wrong with an axis.
        if isinstance(axis, numbers.Integral) and -ary.ndim <= axis < ary.ndim and ary.shape[int(axis)] % n:
            raise error(
                ValueError, f"operator split_v2: axis {axis} has length {ary.shape[int(axis)]}, not a multiple of {n}"
            )
    return tables.ops.get("_split_v2")(ary, indices=where, axis=axis, squeeze_axis=squeeze_axis, sections=n)
