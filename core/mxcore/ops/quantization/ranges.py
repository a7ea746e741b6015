"""Ranges: what whole numbers of few bits stand for, and the rules that all operators over them share.

A quantised array comes with the least and the greatest number that it stands for, each of shape (1,) and float32. The
larger magnitude of the two is what counts: int8 and int32 are symmetric around zero, uint8 begins at zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.params import Params
from ...parameters import Float
from ..common.rules import one

__all__ = [
    "CALIBRATED",
    "EIGHT_BITS",
    "FLOAT32",
    "INT32",
    "INT8",
    "LEVELS",
    "OUTPUTS",
    "UINT8",
    "is_calibrated",
    "larger",
    "nearest",
    "output_dtype",
    "product_range",
    "ranges_of",
    "scale_of",
    "takes",
    "with_ranges",
]


FLOAT32, INT32, INT8, UINT8 = (np.dtype(t) for t in ("float32", "int32", "int8", "uint8"))
EIGHT_BITS = INT8, UINT8
#: How many steps of a dtype make the larger magnitude of its range, as MXNet counts them with oneDNN: half a step
#: beyond the last number.
LEVELS = {INT8: 127.5, UINT8: 255.5, INT32: 2.0**31}
#: The same, where MXNet counts up to the last number.
_LAST = {INT8: 127.0, UINT8: 255.0}

#: What operators over eight bits give: a result and its range.
OUTPUTS = "output min_output max_output"
#: Parameters of operators whose range can be known beforehand.
CALIBRATED = {"min_calib_range": Float(None), "max_calib_range": Float(None)}


def is_calibrated(p: Params) -> bool:
    """Whether the range is known beforehand; MXNet wants both ends."""
    return p.min_calib_range is not None and p.max_calib_range is not None


def output_dtype(p: Params) -> np.dtype[Any]:
    """The dtype that `out_type` stands for: 'auto' is uint8 where the calibrated range has no negative numbers."""
    if p.out_type == "auto":
        return UINT8 if is_calibrated(p) and p.min_calib_range >= 0 else INT8
    found: np.dtype[Any] = np.dtype(p.out_type)
    return found


def larger(xp: Any, low: Any, high: Any) -> Any:
    """The larger magnitude of a range, float32 of shape (1,)."""
    return xp.maximum(xp.abs(low), xp.abs(high))


def ranges_of(xp: Any, *ends: float) -> list[Any]:
    """Numbers as the ends of ranges: float32 of shape (1,)."""
    most = float(np.finfo(FLOAT32).max)
    return [xp.full(one, v if v != v else min(max(v, -most), most), FLOAT32) for v in ends]


def scale_of(xp: Any, levels: float, size: Any) -> Any:
    """Steps per unit of a range of this larger magnitude; an empty one holds zeros only, so that any scale will do."""
    # An array over an array: a number of NumPy's might take the arrays of a device for its own.
    return (xp.zeros_like(size) + FLOAT32.type(levels)) / xp.where(size == 0, FLOAT32.type(1), size)


def nearest(xp: Any, x: Any, dtype: np.dtype[Any]) -> Any:
    """The nearest whole numbers (halves to even) within a dtype; NaN is above everything, as with oneDNN."""
    ends = np.iinfo(dtype)
    if dtype == INT32:  # float32 does not hold its last number
        x = x.astype(np.float64)
    x = xp.rint(x)
    return xp.maximum(xp.where(x < ends.max, x, x.dtype.type(ends.max)), x.dtype.type(ends.min)).astype(dtype)


def product_range(xp: Any, dtype: np.dtype[Any], data: Sequence[Any], weight: Sequence[Any]) -> list[Any]:
    """The range of sums of products, in int32, of data of a dtype and an int8 weight; each given as (least, greatest).

    An empty range stands for zeros, whatever the scale; as one of 1 it leaves a bias its place.
    """
    sizes = (larger(xp, *ends) for ends in (data, weight))
    first, second = (xp.where(size == 0, FLOAT32.type(1), size) for size in sizes)
    # The bits of MXNet's result depend on which factor is divided by which number.
    steps = _LAST[INT8], _LAST[dtype]
    top = first / FLOAT32.type(steps[0]) * (second / FLOAT32.type(steps[1])) * FLOAT32.type(LEVELS[INT32])
    return [-top, top]


def takes(
    allowed: Sequence[Sequence[np.dtype[Any]]], outputs: Callable[[Params, list[Any]], list[Any]]
) -> Callable[..., tuple[list[Any], list[Any]]]:
    """The dtype rule of an operator whose first inputs have one of the `allowed` dtypes each, all others float32.

    `outputs` gives the dtypes of the outputs, None where they are unknown, from the inputs'. Where one dtype alone is
    allowed it is inferred.

    Raises
    ------
    TypeError
        From the rule: for an input of another dtype.
    """

    def rule(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        found = []
        for i, t in enumerate(ins):
            wanted = allowed[i] if i < len(allowed) else (FLOAT32,)
            if t is not None and wanted and t not in wanted:
                raise TypeError(f"{p._sig.inputs[i]} is {t.name} where {' or '.join(w.name for w in wanted)} is needed")
            found.append(wanted[0] if t is None and len(wanted) == 1 else t)
        return found, outputs(p, found)

    return rule


def with_ranges(n: int, rule: Callable[..., Any] | None = None) -> Callable[..., tuple[list[Any], list[Any]]]:
    """The shape rule of an operator with `n` arrays among its inputs, the ranges after them, and a quantised output.

    `rule` is the two-way one of the arrays and the first output, all alike unless told.
    """

    def ranged(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        count = min(n, len(ins) // 3) if n > 1 else n
        arrays, [out] = rule(p, ins[:count], outs[:1]) if rule else ([ins[0]] * count, [ins[0]])
        return [*arrays, *[one] * (len(ins) - count)], [out, *[one] * (len(outs) - 1)]

    return ranged
