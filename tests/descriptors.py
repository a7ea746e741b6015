"""Which descriptors this process has open."""

import contextlib
import os

HERE = "/proc/self/fd"
#: Whether the system tells.
TOLD = os.path.isdir(HERE)


def open_descriptors():
    """What each open descriptor is of, by its number, but the times of OpenMP's threads.

    Where others want the cores, `mxcore_cpu.waiting` begins at any moment to look at these.
    """
    found = {}
    for fd in os.listdir(HERE) if TOLD else ():
        with contextlib.suppress(OSError):  # that of this list itself is closed by now
            found[int(fd)] = os.readlink(f"{HERE}/{fd}")
    return {fd: what for fd, what in found.items() if not what.endswith("/schedstat")}


def not_there(before):
    """What is open and was not, a text."""
    return ", ".join(f"{fd}: {what}" for fd, what in open_descriptors().items() if before.get(fd) != what)
