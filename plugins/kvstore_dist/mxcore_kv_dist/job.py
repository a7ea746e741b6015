"""Who this process is in a distributed job, and where the servers are: from the environment that launchers set."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from typing import Any

from mxcore.base import MXNetWarning, error
from mxcore.kvstore.launchers import rank_and_size
from mxcore.plugin import fork_safe_lock

from . import rendezvous
from .guests import allow_files
from .plan import bound
from .wire import TRANSPORTS

__all__ = ["Job", "Member", "current_job", "deadline"]

#: Held by who starts or finds the servers: another thread that makes a store at once gets the same.
_finding = fork_safe_lock()


@dataclass(frozen=True)
class Job:
    """A worker's place in a job."""

    rank: int
    workers: int
    #: Of each server host, port, and the name of a socket on its host.
    servers: list[tuple[str, int, str]]
    token: bytes
    #: How long anything may take, in seconds.
    deadline: float = 60.0
    #: 'tcp': talk to servers as if they were on other hosts.
    transport: str = "auto"
    #: Where other workers find this one.
    host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        _check_deadline(self.deadline)

    def hello(self, store: int | str, type: str, sync: bool) -> dict[str, Any]:
        """What a worker says first to a server: who it is, and what store it makes, which is the same for all."""
        return {
            "rank": self.rank,
            "workers": self.workers,
            "store": store,
            "type": type,
            "sync": sync,
            "deadline": self.deadline,
            "bound": bound(),
        }


class Member:
    """A store of one of a job's workers."""

    _job: Job

    @property
    def rank(self) -> int:
        """Number of this worker, from 0."""
        return self._job.rank

    @property
    def num_workers(self) -> int:
        """How many workers share the store."""
        return self._job.workers

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise error(
            TypeError,
            f"a {type(self).__name__} is a worker's connection to others, and can be neither copied nor pickled; "
            "make one in each worker",
        )


#: The longest deadline, in seconds: a year.
_LONGEST = 365 * 24 * 3600.0

_said: set[str] = set()


def _check_deadline(seconds: float) -> float:
    """Refuse what no clock can wait for."""
    if not 0 < seconds <= _LONGEST:
        raise error(
            ValueError,
            f"kvstore: the deadline (MXCORE_KV_DEADLINE) must be a number of seconds above zero, a year at most, not "
            f"{seconds}",
        )
    return seconds


def deadline() -> float:
    """How long anything may take, in seconds: ``MXCORE_KV_DEADLINE``, 60 unless told."""
    text = os.environ.get("MXCORE_KV_DEADLINE", "60")
    try:
        seconds = float(text)
    except ValueError:
        raise error(ValueError, f"MXCORE_KV_DEADLINE={text!r} must be a number") from None
    return _check_deadline(seconds)


def _transport() -> str:
    name = os.environ.get("MXCORE_KV_TRANSPORT", "auto")
    if name not in TRANSPORTS:
        raise error(ValueError, f"MXCORE_KV_TRANSPORT={name!r} is none of {', '.join(map(repr, TRANSPORTS))}")
    return name


def current_job(type: str) -> Job | None:
    """The job of this process, or None outside of one, which is said once.

    Parameters
    ----------
    type : str
        Of the store that asks.
    """
    where = rank_and_size()
    patience = deadline()
    with _finding:
        if where is not None and where[1] > 1 and "MXCORE_KV_SERVERS" not in os.environ:
            os.environ.update(rendezvous.find_servers(*where, patience))
    if "MXCORE_KV_SERVERS" in os.environ and where is not None:
        try:
            servers = [(str(h), int(p), str(name)) for h, p, name in json.loads(os.environ["MXCORE_KV_SERVERS"])]
            if not servers:
                raise ValueError("there are none")
        except (TypeError, ValueError, OverflowError, RecursionError):
            raise error(
                ValueError, "MXCORE_KV_SERVERS must be a JSON list of [host, port, name], as `mxcore launch` sets it"
            ) from None
        allow_files()
        return Job(
            *where,
            servers,
            os.environ.get("MXCORE_KV_TOKEN", "").encode(),
            patience,
            _transport(),
            os.environ.get("MXCORE_KV_HOST", "127.0.0.1"),
        )
    if type not in _said:
        _said.add(type)
        warnings.warn(
            f"kvstore {type!r}: this process is not part of a distributed job, it works as the only worker; "
            "`mxcore launch -n WORKERS python train.py` starts one",
            MXNetWarning,
            stacklevel=4,
        )
    return None
