"""The four operators that differentiation needs, there from the first import of `mxcore.plugin`."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import facets, wellformed  # noqa: F401  operators are declared with them
from ._core import tables
from ._core.op import Op
from .crossing import to_context
from .parameters import Any_

__all__: list[str] = []

OWNER = "mxcore core"


def _filled(value: int) -> Any:
    return lambda k, p, data: (k.xp.ones if value else k.xp.zeros)(data.shape, data.dtype)


_DOC = (
    "An array of {} with the shape and dtype of `data`.\n\n"
    "Parameters\n----------\ndata : array\n    Only its shape and dtype are used."
)


def _sum_dtype(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """All alike; but rules need not agree on the gradients of integers and truth values, of which floats are kept."""
    if None not in ins and ins[0] != ins[1] and any(t.kind in "iub" for t in ins):
        return ins, [np.result_type(*([t for t in ins if t.kind not in "iub"] or ins))]
    one = next((t for t in (*ins, *outs) if t is not None), None)
    return [one, one], [one]


grad_add = Op(
    "_grad_add",
    lambda k, p, lhs, rhs: k.xp.add(lhs, rhs),
    inputs="lhs rhs",
    role="sum of gradients",
    grad=lambda dy: (dy, dy),
    expr="lhs + rhs",
    alias="lhs->output",
    doc="The sum of two gradients of one variable.\n\nParameters\n----------\nlhs, rhs : array\n    Of one shape.",
)
grad_add.dtype(_sum_dtype)
ones_like = Op(
    "ones_like", _filled(1), inputs="data~", role="unit gradient", expr="1", grad=None, doc=_DOC.format("ones")
)
zeros_like = Op(
    "zeros_like", _filled(0), inputs="data~", role="zero gradient", expr="0", grad=None, doc=_DOC.format("zeros")
)

copyto = Op(
    "_copyto",
    lambda k, p, data: data.copy(),
    inputs="data",
    params={"source": Any_(None)},
    role="other context",
    direct=None,
    grad=lambda F, p, dy: to_context(dy, p.source) if p.source is not None else dy,
    doc="A copy of `data`, on another context where a copy between contexts was recorded.\n\nParameters\n----------\n"
    "data : array\nsource : Context\n    Where the gradient goes back to.",
)

for _op in (copyto, grad_add, ones_like, zeros_like):
    tables.ops.add_op(_op, OWNER)
