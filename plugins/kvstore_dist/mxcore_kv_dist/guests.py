"""Guests: who has connected to this process and has not proved yet that it belongs to the job.

Each costs a descriptor and a thread, of which a process has only so many: idle strangers would take them all. So there
is a bound for the whole process, and where it is reached the oldest guest goes, for workers prove themselves at once.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from mxcore.plugin import at_fork, suppress

from .wire import shut

try:
    import resource
except ImportError:  # not on POSIX: there is no such limit
    resource = None  # type: ignore[assignment]

__all__ = ["Guests", "allow_files"]

#: How many guests a process has at most, and which part of its open files they may be.
_MOST, _SHARE = 256, 4
#: How long a guest has in any case, in seconds: many workers may come at once, and hosts be busy.
_GRACE = 1.0
#: How long a guest that is sent away may take to go before it is told again, in seconds.
_POLL = 0.01
#: How many open files a process asks for: not all that it might have, for some programs close every number that they
#: could have. The last one is the most that macOS gives to whoever may have any number.
_FILES = (65536, 10240)


class Guests:
    """The guests of one listener. The bound is that of the process, whatever listens in it.

    Parameters
    ----------
    name : str
        Of the threads in which they are greeted.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._closed = False

    def __len__(self) -> int:
        with _changed:
            return len(self._mine())

    def _mine(self) -> list[socket.socket]:
        return [sock for sock, (guests, _) in _all.items() if guests is self]

    def greet(self, sock: socket.socket, run: Callable[[socket.socket], object]) -> None:
        """Let a function talk with a guest in a thread, as soon as there is room, for which older guests are sent away.

        Parameters
        ----------
        sock : socket.socket
            Connected.
        run : callable
            Takes `sock`, and has to call `leave` when the guest has proved itself, or is gone and `sock` is closed.
        """
        with _changed:
            while len(_all) >= _bound() and not self._closed:
                oldest, (_, since) = next(iter(_all.items()))
                rest = since + _GRACE - time.monotonic()
                if rest <= 0:
                    shut(oldest)
                _changed.wait(max(rest, _POLL))
            if self._closed:
                sock.close()
                return
            _all[sock] = self, time.monotonic()
        try:
            threading.Thread(target=run, args=(sock,), name=self._name, daemon=True).start()
        except RuntimeError:  # there can be no more threads, now
            sock.close()
            self.leave(sock)

    def leave(self, sock: socket.socket) -> None:
        """Count somebody no more."""
        with _changed:
            _all.pop(sock, None)
            _changed.notify_all()

    def expire(self, before: float) -> None:
        """Send away who has come before a time of `time.monotonic`."""
        with _changed:
            for sock in self._mine():
                if _all[sock][1] < before:
                    shut(sock)

    def close(self) -> None:
        """Send all away, and whoever comes."""
        with _changed:
            self._closed = True
            for sock in self._mine():
                shut(sock)
            _changed.notify_all()


#: Whose guest somebody is, and since when; the oldest first.
_all: dict[socket.socket, tuple[Guests, float]] = {}
_changed = threading.Condition()


def _bound() -> int:
    if resource is None:
        return _MOST
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if files == resource.RLIM_INFINITY else max(1, min(_MOST, files // _SHARE))


def allow_files() -> None:
    """Let this process open as many files as it may without asking anybody: connections and shared memory are files.

    The usual limit, 1024, is there for programs that wait by `select`; they have no use for more in any case.
    """
    if resource is None:
        return
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in _FILES:
        wanted = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        if files == resource.RLIM_INFINITY or files >= wanted:
            return
        with suppress(OSError, ValueError):  # more than the system gives to one process
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
            return


def _give_up() -> None:
    """In a forked child: they are its parent's guests."""
    global _changed
    _changed = threading.Condition()
    for sock in _all:
        sock.close()
    _all.clear()


at_fork(after_in_child=_give_up)
