"""csr matrices: products, sums of two, conversions, rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mxcore.plugin import CSR, Call, Params, Spec

from ..kernels import csr
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
