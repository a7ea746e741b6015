"""Runs a command and leaves nothing of it behind: a program of its own, which needs the standard library only.

``python keeper.py FOLDER COMMAND ...`` runs the command until it ends, or until the standard input does: whoever
started it, and holds the other end, is gone then, whatever ended them. In either case all processes that descend from
the command end, and the folder is removed, unless it is ''. Each byte that comes in is a signal for the command. The
status is that of the command.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading

__all__ = ["keep"]

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
#: What a shell says of a command that cannot be run.
_CANNOT_RUN = 127


_libc = ctypes.CDLL(None)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        _libc.prctl(option, value, 0, 0, 0)


def _begin() -> None:
    """In the command's process: signals are as a shell would have them, and it ends with its parent."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass  # it has ended


def _listen(group: int) -> None:
    """Hand on the signals that come in, until nobody can send any more."""
    while byte := os.read(0, 1):
        _signal(group, byte[0])
    _signal(group, signal.SIGKILL)


def _children() -> list[int]:
    """Processes whose parent is this one: those that lost theirs are, too."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as f:
                    # The name in parentheses may hold anything.
                    if int(f.read().rpartition(b")")[2].split()[1]) == os.getpid():
                        found.append(int(name))
            except OSError:
                pass
    return found


def _sweep() -> None:
    """End all that descends from this process: whoever loses its parent becomes a child of ours."""
    while True:
        for child in _children():
            os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def keep(folder: str, command: list[str]) -> int:
    """Run a command as this module says.

    Parameters
    ----------
    folder : str
        Removed at the end.
    command : list of str

    Returns
    -------
    int
        Exit status, or minus the number of the signal that ended the command.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are for the command
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        return _run(command)
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str]) -> int:
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_begin)
    except OSError as e:
        print(f"{command[0]} cannot be run: {e.strerror}", file=sys.stderr)
        return _CANNOT_RUN
    threading.Thread(target=_listen, args=(child.pid,), daemon=True).start()
    status = child.wait()
    if sys.platform == "linux":
        _sweep()
    else:
        _signal(child.pid, signal.SIGKILL)
    return status


def _end_as(status: int) -> None:
    """End this process as another one ended."""
    if status < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    _end_as(keep(sys.argv[1], sys.argv[2:]))
