"""Plans run by steps of programs, which meet the same arrays again and again: nothing is looked at twice.

What a call costs beside the library is counted in microseconds, and small layers take no longer themselves.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from mxcore.plugin import Call

from .calls import is_dense, kept
from .library import Refused
from .plan import Plan
from .rooms import MUCH
from .teams import workers

__all__ = ["Standing"]


def _nothing() -> None:
    return None


class Standing:
    """A plan with memory objects of its own, for one step.

    Parameters
    ----------
    make : callable
        Finds the plan, for the number of threads that there are, or None.
    work : float
        Multiplications, for the number of threads.
    """

    __slots__ = ("make", "work", "workers", "plan", "bound", "seen", "base", "busy")

    def __init__(self, make: Callable[[], Plan | None], work: float) -> None:
        self.make, self.work, self.workers, self.busy = make, work, 0, False
        self.plan: Plan | None = None

    def run(self, arrays: Sequence[Any], k: Call | None = None) -> bool:
        """Whether it is done; else there is no plan, the library failed, or arrays are strided.

        Parameters
        ----------
        arrays : sequence of ndarray
            Those of the plan; of any shape, for it is their memory that counts.
        k : Call, optional
            Of a program that tells which arrays stay as they are: what the plan makes of these is kept.
        """
        n = workers(self.work)
        if n != self.workers:
            self._renew(n, len(arrays))
        plan = self.plan
        if plan is None or self.busy or plan.scratch >= MUCH:
            return False
        self.busy = True  # a signal handler may run the same step
        try:
            if k is not None:
                if not all(map(is_dense, arrays)):
                    return False
                plan.run_kept(self.bound, arrays, kept(k, plan))
                return True
            for i, a in enumerate(arrays):
                if self.seen[i]() is not a and not self._take(plan, i, a):
                    return False
            return plan.run_bound(self.bound)
        except Refused:
            self.workers = 0
            return False
        finally:
            self.busy = False

    def _renew(self, n: int, arrays: int) -> None:
        plan = self.make()
        if plan is not None:
            self.bound, self.seen = plan.bound(), [_nothing] * arrays
        self.plan = plan
        self.workers = n  # last: an interrupt before it lets the next run begin anew

    def _take(self, plan: Plan, i: int, a: Any) -> bool:
        """Let a memory object be that of another array."""
        if not is_dense(a) or a.nbytes != plan.arrays[i].desc.size:
            return False
        self.seen[i] = _nothing  # an interrupt may come at any time
        self.bound.place(i, int(a.__array_interface__["data"][0]))
        self.seen[i] = weakref.ref(a)
        return True
