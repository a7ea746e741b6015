"""Locks: in forked children, and for objects that threads share."""

import os
import threading

import pytest

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
