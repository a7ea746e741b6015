"""Stores of every type, ready to use: those of one process, and those of all workers of a job."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mxcore as mx
from tests.kvstore_dist.jobs import rings, stores

#: Types that keep values: in one process, in one that is the only worker of what would be a job, and in jobs.
LOCAL, LONE = ("local", "device"), ("dist_sync alone", "dist_sync_device alone", "dist_async alone")
DIST = ("dist_sync", "dist_async", "dist_sync_device")
#: Types that only add up.
SUMMING = ("allreduce alone", "allreduce")
JOBS = (*DIST, "allreduce")
KEEPING = (*LOCAL, *LONE, *DIST)
ALL = (*KEEPING, *SUMMING)


@contextmanager
def opened(kind: str, workers: int = 1, servers: int = 1, transport: str = "auto") -> Iterator[list[Any]]:
    """The stores of all workers, one for each."""
    if kind == "allreduce":
        with rings(workers, transport) as made:
            yield made
    elif kind in DIST:
        with stores(workers, servers, type=kind, transport=transport) as made:
            yield list(made)
    else:
        assert workers == 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is the only worker
            store = mx.kv.create(kind.removesuffix(" alone"))
        yield [store]
