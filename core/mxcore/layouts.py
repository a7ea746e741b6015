"""For kernels of any device: what parameters say of axes, and shapes as loops want them."""

from __future__ import annotations

from collections.abc import Sequence

from ._core.kernels import Spec
from ._core.params import Params

__all__ = ["axes", "channels_first", "spread"]


def axes(value: tuple[int, ...] | None, n: int, fill: int) -> tuple[int, ...]:
    """A parameter with a number for each of `n` axes, where it is left out the same for all.

    Examples
    --------
    >>> axes(None, 2, 1), axes((2, 3), 2, 1)
    ((1, 1), (2, 3))
    """
    return tuple(value) if value else (fill,) * n


def channels_first(p: Params, *specs: Spec) -> bool:
    """Whether a layout, where one is given, has its channels before the places; a condition for kernels."""
    return p.layout is None or p.layout[1] == "C"


def spread(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """The product of the lengths before an axis, its own, and the product of those after it.

    Parameters
    ----------
    shape : sequence of int
    axis : int
        From the end if negative.

    Examples
    --------
    >>> spread((2, 3, 4, 5), 1), spread((2, 3, 4), -1)
    ((2, 3, 20), (6, 4, 1))
    """
    axis = axis + len(shape) if axis < 0 else axis
    outer = inner = 1
    for n in shape[:axis]:
        outer *= n
    for n in shape[axis + 1 :]:
        inner *= n
    return outer, shape[axis], inner
