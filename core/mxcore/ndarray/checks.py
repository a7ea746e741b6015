"""What functions that are no operators check of their arguments, in the words of operators."""
from __future__ import annotations

from typing import Any

from .._core import dispatch
from .._core.array import Array
from .._core.binding import not_an_array
from .._core.context import Context, current_context

__all__ = ["arrays", "place"]


def arrays(where: str, **given: Any) -> None:
    """Refuse what is no array; `where` is the function."""
    for name, v in given.items():
        if not isinstance(v, Array):
            raise not_an_array(where, name, v)


def place(where: str, ctx: Any, out: Any = None) -> Context:
    """The context that a function was given, that of its `out`, or the current one."""
    if isinstance(ctx, Context):
        return ctx
    if ctx is not None:
        return dispatch.parse_ctx(f"operator {where}", str(ctx))
    if out is None:
        return current_context()
    arrays(where, out=out)
    return out._st.ctx  # type: ignore[no-any-return]
