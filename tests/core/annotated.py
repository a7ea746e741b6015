"""An operator with annotations, and that what the core gives to it fits them: mypy checks this file."""

from __future__ import annotations

from mxcore._core.call import K
from mxcore._core.frontend import Eager
from mxcore.plugin import Array, Call, Float, GraphF, Operand, Operators, Params, op


def given_to_bodies(k: K) -> Call:
    return k


def given_to_rules(F: Eager | GraphF) -> Operators:
    return F


@op("annotated", scale=Float(1.0))
def annotated(k: Call, p: Params, data: Array) -> Array:
    """Return ``exp(scale * data)``: data of any shape, scale a number."""
    return k.xp.exp(p.scale * data)


@annotated.grad
def gradient(F: Operators, p: Params, dy: Operand, y: Operand) -> Operand:
    return F.elemwise_mul(dy, y) * p.scale
