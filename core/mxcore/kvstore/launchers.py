"""Who this process is among those that a launcher started: what launchers say in the environment."""

from __future__ import annotations

import os

from ..base import error
from ..limits import whole_number

__all__ = ["rank_and_size"]

#: What launchers call rank and number of workers: mxcore and torchrun, MXNet, Slurm, Open MPI, MPICH and its kin.
NAMES = (
    ("RANK", "WORLD_SIZE"),
    ("DMLC_WORKER_ID", "DMLC_NUM_WORKER"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)


def rank_and_size() -> tuple[int, int] | None:
    """Rank of this process and number of workers, or None if no launcher has told them.

    Raises
    ------
    MXNetError
        (also ValueError) if they make no sense, or (also RuntimeError) if MXNet's own launcher is at work.

    Examples
    --------
    >>> rank_and_size() is None
    True
    """
    for rank_name, size_name in NAMES:
        if rank_name in os.environ and size_name in os.environ:
            rank, size = whole_number(rank_name, 0, least=0), whole_number(size_name, 1)
            if rank >= size:
                raise error(ValueError, f"{rank_name}={rank} is no rank among {size_name}={size} workers")
            return rank, size
    if "DMLC_ROLE" in os.environ:
        raise error(
            RuntimeError,
            f"kvstore: DMLC_ROLE={os.environ['DMLC_ROLE']} is set, but no rank: MXNet's own launcher starts servers "
            "and schedulers of its own; `mxcore launch -n WORKERS -s SERVERS python train.py` takes its place",
        )
    return None
