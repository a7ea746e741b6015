"""Locks: in forked children, and for objects that threads share."""

import os
import threading
import weakref

import pytest

from mxcore import _locks
from mxcore.plugin import fork_safe_lock


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_in_a_forked_child_nobody_holds_the_lock():
    lock, held, over = fork_safe_lock(), threading.Event(), threading.Event()

    def hold():
        with lock, lock:
            held.set()
            over.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    child = os.fork()
    if not child:
        os._exit(0 if lock.acquire(timeout=5) and lock.acquire(timeout=5) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not lock.acquire(blocking=False), "here it is held as before"
    over.set()
    holder.join()
    assert lock.acquire(timeout=5)
    lock.release()


def test_nothing_is_called_when_a_lock_goes():
    """In Python 3.10 a collection of garbage at that moment would free it twice."""
    lock = fork_safe_lock()
    assert [ref.__callback__ for ref in weakref.getweakrefs(lock)] == [None]


def test_locks_that_are_gone_are_forgotten(in_threads):
    kept = [fork_safe_lock() for _ in range(10)]

    def work(_):
        for _ in range(5000):
            fork_safe_lock()

    in_threads(work, [(i,) for i in range(4)])
    known = [ref() for ref in _locks._locks]
    assert len(known) < 15000 and all(any(lock is k for k in known) for lock in kept)
