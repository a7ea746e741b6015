"""csr matrices: products, sums of two, conversions, rows; rows of row-sparse arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from mxcore.plugin import CSR, Call, Params, RowSparse, Spec

from ..kernels import csr, rows
from ..typing import Array
from .common import FLOATS, cpu, helpers


class Compiled:
    """What products are made of: see `dot`'s helper `product`."""

    xp = np
    transposed = staticmethod(csr.transposed)
    times = staticmethod(csr.times)
    by_csr = staticmethod(csr.by_csr)


@cpu.kernel("dot", dtypes=FLOATS, when=lambda p, lhs, rhs: "csr" in (lhs.stype, rhs.stype))
def _dot(k: Call, p: Params, lhs: Any, rhs: Any) -> Any:
    found = helpers("dot")
    return found.product(Compiled, p, lhs, rhs, found.shape(p, [lhs.shape, rhs.shape])[0])


@cpu.kernel("_dot_right", dtypes=FLOATS, when=lambda p, dy, lhs, like: lhs.stype == "csr")
def _dot_right(k: Call, p: Params, dy: Any, lhs: CSR, like: Array) -> Any:
    return helpers("_dot_right").right_gradient(Compiled, p, dy, lhs, tuple(like.shape))


def _two(p: Params, lhs: Spec, rhs: Spec) -> bool:
    return lhs.stype == rhs.stype == "csr"


for _name in ("elemwise_add", "elemwise_sub", "elemwise_mul"):

    @cpu.kernel(_name, dtypes=FLOATS, when=_two, priority=1, sparse=True)
    def _merged(k: Call, p: Params, lhs: CSR, rhs: CSR, name: str = _name) -> CSR:
        return csr.merged(name, lhs, rhs)


@cpu.kernel("cast_storage", dtypes=FLOATS, when=lambda p, data: (data.stype, p.stype) == ("csr", "default"))
def _dense(k: Call, p: Params, data: CSR) -> Array:
    return csr.unpack(data)


@cpu.kernel(
    "cast_storage", dtypes=FLOATS, when=lambda p, data: (data.stype, p.stype) == ("default", "csr") and data.ndim == 2
)
def _csr(k: Call, p: Params, data: Array) -> CSR:
    return csr.pack(data)


def _total(xp: Any, x: CSR, axes: tuple[int, ...], values: Array) -> Array:
    return csr.sums(x, values, axes[0]) if len(axes) == 1 else np.atleast_1d(values.sum(None))


for _name in ("sum", "mean", "norm"):

    @cpu.kernel(_name, dtypes=FLOATS, when=lambda p, data: data.stype == "csr", sparse=True)
    def _reduced(k: Call, p: Params, data: CSR, name: str = _name) -> Array:
        found: Array = helpers(name).stored(k, p, data, _total)
        return found


def _whole_words(data: Spec) -> bool:
    """Whether loops are compiled for the dtype of a csr matrix: halves have bodies."""
    return data.stype == "csr" and (data.dtype.kind in "iub" or data.dtype.kind == "f" and data.dtype.itemsize >= 4)


@cpu.kernel("take", when=lambda p, a, indices: _whole_words(a) and p.axis == 0 and indices.ndim == 1, sparse=True)
def _rows(k: Call, p: Params, a: CSR, indices: Any) -> CSR:
    indices = indices if indices.__class__ is np.ndarray else indices.todense(np)
    return csr.take(a, helpers("take").places(np, p, indices, a.shape[0]))


@cpu.kernel("slice", when=lambda p, data: _whole_words(data) and all(s in (None, 1) for s in p.step), sparse=True)
def _part(k: Call, p: Params, data: CSR) -> CSR:
    return csr.part(data, *helpers("slice").ranges(p, data.shape))


def _stored(stype: str) -> Any:
    """Whether the first input is of a storage type, and of a dtype that loops are compiled for; others are places."""
    return lambda p, data, *places: data.stype == stype and data.dtype.str[1:] in ("f4", "f8", "i4", "i8")


@cpu.kernel("_sparse_retain", when=_stored("row_sparse"))
def _retained(k: Call, p: Params, data: RowSparse, indices: Any) -> RowSparse:
    return rows.retained(data, helpers("_sparse_retain").wanted(np, indices, data.shape[0]))


@cpu.kernel("_contrib_edge_id", when=_stored("csr"))
def _edge_id(k: Call, p: Params, data: CSR, u: Any, v: Any) -> Array:
    vertices, others = helpers("_contrib_edge_id").pairs(np, data, u, v)
    return csr.at(data, vertices, others, -1)
