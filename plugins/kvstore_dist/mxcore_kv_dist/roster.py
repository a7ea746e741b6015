"""Who takes part in a store, as a server sees it, and who is gone."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from .peer import Peer, Refused

__all__ = ["Roster"]


class _Gone(NamedTuple):
    """A worker that is not here any more: since when, when it was last heard of, and why."""

    since: float
    heard: float
    why: str

    def text(self, rank: int) -> str:
        now = time.monotonic()
        return f"rank {rank} {self.why} {now - self.since:.1f} s ago (last heard of {now - self.heard:.1f} s ago)"


class Roster:
    """The workers of a store.

    Parameters
    ----------
    type : str
        Of the store.
    sync : bool
        Whether none can be done without.
    workers : int
        How many there are to be.

    Attributes
    ----------
    lock : threading.RLock
        Held by whoever decides something by who is here.
    peers : dict of int to Peer
        By rank.
    lost, left : dict of int to tuple
        Those whose connection ended without a word or with a failure, and those that said goodbye.
    """

    def __init__(self, type: str, sync: bool, workers: int) -> None:
        self.type, self.sync, self.workers = type, sync, workers
        self.lock = threading.RLock()
        self.peers: dict[int, Peer] = {}
        self.lost: dict[int, _Gone] = {}
        self.left: dict[int, _Gone] = {}

    def check(self, rank: int) -> None:
        """Refuse a rank that cannot come in."""
        if rank in self.peers:
            raise Refused(f"rank {rank} is taken: another process has joined the job under it, and is still there")
        if self.sync and rank in self.lost:
            raise Refused(f"rank {rank} was lost, and a synchronous job cannot go on; start it again")

    def add(self, peer: Peer) -> None:
        """Let a worker in, perhaps again."""
        self.peers[peer.rank] = peer
        peer.returned = bool(self.lost.pop(peer.rank, None) or self.left.pop(peer.rank, None))
        peer.behind = peer.returned and not self.sync

    def remove(self, peer: Peer, why: str) -> None:
        """Note that a worker is gone."""
        del self.peers[peer.rank]
        gone = self.left if peer.goodbye == "" else self.lost
        gone[peer.rank] = _Gone(time.monotonic(), peer.heard, why)

    @property
    def waited_for(self) -> int:
        """How many workers others wait for."""
        return self.workers - (0 if self.sync else len(self.lost) + len(self.left))

    def loss(self) -> str:
        """Why a synchronous job cannot go on: workers were lost, or else have left."""
        gone = self.lost or self.left
        ranks = ", ".join(gone[rank].text(rank) for rank in sorted(gone))
        return f"{ranks}; a {self.type} job cannot go on without it"

    def heard(self, ranks: list[int], now: float) -> str:
        """Ranks, and when they were heard of."""

        def of(rank: int) -> str:
            if rank in self.peers:
                return f"rank {rank} (last heard of {now - self.peers[rank].heard:.1f} s ago)"
            gone = self.lost.get(rank) or self.left.get(rank)
            return gone.text(rank) if gone else f"rank {rank} (which never joined)"

        with self.lock:
            return ", ".join(map(of, ranks))

    def dead(self, timeout: float) -> int:
        """How many workers were lost, or were not heard of for so many seconds."""
        now = time.monotonic()
        with self.lock:
            return len(self.lost) + sum(now - peer.heard > timeout for peer in self.peers.values())
