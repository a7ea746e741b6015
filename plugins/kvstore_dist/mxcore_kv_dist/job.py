"""Who this process is in a distributed job, and where the servers are: from the environment that launchers set."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any, NamedTuple

from mxcore.base import MXNetWarning, error

from . import rendezvous

__all__ = ["Job", "Member", "current_job", "number"]


class Job(NamedTuple):
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

    def hello(self, store: int | str, type: str, sync: bool) -> dict[str, Any]:
        """What a worker says first to a server: who it is, and what store it makes, which is the same for all."""
        return {
            "rank": self.rank,
            "workers": self.workers,
            "store": store,
            "type": type,
            "sync": sync,
            "deadline": self.deadline,
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


#: What launchers call rank and number of workers: mxcore and torchrun, MXNet, Slurm, Open MPI, MPICH and its kin.
_NAMES = (
    ("RANK", "WORLD_SIZE"),
    ("DMLC_WORKER_ID", "DMLC_NUM_WORKER"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)

_said: set[str] = set()


def number(name: str, default: float | None = None) -> float:
    """A number of the environment."""
    text = os.environ.get(name)
    if text is None and default is not None:
        return default
    try:
        return float(text or "")
    except ValueError:
        raise error(ValueError, f"{name}={text!r} must be a number") from None


def place() -> tuple[int, int] | None:
    """Rank and number of workers, if a launcher told them."""
    for rank_name, size_name in _NAMES:
        if rank_name in os.environ and size_name in os.environ:
            rank, size = int(number(rank_name)), int(number(size_name))
            if not 0 <= rank < size:
                raise error(ValueError, f"{rank_name}={rank} is no rank among {size_name}={size} workers")
            return rank, size
    if "DMLC_ROLE" in os.environ:
        raise error(
            RuntimeError,
            f"kvstore: DMLC_ROLE={os.environ['DMLC_ROLE']} is set, but no rank: MXNet's own launcher starts servers "
            "and schedulers of its own; `mxcore launch -n WORKERS -s SERVERS python train.py` takes its place",
        )
    return None


def current_job(type: str) -> Job | None:
    """The job of this process, or None outside of one, which is said once.

    Parameters
    ----------
    type : str
        Of the store that asks.
    """
    where = place()
    deadline = number("MXCORE_KV_DEADLINE", 60.0)
    if where is not None and where[1] > 1 and "MXCORE_KV_SERVERS" not in os.environ:
        os.environ.update(rendezvous.find_servers(*where, deadline))
    if "MXCORE_KV_SERVERS" in os.environ and where is not None:
        try:
            servers = [(str(h), int(p), str(name)) for h, p, name in json.loads(os.environ["MXCORE_KV_SERVERS"])]
        except (TypeError, ValueError):
            raise error(
                ValueError, "MXCORE_KV_SERVERS must be a JSON list of [host, port, name], as `mxcore launch` sets it"
            ) from None
        return Job(
            *where,
            servers,
            os.environ.get("MXCORE_KV_TOKEN", "").encode(),
            deadline,
            os.environ.get("MXCORE_KV_TRANSPORT", "auto"),
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
