"""What all bindings share."""

from __future__ import annotations

from mxcore.plugin import KernelSet, Params, Spec

__all__ = ["FLOATS", "LARGE", "axes", "channels_first", "cpu", "large"]

cpu = KernelSet("cpu")
FLOATS = "f4 f8"
#: Elements from which a kernel that passes once over its data beats NumPy.
LARGE = 1 << 14


def channels_first(p: Params, *specs: Spec) -> bool:
    """Whether a layout, where one is given, has its channels before the places."""
    return p.layout is None or p.layout[1] == "C"


def large(p: Params, data: Spec, *rest: Spec) -> bool:
    """Whether the first input has :data:`LARGE` elements."""
    return data.size >= LARGE


def axes(value: tuple[int, ...] | None, n: int, fill: int) -> tuple[int, ...]:
    """A parameter with a number for each of `n` axes, where it is left out the same for all."""
    return value or (fill,) * n
