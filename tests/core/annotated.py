"""What mypy knows of the objects that plugins and users get. It checks this file."""

from __future__ import annotations

from mxcore._core.call import OpContext
from mxcore._core.frontend import Eager
from mxcore.ndarray import NDArray
from mxcore.ndarray.sparse import RowSparseNDArray
from mxcore.plugin import Array, Call, Float, GraphF, Operand, Operators, Params, op
from mxcore.symbol import Symbol


def given_to_bodies(k: OpContext) -> Call:
    return k


def given_to_rules(F: Eager | GraphF) -> Operators:
    return F


def composed(x: NDArray, s: Symbol) -> tuple[NDArray, Symbol]:
    x += 1
    return -(2 - x * x) / 3, (s > 2) + s**2


def stored(x: RowSparseNDArray) -> NDArray:
    x.check_format()
    return x


@op("annotated", scale=Float(1.0))
def annotated(k: Call, p: Params, data: Array) -> Array:
    """Return ``exp(scale * data)``: data of any shape, scale a number."""
    return k.xp.exp(p.scale * data)


@annotated.grad
def gradient(F: Operators, p: Params, dy: Operand, y: Operand) -> Operand:
    return F.elemwise_mul(dy, y) * p.scale
