"""Per-thread state: one object holds everything that a thread can switch on and off."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["ThreadState", "state"]


class ThreadState(threading.local):
    """What the running thread has switched on. Workers never read their own: what matters is captured at push.

    Attributes
    ----------
    record : bool or callable
        Operators are written on the tape, or told to whoever stands in its place, as :func:`.tape.record` is.
    train : bool
        Operators run in training mode.
    in_backward : bool
        Gradients are being computed.
    entered : tuple, optional
        The with-blocks of scopes that the thread is in, as (scope, what it found ..., those around it).
    ctx : list of Context
        The stack of ``with ctx:`` blocks; empty means the default context.
    np_shape : bool
        Zero means a zero-sized dimension instead of an unknown one (``mx.util.set_np_shape``).
    __dict__ : dict
        The attributes of the running thread; where several are needed, one look at it is cheaper than one for each.
    keys : list
        Random keys to take before new ones are drawn: those of a calculation that is repeated.
    drawn : list, optional
        Where keys are noted as they are taken, of a calculation that may be repeated.
    priority : int
        Of what is pushed: of what waits for one worker, the highest runs first.
    extra : dict
        What the faces keep for the thread: name managers, attribute scopes, profiler scopes.
    """

    def __init__(self) -> None:
        self.record: Any = False
        self.train = self.in_backward = self.np_shape = False
        self.entered: Any = None
        self.ctx: list[Any] = []
        self.priority = 0
        self.keys: list[tuple[int, int, int]] = []
        self.drawn: list[tuple[int, int, int]] | None = None
        self.extra: dict[str, Any] = {}


state = ThreadState()
