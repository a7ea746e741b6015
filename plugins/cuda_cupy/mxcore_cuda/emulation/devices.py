"""The emulated devices: which is active in a thread, the streams of each, new memory."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .memory import Block, OutOfMemoryError, used
from .streams import Event, Stream

__all__ = ["Queues", "active", "give_back", "here", "in_want", "keep_blocks", "new_block", "pool", "queues", "total"]


class _Here(threading.local):
    """What each thread has chosen."""

    index = 0
    pool: list[Block] | None = None


here = _Here()
#: What an allocation asks for memory where there is none; the driver's.
in_want: list[Callable[[int], None]] = []
_queues: dict[int, Queues] = {}


class Queues:
    """The streams of a device: for computing, and one each way for copies."""

    def __init__(self) -> None:
        self.compute, self.incoming, self.outgoing = Stream(), Stream(), Stream()

    def order(self, number: int | None) -> None:
        """Let a consumer's stream wait for the compute stream; -1 wants nothing, the default stream is the host's."""
        streams = {id(s): s for q in _queues.values() for s in (q.compute, q.incoming, q.outgoing)}
        if number == -1 or number == id(self.compute):
            return
        if number is None or number in (1, 2):
            self.compute.run()
        elif number in streams:
            streams[number].wait(Event(self.compute))
        else:
            raise ValueError(f"cudaErrorInvalidResourceHandle: there is no stream {number}")


def queues(index: int) -> Queues:
    """The streams of a device."""
    found = _queues.get(index)
    return found or _queues.setdefault(index, Queues())


def active() -> int:
    """The device that the calling thread works on."""
    return here.index


def new_block(shape: tuple[int, ...], dtype: Any, index: int) -> Block:
    """Memory for an array."""
    size = np.dtype(dtype).itemsize
    for n in shape:
        size *= n
    if size > total() - used(index):
        if pool() is None:
            in_want[0](index)
        if size > total() - used(index):
            raise OutOfMemoryError(
                f"Out of memory allocating {size:,} bytes (allocated so far: {used(index):,} bytes)."
            )
    made = Block(size, index, queues(index).compute)
    kept = pool()
    if kept is not None:
        kept.append(made)
    return made


def total() -> int:
    """Bytes of a device, as MXCORE_CUDA_EMULATE_MEMORY says."""
    return int(os.environ.get("MXCORE_CUDA_EMULATE_MEMORY", 16 << 30))


def give_back(index: int) -> None:
    """Get back what nobody refers to: it is, once the stream got there."""
    gc.collect()
    queues(index).compute.advance()


def keep_blocks(where: list[Block] | None) -> None:
    """Let a list keep the memory that this thread allocates from now on, as the pool of a graph does."""
    here.pool = where


def pool() -> list[Block] | None:
    """What keeps the memory that this thread allocates, while it captures a graph."""
    return here.pool
