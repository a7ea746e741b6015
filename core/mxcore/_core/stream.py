"""What has to wait for what: work begins here with what it reads and writes, and ends with its writes counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .array import Storage
from .context import Context
from .engine import engine

__all__ = ["begin", "commit", "heavy", "ordered"]


def begin(reads: Sequence[Storage], writes: Sequence[Storage], now: bool = False) -> bool:
    """Whether work must wait on a worker for what is pending; if it is done `now`, wait and raise what failed."""
    for st in reads:
        if st.write is not None:
            break
    else:
        for st in writes:
            if st.write is not None or st.reads:
                break
        else:
            return False
    if now:
        for st in reads:
            st.order()
        for st in writes:
            st.order(True)
    return not now


def heavy(work: float) -> bool:
    """Whether a worker had better do so much work: several contexts are in use, so that it overlaps something."""
    it = engine.it
    return bool(it.parallel and work > it.work_limit)


def commit(writes: Iterable[Storage]) -> None:
    """Count a write to each storage: the tape compares the counts, and so does what is kept of weights.

    Who writes calls it before and after: an interrupt may come behind the write, and another thread between the two.
    """
    for st in writes:
        st.version += 1


def ordered(
    ctx: Context,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    reads: Sequence[Storage],
    writes: Sequence[Storage],
    name: str,
    now: bool = False,
    work: float = 0.0,
) -> None:
    """Call ``fn(*args)`` once what it reads and writes is free: here if it is or must be, else on `ctx`'s worker.

    Parameters
    ----------
    ctx : Context
    fn : callable
    args : tuple
    reads, writes : sequence of Storage
    name : str
        What errors call it.
    now : bool
        Do it before returning, as devices with a queue of their own always do: it is launched by the caller.
    work : float
        How much it is: what is `heavy` goes to the worker at any rate, unless it must be done here.
    """
    queued = (ctx._device or ctx.device).async_
    commit(writes)
    if begin(reads, writes, now or queued) or (work and not (now or queued) and heavy(work)):

        def task() -> None:
            fn(*args)

        engine.it.push(ctx, task, reads, writes, name)
    else:
        if queued:
            ctx.activate()
        fn(*args)
    commit(writes)
