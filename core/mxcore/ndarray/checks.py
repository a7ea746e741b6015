"""What functions that are no operators check of their arguments, in the words of operators."""

from __future__ import annotations

from typing import Any

from .._core.array import Array
from .._core.binding import not_an_array
from .._core.context import Context, context_named, current_context
from .._core.errors import error
from .._interrupts import let_through

__all__ = ["arrays", "callables", "place", "present", "two"]


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
        return context_named(f"operator {where}", ctx)
    if out is None:
        return current_context()
    arrays(where, out=out)
    found: Context = out._st.ctx
    return found


def present(ctx: Context) -> Context:
    """A context on which an array was saved, or the current one where its device is missing."""
    try:
        if ctx.device_id < ctx.device.count():
            return ctx
    except Exception as e:  # no plugin provides it, or its driver does not answer
        let_through(e)
    return current_context()


def callables(name: str, **functions: Any) -> None:
    """Refuse what is no function in the place of one."""
    for n, f in functions.items():
        if not callable(f):
            raise error(TypeError, f"{name}: {n} must be a function, got {type(f).__name__}")


def two(who: str, what: str, result: Any) -> tuple[Any, Any]:
    """The two things that a user's function returns."""
    if not isinstance(result, (list, tuple)) or len(result) != 2:
        n = f"{len(result)} values" if isinstance(result, (list, tuple)) else type(result).__name__
        raise error(ValueError, f"{who} must return {what}, got {n}")
    return result[0], result[1]
