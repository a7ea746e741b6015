"""Half precision, float16 and bfloat16: what is of it, and sums of it, which are added up in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["is_half", "sum_dtype", "sum_over", "wide"]


def is_half(t: Any) -> bool:
    """Whether a dtype is of half precision: float16 or bfloat16, in which sums stop at 2048 or at 256."""
    return bool(t.itemsize == 2 and t.kind in "fV")


def wide(a: Any) -> Any:
    """Half precision, bfloat16 too, as float32: sums are kept in it, and only there BLAS is fast."""
    return a.astype(np.float32) if is_half(a.dtype) else a


def sum_dtype(data: Any) -> Any:
    """The dtype to add up in: float32 for half precision, else the function's own choice."""
    return np.float32 if is_half(data.dtype) else None


def sum_over(data: Any, axes: Any, keepdims: bool = False) -> Any:
    """The sum over axes, in the data's dtype; half precision is added up in float32."""
    return data.sum(axes, dtype=sum_dtype(data), keepdims=keepdims).astype(data.dtype, copy=False)
