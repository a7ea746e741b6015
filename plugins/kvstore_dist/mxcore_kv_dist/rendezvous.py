"""Servers for programs that another launcher started (torchrun, Slurm, MPI): rank 0 has them, the others find them.

Ray runs in a process beside rank 0 (see `sidecar`), and ends with it: the program itself stays free of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import subprocess
import sys

from mxcore.base import error
from mxcore.plugin import Uninterrupted

from . import board, sidecar
from .cluster import require_ray
from .lifetime import enlist

__all__ = ["find_servers"]

#: What tells jobs on one host apart: torchrun, Slurm, PMIx and Open MPI. All of a row must be there.
_IDENTITIES = (
    ("MASTER_ADDR", "MASTER_PORT"),
    ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ("PMIX_NAMESPACE",),
    ("OMPI_MCA_ess_base_jobid",),
)
#: How long Ray may take to start or to be joined, and what was started to end, beyond the deadline, in seconds.
_START, _GRACE = 60.0, 10.0


def find_servers(rank: int, workers: int, deadline: float) -> dict[str, str]:
    """Start the servers of this job, or find them.

    Parameters
    ----------
    rank, workers : int
    deadline : float
        In seconds.

    Returns
    -------
    dict of str to str
        What `mxcore launch` would have set in the environment.

    Raises
    ------
    MXNetError
        If they cannot be had, with what to do about it.
    """
    require_ray("a job of several workers")
    name = _job_name()
    if rank == 0:
        return _parsed(_host(deadline, "host", name, str(workers), str(_servers_wanted()), str(deadline)).answer())
    if os.environ.get("RAY_ADDRESS"):
        finder = _Sidecar(deadline, "find", name, str(deadline))
        try:
            return _parsed(finder.answer())
        finally:
            finder.end()
    return _parsed(board.ask_host(name, deadline))


def _host(deadline: float, *args: str) -> _Sidecar:
    """The process beside rank 0; that of an attempt which was interrupted goes on, for others may know of it."""
    with Uninterrupted():
        if not (_hosts and _hosts[-1].awaited):
            _hosts.append(_Sidecar(deadline, *args))
            enlist(_hosts[-1])
    return _hosts[-1]


class _Sidecar:
    """A process beside the program that takes no notice of signals to it, and ends with its input.

    Parameters
    ----------
    deadline : float
        In seconds.
    *args
        Of `sidecar`.
    """

    def __init__(self, deadline: float, *args: str) -> None:
        self._deadline = deadline
        with Uninterrupted():
            read, write = os.pipe()
            self._said = os.fdopen(read)
            with open(write, "wb"):
                self._process = subprocess.Popen(
                    [sys.executable, "-m", sidecar.__name__, str(write), *args],
                    stdin=subprocess.PIPE,
                    stdout=2,  # Ray has things to say
                    pass_fds=[write],
                    text=True,
                    start_new_session=True,
                )

    @property
    def awaited(self) -> bool:
        """Whether it is there, and nobody has heard its answer."""
        return not self._said.closed and self._process.poll() is None

    def answer(self) -> str:
        """What it says in its first line; who is interrupted may ask again."""
        patience = self._deadline + _START
        poll = select.poll()  # `select.select` takes the first 1024 descriptors only
        poll.register(self._said, select.POLLIN)
        came = poll.poll(1000 * patience)
        with Uninterrupted(), self._said as said:
            line = said.readline() if came else ""
        if not came:
            self._process.kill()
            raise error(TimeoutError, f"kvstore: Ray has neither started nor been joined within {patience:g} s")
        if not line:
            status = self._process.wait(_GRACE)
            raise error(ConnectionError, f"kvstore: the process that runs Ray has ended with status {status}")
        return line

    def end(self, word: str = "") -> None:
        """Close its input, perhaps after a word, and wait for its end."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(word)
            self._process.stdin.close()
            self._process.wait(self._deadline + _GRACE)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            pass  # it ends with this process

    def close(self, failure: str = "") -> None:
        """End it when the other workers have left; at once if the program has failed."""
        self.end("" if failure else sidecar.WAIT)

    def forked(self) -> None:
        """It lives as long as somebody can write to it, which is the parent."""
        if self._process.stdin is not None:
            self._process.stdin.close()


#: The processes beside rank 0.
_hosts: list[_Sidecar] = []


def _parsed(text: str) -> dict[str, str]:
    answer: dict[str, str] = json.loads(text)
    if "error" in answer:
        raise error(ConnectionError, f"kvstore: {answer['error']}")
    return answer


def _servers_wanted() -> int:
    text = os.environ.get("MXCORE_KV_NUM_SERVER", "1")
    if not text.isdecimal() or int(text) < 1:
        raise error(ValueError, f"MXCORE_KV_NUM_SERVER={text!r} must be a number of servers")
    return int(text)


def _job_name() -> str:
    """A name of this job that all of its workers know, and no other job has."""
    for names in _IDENTITIES:
        if all(n in os.environ for n in names):
            text = "\n".join(f"{n}={os.environ[n]}" for n in names)
            return hashlib.sha256(text.encode()).hexdigest()[:16]
    raise error(
        ValueError,
        "kvstore: there are ranks, but nothing that tells this job from others; set MASTER_ADDR and MASTER_PORT, the "
        "same for all workers, as torchrun does, or start them by `mxcore launch -n WORKERS python train.py`",
    )
