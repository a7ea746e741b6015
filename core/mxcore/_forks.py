"""What is done around forks, in an order that does not depend on who was imported when."""

from __future__ import annotations

import _thread
import concurrent.futures.thread  # noqa: F401  # it holds a lock over forks, as logging does: see the last lines
import logging  # noqa: F401
import os
import signal
import sys
import threading
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
    for hook in hooks:
        while (f := hook[which]) is not None:
            try:
                f()
            except KeyboardInterrupt:
                if which == 0:  # what is waited for still is; the user is heard after the fork
                    _forking.interrupted = True
                    continue
            except BaseException as e:  # as the interpreter does: the fork goes on
                what = types.SimpleNamespace(
                    exc_type=type(e), exc_value=e, exc_traceback=e.__traceback__, err_msg=None, object=f
                )
                sys.unraisablehook(what)
            break


def _before() -> None:
    done: list[_Hooks] = []
    _forking.hooks, _forking.interrupted = done, False
    # While it waits, others may be given, with what another thread has imported.
    while todo := [h for h in (*_others, *_first) if not any(h is d for d in done)]:
        _run(reversed(todo), 0)
        done += todo


def _after(which: int) -> None:
    _run(_forking.__dict__.pop("hooks", ()), which)
    if which == 1 and _forking.__dict__.pop("interrupted", False):
        # Here it would be lost. Only the main thread is interrupted, and this is it.
        _thread.start_new_thread(signal.pthread_kill, (threading.get_ident(), signal.SIGINT))


# The last that registers is the first that is called before a fork. Who is waited for here may log, or give an
# executor something to do: who forks must not hold those locks yet.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=partial(_after, 1), after_in_child=partial(_after, 2))
