"""Sums over workers that stand in a ring, each of whom talks to the next one only.

Each array is cut into as many chunks as there are workers. A chunk goes round once and is added up on its way, then
once more, complete, so that each worker sends and receives twice the bytes of the array, however many workers there
are (P. Patarasu and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009).

On one host a worker reads its neighbour's chunks in memory that both see; else they come over the network.
"""

from __future__ import annotations

import queue
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mxcore.base import error
from mxcore.plugin import Job, Workers, begin, let_through

from . import wire
from .guests import Guests
from .memory import Segment, open_segment
from .peer import kind_of, told

__all__ = ["ROOM", "Ring"]

#: Bytes of arrays that go round together, at most. There are two such rooms: when the sums in one are complete, all
#: workers have read what was in the other.
ROOM = 8 << 20
#: How often one looks whether a neighbour that has connected is known by now, in seconds.
_POLL = 0.01
#: How long a neighbour may take to hear a last word, in seconds.
_FAREWELL = 1.0


class Ring:
    """A worker's place in the ring.

    Parameters
    ----------
    rank, workers : int
    token : bytes
        What neighbours must know.
    host : str
        Where to listen.
    deadline : float
        How long to wait for a neighbour, in seconds.
    transport : {'auto', 'tcp'}
    last_heard : callable
        Says of a rank when it was heard of.
    """

    def __init__(
        self,
        rank: int,
        workers: int,
        token: bytes,
        host: str,
        deadline: float,
        transport: str,
        last_heard: Callable[[int], str],
    ) -> None:
        self.rank, self.workers, self._last_heard = rank, workers, last_heard
        self._before = (rank - 1) % workers
        self._token, self._deadline, self._transport = token, deadline, transport
        self._listener = wire.Listener(host)
        #: Where the neighbour finds this worker.
        self.address = self._listener.address
        self._segment = Segment(2 * ROOM, f"what goes round from rank {rank}")
        self._mine = np.frombuffer(self._segment.memory, np.uint8).reshape(2, ROOM)
        self._out: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._sender = threading.Thread(target=self._send, name="mxcore-kv-ring", daemon=True)
        #: Whether nobody waits any more for the worker before this one.
        self._abandoned = False

    def join(self, addresses: Sequence[Any], store: int) -> None:
        """Connect to the next worker, and let the one before connect.

        Parameters
        ----------
        addresses : sequence of (str, int, str)
            By rank.
        store : int
            Which of the job's stores this is.
        """
        hello = {"ring": store, "rank": self.rank}
        accepted = Job(lambda: self._accept(hello))
        with Workers(1, "mxcore-kv-ring-door") as workers:  # while this worker connects, the one before it does
            try:
                workers.put(accepted)
                self._right = wire.connect(
                    addresses[(self.rank + 1) % self.workers], self._token, self._transport, self._deadline
                )
                local = self._right.local
                self._right.send({**hello, "files": int(local)}, (), [self._segment.file] if local else ())
                self._left: wire.Channel = accepted.result()
            except BaseException:
                self._abandoned = True
                raise
        for channel in (self._right, self._left):
            channel.settle(self._deadline)
        self._segment.close()
        self._listener.close()

    def begin(self) -> None:
        """Send from now on."""
        begin(self._sender, "kvstore: the thread that sends what goes round", "use fewer stores")

    def _accept(self, hello: dict[str, Any]) -> wire.Channel:
        """The connection of the worker before this one; strangers are sent away, and nobody waits for them."""
        wanted = hello["ring"], self._before
        found: queue.SimpleQueue[tuple[wire.Channel, dict[str, Any]]] = queue.SimpleQueue()
        guests = Guests("mxcore-kv-ring-guest")
        end = time.monotonic() + self._deadline

        def greet(sock: socket.socket) -> None:
            try:
                channel = wire.accept(sock, self._token)
                said, _ = channel.receive()
                if (said.get("ring"), said.get("rank")) == wanted:
                    guests.leave(sock)
                    found.put((channel, said))
                    return
            except Exception as e:  # whatever a stranger does
                let_through(e)
            sock.close()
            guests.leave(sock)

        poll = select.poll()  # `select.select` takes the first 1024 descriptors only
        listening = {sock.fileno(): sock for sock in self._listener.sockets}
        for descriptor in listening:
            poll.register(descriptor, select.POLLIN)
        try:
            while found.empty():
                if self._abandoned or time.monotonic() >= end:
                    raise error(
                        TimeoutError, f"kvstore: rank {self._before} has not connected to rank {self.rank} in time"
                    )
                for descriptor, _ in poll.poll(1000 * _POLL):
                    try:
                        sock, _ = listening[descriptor].accept()
                    except OSError as e:  # out of descriptors, which may pass
                        let_through(e)
                        time.sleep(_POLL)
                        continue
                    guests.greet(sock, greet)
        finally:
            guests.close()
        channel, said = found.get()
        if said["files"]:
            memory = open_segment(channel.files(1)[0], 2 * ROOM)
            self._theirs = np.frombuffer(memory, np.uint8).reshape(2, ROOM)
        return channel

    # -- messages ----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Send what is put: a thread of its own, for if all workers sent before they received, none would go on."""
        while (item := self._out.get()) is not None:
            try:
                self._right.send(*item)
            except wire.Closed:
                return  # who receives learns why

    def tell(self, header: dict[str, Any], bodies: Sequence[Any] = ()) -> None:
        """Send a message to the next worker."""
        self._out.put((header, bodies))

    def coming(self, seconds: float) -> bool:
        """Whether a message of the worker before this one comes within so many seconds."""
        return self._left.coming(seconds)

    def hear(self) -> dict[str, Any]:
        """Wait for a message of the worker before this one, until the deadline."""
        with self._hearing():
            self._left.timeout(self._deadline)
            header, _ = self._left.receive()
        if "failed" in header:
            raise told(*header["failed"])
        return header

    @contextmanager
    def _hearing(self) -> Iterator[None]:
        """Say of what goes wrong with the worker before this one who that is."""
        try:
            yield
        except wire.Closed as e:
            raise error(ConnectionError, f"kvstore: lost rank {self._before}: {e}") from None
        except TimeoutError:
            raise self.late() from None

    def late(self) -> Exception:
        """The error of who has waited too long."""
        return error(
            TimeoutError,
            f"kvstore: rank {self.rank} has waited {self._deadline:g} s for {self._last_heard(self._before)} in the "
            "ring of allreduce",
        )

    # -- sums --------------------------------------------------------------------------------------------------------

    def room(self, number: int, dtype: Any, size: int) -> np.ndarray[Any, Any]:
        """Memory for elements of what goes round next."""
        dtype = np.dtype(dtype)
        return self._mine[number % 2, : size * dtype.itemsize].view(dtype)

    def add_up(self, number: int, dtype: Any, size: int) -> None:
        """Let the elements in a room be the sums of those of all workers.

        Parameters
        ----------
        number : int
            Counts the rooms that went round.
        dtype : numpy.dtype
        size : int
            How many elements there are, the same in all workers.
        """
        n, rank = self.workers, self.rank
        mine = self.room(number, dtype, size)
        cuts = [size * i // n for i in range(n + 1)]
        chunks = [slice(a, b) for a, b in zip(cuts, cuts[1:])]
        spare = np.empty(0 if self._left.local else max(s.stop - s.start for s in chunks), dtype)
        for step in range(2 * (n - 1)):
            gathering = step >= n - 1
            self._send_chunk(mine, chunks[(rank - step) % n])
            into = mine[chunks[(rank - step - 1) % n]]
            self.hear()
            came = self._receive_chunk(number, dtype, size, chunks[(rank - step - 1) % n], into if gathering else spare)
            if gathering:
                if came is not into:
                    np.copyto(into, came)
            else:
                np.add(into, came, out=into)

    def _send_chunk(self, mine: np.ndarray[Any, Any], chunk: slice) -> None:
        self.tell({}, () if self._right.local else (mine[chunk],))

    def _receive_chunk(
        self, number: int, dtype: Any, size: int, chunk: slice, memory: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        """The neighbour's chunk: in its own memory, or received into some."""
        if self._left.local:
            dtype = np.dtype(dtype)
            room: np.ndarray[Any, Any] = self._theirs[number % 2, : size * dtype.itemsize].view(dtype)
            return room[chunk]
        memory = memory[: chunk.stop - chunk.start]
        with self._hearing():
            self._left.into(memory)
        return memory

    def close(self, why: BaseException | None = None) -> None:
        """Leave; the neighbours hear why, if something went wrong."""
        if why is not None:
            self.tell({"failed": [kind_of(why), str(why)]})
        self._out.put(None)
        if self._sender.ident is not None:
            self._sender.join(_FAREWELL)
        self._right.close()
        self._left.close()
