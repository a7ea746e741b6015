"""Stacks of matrices: linear algebra, transposition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mxcore.plugin import Call, Params, Spec

from ..kernels import layout, triangular
from ..typing import Array, Outs
from .common import FLOATS, cpu


@cpu.kernel("_linalg_trsm", dtypes=FLOATS, out=True)
def _trsm(k: Call, p: Params, outs: Outs, A: Array, B: Array) -> None:
    with np.errstate(all="ignore"):  # infinity and NaN are results
        triangular.solve(A, B, outs[0], transpose=p.transpose, right=p.rightside, lower=p.lower, alpha=p.alpha)


@cpu.kernel("_linalg_potrf", dtypes=FLOATS, when=lambda p, A: A.shape[-1] >= 512, out=True)
def _potrf(k: Call, p: Params, outs: Outs, A: Array) -> None:
    with np.errstate(all="ignore"):
        if p.lower:
            triangular.factor(A, outs[0])
        else:
            triangular.factor(A.swapaxes(-1, -2), outs[0].swapaxes(-1, -2))


def _axes(p: Params, n: int) -> tuple[int, ...]:
    """The order of axes that `transpose` is asked for."""
    return tuple(a % n for a in p.axes) or (*range(n),)[::-1]


def _exchanged(p: Params, n: int) -> tuple[int, ...]:
    """The order of axes that `SwapAxis` is asked for."""
    axes, a, b = [*range(n)], p.dim1 % n, p.dim2 % n
    axes[a], axes[b] = b, a
    return tuple(axes)


#: Elements from which tiles pay; NumPy is as fast where the matrices are stripes of one or two columns.
_TILED, _NARROW = 1 << 16, 3

for _op, _order in {"transpose": _axes, "SwapAxis": _exchanged}.items():

    def _pays(p: Params, data: Spec, order: Callable[[Params, int], tuple[int, ...]] = _order) -> bool:
        if data.size < _TILED or data.stype != "default":
            return False
        found = layout.as_matrices(data.shape, order(p, len(data.shape)))
        return found is not None and min(found[1:]) >= _NARROW

    @cpu.kernel(_op, when=_pays, out=True)
    def _transpose(
        k: Call, p: Params, outs: Outs, data: Array, order: Callable[[Params, int], tuple[int, ...]] = _order
    ) -> None:
        layout.transpose(data, order(p, data.ndim), outs[0])
