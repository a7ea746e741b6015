"""Parts of symbols of ``mx.np``: NumPy's basic indexing, as the nodes that MXNet makes of it."""

from __future__ import annotations

import numbers
from typing import Any

from ..._core import tables
from ..._core.errors import error

__all__ = ["get_item"]


def get_item(F: Any, x: Any, key: Any) -> Any:
    """``x[key]`` of a symbol with one output.

    Parameters
    ----------
    F : Face
    x : _Symbol
    key : int, slice, None, Ellipsis, or tuple of them

    Raises
    ------
    MXNetError
        (also IndexError) for other indices, whose meaning rests on values or dtypes that a graph does not know.
    """
    index = tuple(map(_coded, key)) if isinstance(key, tuple) else (_coded(key),)
    if index.count(Ellipsis) > 1:
        raise error(IndexError, "an index can have one Ellipsis ('...') only")
    op = tables.ops.get("_basic_index")
    chain = op.facet("written_as", op.parse({"index": index}))
    if chain is None:
        return F.call("_basic_index", x, index=index)
    for op, params in chain:
        x = F.call(op, x, **params)
    return x


def _coded(k: Any) -> Any:
    if k is None or k is Ellipsis:
        return k
    if isinstance(k, numbers.Integral) and not isinstance(k, bool):
        return int(k)
    if not isinstance(k, slice):
        raise error(
            IndexError,
            f"a symbol of mx.sym.np is indexed by ints, slices, None and Ellipsis, got {type(k).__name__}; np.take, "
            "npx.pick and np.where select by other symbols",
        )
    try:
        return "s", *(None if v is None else int(v.__index__()) for v in (k.start, k.stop, k.step))
    except (AttributeError, TypeError):
        raise error(TypeError, f"slice indices must be whole numbers or None, got {k!r}") from None
