"""Random keys.

A random operator draws a key, (seed, stream, counter), in program order at the call. Its numbers are a pure function of
the key (:mod:`mxcore.philox`), so a recomputation with the same key sees the same numbers.
"""

from __future__ import annotations

import threading
from itertools import count
from typing import Any

from .context import Context
from .state import state

__all__ = ["lock", "next_key", "seed", "standing"]

#: Held by whoever draws or seeds, also in a signal handler meanwhile; a forked child gets a new one.
lock = threading.RLock()
#: Seed of all contexts; seeds of single ones; for each the numbers of its keys, which no signal handler gets twice.
standing: dict[str, Any] = {"seed": 0, "seeds": {}, "counters": {}}


def seed(value: int, ctx: Context | None = None) -> None:
    """Seed the keys of one context, or of all; the same seed gives the same numbers in the same program."""
    value = int(value) & (2**64 - 1)
    with lock:
        if ctx is None:
            standing.update(seed=value, seeds={}, counters={})
        else:
            standing["seeds"][ctx], standing["counters"][ctx] = value, count()


def next_key(ctx: Context) -> tuple[int, int, int]:
    """Draw the next key of a context; in a calculation that is repeated, the one that was drawn first."""
    if state.keys:
        key = state.keys.pop(0)
    else:
        with lock:
            n = next(standing["counters"].setdefault(ctx, count()))
            own = standing["seeds"].get(ctx)
            # A seed given to one context alone must give the same numbers on every context, as in MXNet.
            key = (standing["seed"], ctx.device_id, n) if own is None else (own, 0, n)
    if state.drawn is not None:
        state.drawn.append(key)
    return key
