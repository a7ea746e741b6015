"""What is done around forks, in an order that does not depend on who was imported when."""

from __future__ import annotations

import _thread
import concurrent.futures.thread  # noqa: F401  # it holds a lock over forks, as logging does: see the last lines
import logging  # noqa: F401
import os
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

__all__ = ["at_fork", "hold_at_fork"]

#: Before, after in the parent, after in the child; of who goes before all others, and of these.
_Hooks = tuple["Callable[[], Any] | None", "Callable[[], Any] | None", "Callable[[], Any] | None"]
_first: list[_Hooks] = []
_others: list[_Hooks] = []
_forking = threading.local()
#: Who hears of Ctrl-C otherwise, while a fork of the main thread lets it wait.
_hearer: Any = None
#: The process that heard of it meanwhile.
_heard: int | None = None


def at_fork(
    before: Callable[[], Any] | None = None,
    after_in_parent: Callable[[], Any] | None = None,
    after_in_child: Callable[[], Any] | None = None,
    first: bool = False,
) -> None:
    """Do something around each fork of the process, as ``os.register_at_fork``: before it, the last given goes first.

    Parameters
    ----------
    before, after_in_parent, after_in_child : callable, optional
        Without arguments. What is given while a fork waits is done for it, too.
    first : bool
        Go before all others: for what lets end what may need what others hold.

    Examples
    --------
    >>> at_fork(after_in_child=lambda: None)
    """
    (_first if first else _others).append((before, after_in_parent, after_in_child))


def hold_at_fork(lock: Any, patience: float = 30) -> None:
    """Let a lock be held by who forks, so that no child finds it held by who is not there.

    In the child it is free, unless who forked held it before.

    Parameters
    ----------
    lock : threading.RLock
    patience : float
        Seconds that who forks waits for it, for its holder may wait for him; where that was in vain, one second from
        then on.

    Examples
    --------
    >>> import threading
    >>> hold_at_fork(threading.RLock())
    """
    owned, mine, waits = lock._is_owned, threading.local(), [patience]

    def before() -> None:
        if not owned():  # it may be done again, after an interrupt
            mine.now = True
            waits[0] = patience if lock.acquire(timeout=waits[0]) else 1

    def after() -> bool:
        mine.now, ours = False, getattr(mine, "now", False)
        if ours and owned():
            lock.release()
        return bool(owned())

    at_fork(before, after, lambda: after() or lock._at_fork_reinit())


def _run(hooks: Iterable[_Hooks], which: int) -> None:
    rest, f = iter(hooks), None
    while True:
        try:
            for hook in rest:
                if (f := hook[which]) is not None:
                    f()
            return
        except BaseException as e:  # as the interpreter does: the fork goes on
            _tell(e, f)


def _tell(e: BaseException, hook: object) -> None:
    """Tell of what cannot be raised, whatever becomes of that."""
    try:
        # Python's own hook takes what only Python makes.
        what = types.SimpleNamespace(
            exc_type=type(e), exc_value=e, exc_traceback=e.__traceback__, err_msg=None, object=hook
        )
        if sys.unraisablehook is not sys.__unraisablehook__:
            sys.unraisablehook(what)
            return
        print(f"Exception ignored in {hook!r}, in a fork:", file=sys.stderr)
        traceback.print_exception(type(e), e, e.__traceback__)
    except BaseException:  # a hook of the user's, or an interrupt: locks are to be given back
        return


def _main() -> bool:
    """Whether this is the main thread: no other is interrupted."""
    return threading.get_ident() == threading.main_thread().ident


def _note(*_: Any) -> None:
    global _heard
    _heard = os.getpid()


def _interrupt(thread: int) -> None:
    """Interrupt another thread, soon: what the handler raises would be lost in the middle of a fork."""
    time.sleep(0.01)  # a system call that it is just about to begin would not be ended
    signal.pthread_kill(thread, signal.SIGINT)


def _let_interrupts_wait() -> None:
    """Keep Ctrl-C for after the fork: in the middle it would end the hooks, with locks that nobody gives back."""
    global _hearer
    if _main():
        found = signal.getsignal(signal.SIGINT)
        if callable(found) and found is not _note:
            _hearer = found
            signal.signal(signal.SIGINT, _note)


def _hear_interrupts() -> None:
    """Let Ctrl-C be heard again; what came meanwhile, in this process, is heard now."""
    global _heard
    if _main() and signal.getsignal(signal.SIGINT) is _note:
        signal.signal(signal.SIGINT, _hearer)
        heard, _heard = _heard == os.getpid(), None
        if heard:
            _thread.start_new_thread(_interrupt, (threading.get_ident(),))


def _before() -> None:
    _let_interrupts_wait()
    done: list[_Hooks] = []
    _forking.hooks = done
    # While it waits, others may be given, with what another thread has imported.
    while todo := [h for h in (*_others, *_first) if not any(h is d for d in done)]:
        done += todo  # whatever becomes of it: the locks that it took are to be given back
        _run(reversed(todo), 0)


def _after(which: int) -> None:
    _let_interrupts_wait()  # in the child of another thread, which is the main one there
    try:
        _run(_forking.__dict__.pop("hooks", ()), which)
    finally:
        _hear_interrupts()


# The last that registers is the first that is called before a fork. Who is waited for here may log, or give an
# executor something to do: who forks must not hold those locks yet.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=partial(_after, 1), after_in_child=partial(_after, 2))
