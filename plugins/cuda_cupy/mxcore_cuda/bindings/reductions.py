"""Sums, means and extremes over axes, by the kernels of chains that end in one: blocks share what has few results.

CuPy leaves a sum of all elements to one block. What has few elements for each result stays CuPy's.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from mxcore.plugin import Call, Fused, Op, Params, Spec, operators

from ..fused import Compiled
from .common import COMPUTED, Array, Outs, binds

#: Elements for each result from which on a block is worth while.
_MANY = 128


@lru_cache(4096)
def _chain(tree: Any, how: str, dtype: str, shape: tuple[int, ...], kept: tuple[int, ...]) -> Compiled:
    held, name = "float64" if dtype == "float64" else "float32", "data"
    # Half precision is read as it is, and added up in float32.
    chain = Fused([name], [tree], held, reduce=[how], types={name: dtype})
    return Compiled(chain.with_layout(shape, [shape], [kept]))


def _bind(op: Op) -> None:
    (given,), how, axes = op.input_names, op.facets["reduces"].how, op.facets["reduces"].axes
    tree = op.facet("expr", op.parse({})).tree
    plain = tree == ("name", given)

    def kept(p: Params, data: Any) -> tuple[int, ...]:
        """The shape of the result with the reduced axes of length 1."""
        gone = axes(p, data.shape, None)
        return tuple(1 if i in gone else d for i, d in enumerate(data.shape))

    def when(p: Params, data: Spec) -> bool:
        return data.size >= _MANY * math.prod(kept(p, data)) > 0

    @binds(op.name, dtypes=COMPUTED if plain else "f4 f8", when=when)
    def kernel(k: Call, p: Params, outs: Outs, data: Array) -> None:
        work = "data" if plain else tree
        _chain(work, how, str(data.dtype), data.shape, kept(p, data)).bind(outs, [data])()


# The operators of mx.np have the same kernels.
for _op in operators():
    if "reduces" in _op.facets and "exclude" in _op.params:
        _bind(_op)
