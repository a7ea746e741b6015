"""From any array to the few layouts kernels are compiled for."""

from __future__ import annotations

import math

import numpy as np

from ..typing import Array

__all__ = ["dense", "flat", "lines", "normal_axis", "writable"]


def dense(a: Array) -> Array:
    """Return `a` if it is C-contiguous, aligned and writable, else a copy that is.

    Numba compiles a second version of a kernel for arrays it may not write; a copy is cheaper.
    """
    return a if a.flags.carray else np.array(a, order="C")


def flat(a: Array) -> Array:
    """Return a dense one-dimensional form of an input."""
    return dense(a).reshape(-1)


class writable:
    """``with writable(a, b) as (x, y)``: dense stand-ins for output arrays of any layout, copied back at the end."""

    __slots__ = ("outs", "lent")

    def __init__(self, *outs: Array) -> None:
        self.outs = outs

    def __enter__(self) -> tuple[Array, ...]:
        self.lent = tuple(o if o.flags.c_contiguous else np.array(o, order="C") for o in self.outs)
        return self.lent

    def __exit__(self, *exc: object) -> None:
        for own, lent in zip(self.outs, self.lent):
            if lent is not own:
                own[...] = lent


def lines(a: Array) -> Array:
    """Return (n, c, *size) as (n, c, elements); `reshape(n, c, -1)` does not know how, of nothing."""
    return a.reshape(*a.shape[:2], math.prod(a.shape[2:]))


def normal_axis(axis: int, ndim: int) -> int:
    """Return `axis` counted from the front."""
    return axis + ndim if axis < 0 else axis
