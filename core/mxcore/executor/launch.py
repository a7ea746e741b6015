"""Running a part of a program: at once, or in the order of the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._core.array import Storage
from .._core.context import Context
from .._core.engine import engine
from .._core.errors import user_line
from .._core.state import state
from .._core.stream import begin, commit, heavy
from .program import Program

__all__ = ["launch"]


def launch(
    program: Program,
    part: int,
    ctx: Context,
    work: Callable[[str], None],
    reads: Sequence[Storage],
    writes: Sequence[Storage],
    now: bool = False,
    train: bool | None = None,
) -> None:
    """Do the work of a part, or hand it to the engine if it would wait, or is heavy where others could go on.

    Parameters
    ----------
    program : Program
    part : int
    ctx : Context
        Whose worker does it.
    work : callable
        Called with where in the user's code the call was, if that is not where its errors surface.
    reads, writes : sequence of Storage
    now : bool
        Do it before returning.
    train : bool, optional
        The training mode that Python code inside sees; that of the caller unless told.
    """
    now = now or program.sync or ctx.device.async_
    waits = begin(reads, writes, now) or not now and heavy(program.work[part])
    commit(writes)  # also where it fails half-way
    if waits:
        where = f", called at {user_line()}"
        engine.it.push(ctx, lambda: work(where), reads, writes, "program")
        commit(writes)
        return
    ctx.activate()
    mode = state.__dict__
    was = mode["record"], mode["train"]
    mode["record"], mode["train"] = False, was[1] if train is None else train
    try:
        work("")
    finally:
        mode["record"], mode["train"] = was
        commit(writes)
