"""Where the executions of one operator on several contexts of this process meet, each with a part of a sum."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from ..._core.context import Context
from ..._core.engine import engine
from ..._core.errors import error
from ..._interrupts import Uninterrupted
from ..._locks import fork_safe_lock
from ..._workers import Latch

__all__ = ["expect", "meet"]


_lock = fork_safe_lock()
#: (key, pass) -> the rendezvous that is still open.
_open: dict[tuple[str, str], _Meeting] = {}


class _Meeting:
    """One use of a layer: the parts that have arrived, (where, part)."""

    __slots__ = ("parts", "over", "ended")

    def __init__(self) -> None:
        self.parts: list[tuple[tuple[str, int], Any]] = []
        self.over, self.ended = "", Latch()

    def end(self, how: str) -> None:
        """Let all go on who have come."""
        self.over = how
        self.ended.set()


def _patience() -> float:
    """Seconds to wait for the others."""
    text = os.environ.get("MXCORE_SYNC_TIMEOUT", "60")
    try:
        return float(text)
    except ValueError:
        raise error(ValueError, f"MXCORE_SYNC_TIMEOUT={text!r} must be a number of seconds") from None


def _alone() -> bool:
    """Whether nobody else can come: the engine has nothing to do, and no other thread could call."""
    me = threading.current_thread()
    if me.name.startswith("mxcore-") or getattr(engine.it, "_open", False):
        return False
    return all(t is me or t.name.startswith("mxcore-") for t in threading.enumerate())


def expect(count: int) -> None:
    """Tell the engine that so many contexts are going to compute: only then does it hand work to workers.

    It learns of a context when that one computes for the first time, which would be too late for the first of those
    that meet.
    """
    for i in range(count):
        engine.it.note(Context("cpu", i))


def meet(key: str, stage: str, count: int, where: tuple[str, int], part: Any) -> list[Any]:
    """Hand in a part, wait for `count` parts of this key and stage, and return all, in the order of contexts.

    Parameters
    ----------
    key : str
        What the executions that belong together share.
    stage : str
        Keeps those of one key apart.
    count : int
        How many take part.
    where : (str, int)
        The context of the part: its type and index.
    part : object
        What is handed in.

    Raises
    ------
    MXNetError
        If the others do not come: at once where nobody else could, else after ``MXCORE_SYNC_TIMEOUT`` seconds (60).
    """
    came = where, part
    while True:
        with Uninterrupted(), _lock:
            mine = _open.setdefault((key, stage), _Meeting())
            other = any(there == where for there, _ in mine.parts)
            if not other:
                mine.parts.append(came)
                if len(mine.parts) >= count:
                    del _open[key, stage]
                    mine.end("complete")
        try:
            if not mine.over:
                _wait(mine, key, stage, count)
        except BaseException:
            if not other:
                _leave(mine, key, stage, came)
            raise
        if not other:
            break  # else it was another use of the layer, which this one must not take part in
    if mine.over != "complete":
        raise error(RuntimeError, mine.over)
    return [p for _, p in sorted(mine.parts, key=lambda item: item[0])]


def _leave(mine: _Meeting, key: str, stage: str, came: Any) -> None:
    """Take back a part whose computation was interrupted."""
    with Uninterrupted(), _lock:
        if not mine.over:
            mine.parts = [part for part in mine.parts if part is not came]
            if not mine.parts and _open.get((key, stage)) is mine:
                del _open[key, stage]


def _wait(mine: _Meeting, key: str, stage: str, count: int) -> None:
    patience = _patience()
    end, left = time.monotonic() + patience, patience
    alone = _alone()
    while not mine.over and left > 0 and not alone:
        mine.ended.wait(left)
        left = end - time.monotonic()
    with Uninterrupted(), _lock:
        if mine.over:
            return
        came = ", ".join(f"{kind}({index})" for (kind, index), _ in mine.parts)
        why = (
            "nothing else runs in this process: the contexts are computed one after the other, in the caller's "
            "thread (use the threaded "
            "engine, or a thread for each context)"
            if alone
            else f"the others did not come in {patience:g} seconds"
        )
        if _open.get((key, stage)) is mine:
            del _open[key, stage]
        mine.end(f"{stage} pass with key={key!r} needs ndev={count} contexts, and only {came} came: {why}")
    expect(count)
