"""From any array to the few layouts kernels are compiled for."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

__all__ = ["dense", "flat", "normal_axis", "spread", "writable"]


def dense(a: np.ndarray) -> np.ndarray:
    """Return `a` if it is C-contiguous, aligned and writable, else a copy that is.

    Numba compiles a second version of a kernel for arrays it may not write; a copy is cheaper.
    """
    return a if a.flags.carray else np.array(a, order="C")


def flat(a: np.ndarray) -> np.ndarray:
    """Return a dense one-dimensional form of an input."""
    return dense(a).reshape(-1)


@contextlib.contextmanager
def writable(*outs: np.ndarray | None) -> Iterator[list[np.ndarray | None]]:
    """Lend dense stand-ins for output arrays of any layout; on leaving, copy them back."""
    dense_outs = [o if o is None or o.flags.c_contiguous else np.array(o, order="C") for o in outs]
    yield dense_outs
    for o, d in zip(outs, dense_outs):
        if d is not o:
            o[...] = d  # type: ignore[index]


def normal_axis(axis: int, ndim: int) -> int:
    """Return `axis` counted from the front."""
    return axis + ndim if axis < 0 else axis


def spread(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Return (product before the axis, the axis, product after it)."""
    outer = inner = 1
    for n in shape[:axis]:
        outer *= n
    for n in shape[axis + 1:]:
        inner *= n
    return outer, shape[axis], inner
