"""The values of one store on one server: rounds of pushes, updates, and who waits for what.

In a synchronous store a round of a value ends when every worker has pushed it once; pulls see the rounds that their
worker took part in. No worker pushes a value again before it has read what it pulled, so that values can be read from
the server's own memory: the next round cannot begin. In an asynchronous store each push is a round, and readers get
copies.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mxcore import nd
from mxcore import optimizer as opt
from mxcore.base import MXNetError
from mxcore.context import cpu
from mxcore.kvstore.values import add, pick_rows
from mxcore.optimizer import config

from . import encodings
from .memory import Segment, layout, view
from .plan import Plan
from .wire import Channel, Closed

if TYPE_CHECKING:
    from .server import Server

__all__ = ["Peer", "Refused", "Space"]


class Refused(Exception):
    """What a worker asks for cannot be; it is told why."""


class Peer:
    """A worker, as a server sees it.

    Messages to it go through a queue: one that has stopped to read keeps nobody else waiting.
    """

    def __init__(self, space: Space, rank: int, channel: Channel) -> None:
        self.space, self.rank, self.channel = space, rank, channel
        self.heard = time.monotonic()
        self.said_goodbye = False
        #: Slot number -> memory where pushes of this worker lie, and from where it reads, where that is its own.
        self.pushed: dict[int, np.ndarray[Any, Any]] = {}
        self.pulled: dict[int, np.ndarray[Any, Any]] = {}
        #: Slots whose memory for pushes holds one that is not added up yet.
        self.full: set[int] = set()
        self._out: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._send, name=f"mxcore-to-rank-{rank}", daemon=True).start()

    def tell(self, header: dict[str, Any], bodies: Iterable[Any] = (), files: Iterable[Segment] = ()) -> None:
        """Put a message into the queue; files are closed when they were sent."""
        self._out.put((header, list(bodies), list(files)))

    def end(self) -> None:
        """Send nothing more."""
        self._out.put(None)

    def _send(self) -> None:
        while (item := self._out.get()) is not None:
            header, bodies, files = item
            try:
                self.channel.send(header, bodies, [f.file for f in files])
            except Closed:
                pass  # its own thread learns that as well
            for f in files:
                f.close()


class _Slot:
    """The part of a value that lies here."""

    def __init__(self, number: int, key: Any, spec: list[Any], workers: int) -> None:
        self.number, self.key = number, key
        self.start, self.stop, self.shape, self.dtype, self.stype = spec
        self.size = self.stop - self.start
        self.lock = threading.Lock()
        self.value: np.ndarray[Any, Any]
        self.array: Any = None
        #: For each worker what it has pushed and is not added up yet, how often it has pushed; rounds that are over.
        self.inbox: list[deque[Any]] = [deque() for _ in range(workers)]
        self.pushes = [0] * workers
        self.rounds = 0
        #: Pulls that wait: who, for which round, since when, and for which rows.
        self.waiting: list[tuple[Peer, int, float, Any]] = []
        self.failed: str | None = None

    def own(self, memory: np.ndarray[Any, Any]) -> None:
        """Keep the value in memory."""
        self.value = memory
        self.array = _over(memory, self.shape)
        if self.stype == "row_sparse":
            rows = nd.arange(self.shape[0], dtype="int64")
            self.array = nd.sparse.row_sparse_array((self.array.copy(), rows), shape=tuple(self.shape))


def _over(memory: np.ndarray[Any, Any], shape: Sequence[int]) -> Any:
    """An NDArray over memory, which stays writable for NumPy, too."""
    return nd.from_numpy(memory.view().reshape(shape))


class _Replies:
    """What the handling of one message lets be said, by worker: each gets one message."""

    def __init__(self) -> None:
        self._said: dict[Peer, tuple[dict[str, Any], list[Any]]] = {}

    def add(self, peer: Peer, what: str, item: Any, *bodies: Any) -> None:
        header, all_bodies = self._said.setdefault(peer, ({}, []))
        header.setdefault(what, []).append(item)
        all_bodies.extend(bodies)

    def send(self) -> None:
        for peer, (header, bodies) in self._said.items():
            peer.tell(header, bodies)


class Space:
    """The values of one store on one server.

    Parameters
    ----------
    server : Server
    hello : dict
        The first message of the first worker: it says how the store works.
    """

    def __init__(self, server: Server, hello: dict[str, Any]) -> None:
        self.server = server
        self.type: str = hello["type"]
        self.program: str = hello["program"]
        self.sync: bool = hello["sync"]
        self.deadline = float(hello["deadline"])
        self.workers = server.workers
        self._lock = threading.RLock()
        self._peers: dict[int, Peer] = {}
        self._lost: dict[int, float] = {}
        self._slots: list[_Slot] = []
        self._by_key: dict[Any, _Slot] = {}
        self._plan = Plan(server.servers)
        self._placed: dict[Any, Any] = {}
        self._meetings: dict[str, dict[Peer, tuple[int, float, dict[str, Any]]]] = {}
        self._updating = threading.Lock()
        self._updater: opt.Updater | None = None
        self._optimizers = 0  # how many were set

    # -- who is here -------------------------------------------------------------------------------------------------

    def enter(self, hello: dict[str, Any], channel: Channel) -> Peer:
        """Let a worker in, or say why not."""
        rank = hello["rank"]
        with self._lock:
            if hello["type"] != self.type:
                raise Refused(f"rank {rank} made a store of type {hello['type']!r}, others made {self.type!r} of it")
            if hello["program"] != self.program:
                raise Refused(
                    f"rank {rank} runs another program than the first worker here (the texts of their main modules "
                    "differ); start all with the same one, or set MXCORE_KV_ANY_PROGRAM=1 for each"
                )
            if rank in self._peers:
                raise Refused(f"rank {rank} is taken: another process has joined the job under it, and is still there")
            if self.sync and rank in self._lost:
                raise Refused(f"rank {rank} was lost, and a synchronous job cannot go on; start it again")
            self._lost.pop(rank, None)
            peer = self._peers[rank] = Peer(self, rank, channel)
            if self._slots:  # who comes back takes part from now on
                for slot in self._slots:
                    slot.inbox[rank].clear()
            return peer

    def serve(self, peer: Peer) -> None:
        """Do what a worker says until it leaves."""
        try:
            while not peer.said_goodbye:
                header, size = peer.channel.receive()
                peer.heard = time.monotonic()
                self._handle(peer, header, size)
        except Closed:
            pass
        except Exception as e:  # a message that no worker of ours sends
            peer.tell({"broken": f"server {self.server.number} does not understand rank {peer.rank}: {e!r}"})
        with self._lock:
            del self._peers[peer.rank]
            if not peer.said_goodbye:
                self._lost[peer.rank] = time.monotonic()
            self._fail_meetings()
        if not peer.said_goodbye and self.sync:
            text = self._loss()
            replies = _Replies()
            for slot in list(self._slots):
                with slot.lock:
                    self._fail_waiting(slot, replies, text)
            replies.send()
        peer.end()

    def _loss(self) -> str:
        now = time.monotonic()
        ranks = ", ".join(f"rank {r} ({now - at:.1f} s ago)" for r, at in sorted(self._lost.items()))
        return f"lost {ranks}: the connection ended without a word, its process is gone; a {self.type} job cannot go on"

    def _handle(self, peer: Peer, header: dict[str, Any], size: int) -> None:
        replies = _Replies()
        if "ask" in header:
            body = bytearray(size)
            peer.channel.into(body)
            self._answer(peer, header, body)
        for item in header.get("push", ()):
            self._take(peer, item, replies)
        for number, text in header.get("failed", ()):
            slot = self._slots[number]
            with slot.lock:
                slot.failed = f"the push of rank {peer.rank} failed: {text}"
                self._fail_waiting(slot, replies, slot.failed)
        for item in header.get("pull", ()):
            number, rows = (item, None) if isinstance(item, int) else item
            if rows is not None:
                ids = np.empty(rows, np.int64)
                peer.channel.into(ids)
                rows = ids
            self._want(peer, self._slots[number], rows, replies)
        if "bye" in header:
            peer.said_goodbye = True
        replies.send()

    # -- values ------------------------------------------------------------------------------------------------------

    def _take(self, peer: Peer, item: Any, replies: _Replies) -> None:
        """Take a push: a slot's number if it lies in the memory for it, or comes in full; else what describes it."""
        if isinstance(item, int):
            slot = self._slots[item]
            pushed = peer.pushed[item]
            if not peer.channel.local:
                if item in peer.full:
                    pushed = np.empty(slot.size, slot.dtype)
                peer.channel.into(pushed)
            own = pushed is peer.pushed[item]
            if own:
                peer.full.add(item)
            self._push(peer, slot, pushed, own, replies)
            return
        number, kind, size, extra = item
        body = np.empty(size, np.uint8)
        peer.channel.into(body)
        slot = self._slots[number]
        self._push(peer, slot, self._decode(slot, kind, body, extra), False, replies)

    @staticmethod
    def _decode(slot: _Slot, kind: str, body: np.ndarray[Any, Any], extra: Any) -> Any:
        if kind == "raw":
            return body.view(slot.dtype)
        if kind == "2bit":
            return encodings.unpack_two_bits(body, slot.size, extra, slot.dtype)
        if kind == "rows":
            ids, data = body[: extra * 8].view(np.int64), body[extra * 8 :].view(slot.dtype)
            values = nd.array(data.reshape(extra, *slot.shape[1:]), dtype=slot.dtype)
            return nd.sparse.row_sparse_array((values, nd.array(ids, dtype="int64")), shape=tuple(slot.shape))
        return body.view(encodings.narrow(kind)).astype(slot.dtype)

    def _push(self, peer: Peer, slot: _Slot, pushed: Any, own: bool, replies: _Replies) -> None:
        with slot.lock:
            slot.inbox[peer.rank].append((peer, pushed, own))
            slot.pushes[peer.rank] += 1
            whose = slot.inbox if self.sync else [slot.inbox[peer.rank]]
            while all(whose):
                items = [box.popleft() for box in whose]
                if slot.failed is None:
                    try:
                        self._apply(slot, [pushed for _, pushed, _ in items])
                    except Exception as e:
                        slot.failed = f"the update failed: {type(e).__name__}: {e}"
                slot.rounds += 1
                for who, _, lent in items:
                    if lent:
                        who.full.discard(slot.number)
                        if who.channel.local:
                            replies.add(who, "free", slot.number)
            self._serve_waiting(slot, replies)

    def _apply(self, slot: _Slot, pushed: list[Any]) -> None:
        """Add up what came, all of which is ours to write to, and update the value."""
        updater = self._updater
        if any(not isinstance(p, np.ndarray) for p in pushed):
            self._apply_rows(slot, pushed)
        elif updater is None:
            if not self.sync:
                raise MXNetError(f"a {self.type} store needs an optimizer: call set_optimizer before the first push")
            if len(pushed) == 1:
                np.copyto(slot.value, pushed[0])
            else:
                np.add(pushed[0], pushed[1], out=slot.value)
            for other in pushed[2:]:
                slot.value += other
        else:
            total = pushed[0]
            for other in pushed[1:]:
                total += other
            with self._updating:
                updater(slot.key, _over(total, slot.shape), slot.array)

    def _apply_rows(self, slot: _Slot, pushed: list[Any]) -> None:
        total = add([_over(p, slot.shape) if isinstance(p, np.ndarray) else p for p in pushed], cpu())
        if self._updater is None:
            if slot.stype == "row_sparse":
                slot.array = total.tostype("row_sparse")
            else:
                slot.value[:] = total.asnumpy().reshape(-1)
            return
        with self._updating:
            self._updater(slot.key, total, slot.array)

    def _want(self, peer: Peer, slot: _Slot, rows: Any, replies: _Replies) -> None:
        with slot.lock:
            slot.waiting.append((peer, slot.pushes[peer.rank] if self.sync else 0, time.monotonic(), rows))
            self._serve_waiting(slot, replies)
            if self.sync and self._lost and slot.waiting:
                self._fail_waiting(slot, replies, self._loss())

    def _serve_waiting(self, slot: _Slot, replies: _Replies) -> None:
        if slot.failed is not None:
            self._fail_waiting(slot, replies, slot.failed)
        still = []
        for waits in slot.waiting:
            peer, needs, _, rows = waits
            if needs > slot.rounds:
                still.append(waits)
                continue
            try:
                self._give(peer, slot, rows, replies)
            except (MXNetError, IndexError, TypeError) as e:
                replies.add(peer, "failed", [slot.number, str(e)])
        slot.waiting = still

    def _give(self, peer: Peer, slot: _Slot, rows: Any, replies: _Replies) -> None:
        if rows is not None:
            found = pick_rows(slot.array, nd.array(rows, dtype="int64"))
            ids, data = found.indices.asnumpy(), np.ascontiguousarray(found.data.asnumpy())
            replies.add(peer, "here", [slot.number, len(ids), data.nbytes], ids, data)
            return
        value = slot.value
        if slot.stype == "row_sparse":
            value = slot.array.asnumpy().reshape(-1)
        if not peer.channel.local:
            replies.add(peer, "here", slot.number, value if self.sync else value.copy())
            return
        if peer.pulled[slot.number] is not slot.value:
            np.copyto(peer.pulled[slot.number], value)
        replies.add(peer, "here", slot.number)

    @staticmethod
    def _fail_waiting(slot: _Slot, replies: _Replies, text: str) -> None:
        for peer, *_ in slot.waiting:
            replies.add(peer, "failed", [slot.number, text])
        slot.waiting = []

    # -- questions ---------------------------------------------------------------------------------------------------

    def _answer(self, peer: Peer, header: dict[str, Any], body: bytearray) -> None:
        number = header["ask"]
        handler: Callable[..., Any] = getattr(self, f"_on_{header['call']}")
        try:
            reply = handler(peer, header, body)
        except (MXNetError, Refused) as e:
            kind = next((c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins"), "RuntimeError")
            peer.tell({"answer": number, "error": [kind, str(e)]})
        else:
            if reply is not None:
                extra, bodies = reply if isinstance(reply, tuple) else (reply, ())
                peer.tell({"answer": number, **extra}, bodies)

    def _on_place(self, peer: Peer, header: dict[str, Any], body: bytearray) -> dict[str, Any]:
        with self._lock:
            for key, elements, itemsize, row in header["keys"]:
                if key not in self._placed:
                    self._placed[key] = self._plan.place(elements, itemsize, row)
            return {"parts": [self._placed[key] for key, *_ in header["keys"]]}

    def _on_init(self, peer: Peer, header: dict[str, Any], body: bytearray) -> None:
        with self._lock:
            keys = {key: spec for key, *spec in header["keys"]}
            name = (
                "init of " + ", ".join(map(repr, list(keys)[:5])) + (f" … ({len(keys)} keys)" if len(keys) > 5 else "")
            )
            if not self.sync and all(key in self._by_key for key in keys):
                return self._lend(peer, header["ask"], [self._by_key[key] for key in keys])
            for key, spec in keys.items():
                if key in self._by_key:
                    raise Refused(f"key {key!r} was initialised before; init and broadcast take a key once")
                for other, (_, _, asked) in self._meetings.get(name, {}).items():
                    theirs = {k: s for k, *s in asked["keys"]}.get(key)
                    if theirs is not None and theirs != spec:
                        text = (
                            f"rank {peer.rank} has shape {tuple(spec[2])} of {spec[3]} ({spec[4]}), "
                            f"rank {other.rank} has shape {tuple(theirs[2])} of {theirs[3]} ({theirs[4]})"
                        )
                        self._dissolve([name], text)
                        raise Refused(f"{name}: {text}")
            self._meet(name, peer, {**header, "body": body}, self._begin)

    def _begin(self, met: dict[Peer, tuple[int, float, dict[str, Any]]]) -> None:
        """All workers know new keys: make their memory, with the values of the first rank."""
        _, (_, _, asked) = min(met.items(), key=lambda item: item[0].rank)
        first = len(self._slots)
        slots = [_Slot(first + i, key, spec, self.workers) for i, (key, *spec) in enumerate(asked["keys"])]
        sizes = [slot.size * np.dtype(slot.dtype).itemsize for slot in slots]
        offsets, end = layout(sizes)
        values = Segment(end)
        at = 0
        for slot, offset, size in zip(slots, offsets, sizes):
            slot.own(view(values.memory, offset, slot.size, slot.dtype))
            slot.value.view(np.uint8)[:] = np.frombuffer(asked["body"], np.uint8, size, at)
            if slot.stype == "row_sparse":
                slot.own(slot.value)
            at += size
            self._by_key[slot.key] = slot
        self._slots += slots
        for peer, (number, _, _) in met.items():
            self._lend(peer, number, slots, values)
        values.close()

    def _lend(self, peer: Peer, number: int, slots: list[_Slot], values: Segment | None = None) -> None:
        """Give a worker memory for pushes, and tell it where it pulls from."""
        offsets, end = layout([slot.size * np.dtype(slot.dtype).itemsize for slot in slots])
        local = peer.channel.local
        lent = [Segment(end)]
        shared = values is not None and self.sync
        if not shared:
            lent.append(Segment(end))
        for slot, offset in zip(slots, offsets):
            peer.pushed[slot.number] = view(lent[0].memory, offset, slot.size, slot.dtype)
            peer.pulled[slot.number] = slot.value if shared else view(lent[1].memory, offset, slot.size, slot.dtype)
        header = {"answer": number, "slots": [s.number for s in slots], "offsets": offsets, "size": end}
        if not local:
            peer.tell(header)
            for segment in lent:
                segment.close()
            return
        if shared:
            assert values is not None
            lent.append(values.share())
        peer.tell({**header, "files": len(lent)}, (), lent)

    def _on_replace(self, peer: Peer, header: dict[str, Any], body: bytearray) -> dict[str, Any]:
        at = 0
        for number in header["slots"]:
            slot = self._slots[number]
            size = slot.value.nbytes
            with slot.lock:
                slot.value.view(np.uint8)[:] = np.frombuffer(body, np.uint8, size, at)
                if slot.stype == "row_sparse":
                    slot.own(slot.value)
            at += size
        return {}

    def _on_barrier(self, peer: Peer, header: dict[str, Any], body: bytearray) -> None:
        self._meet("barrier", peer, header, self._pass)

    def _pass(self, met: dict[Peer, tuple[int, float, dict[str, Any]]]) -> None:
        for peer, (number, _, _) in met.items():
            peer.tell({"answer": number})

    def _on_gather(self, peer: Peer, header: dict[str, Any], body: bytearray) -> None:
        self._meet("gathering", peer, header, self._share)

    def _share(self, met: dict[Peer, tuple[int, float, dict[str, Any]]]) -> None:
        """Tell all workers what each of them has to say, by rank."""
        values = [asked["value"] for _, (_, _, asked) in sorted(met.items(), key=lambda item: item[0].rank)]
        for peer, (number, _, _) in met.items():
            peer.tell({"answer": number, "values": values})

    def _on_optimizer(self, peer: Peer, header: dict[str, Any], body: bytearray) -> dict[str, Any]:
        """Take the optimizer of the worker that comes first; all of them bring the same."""
        updater = opt.get_updater(config.load(header["config"]))
        with self._updating:
            if header["time"] > self._optimizers:
                self._updater, self._optimizers = updater, header["time"]
        return {}

    def _on_states(self, peer: Peer, header: dict[str, Any], body: bytearray) -> tuple[dict[str, Any], list[bytes]]:
        with self._updating:
            return {}, [self._optimizing().get_states(header["optimizer"])]

    def _on_set_states(self, peer: Peer, header: dict[str, Any], body: bytearray) -> dict[str, Any]:
        with self._updating:
            self._optimizing().set_states(bytes(body))
        return {}

    def _on_learning_rate(self, peer: Peer, header: dict[str, Any], body: bytearray) -> dict[str, Any]:
        with self._updating:
            self._optimizing().optimizer.set_learning_rate(header["rate"])
        return {}

    def _optimizing(self) -> opt.Updater:
        if self._updater is None:
            raise Refused("there are no optimizer states: call set_optimizer first")
        return self._updater

    def _on_dead(self, peer: Peer, header: dict[str, Any], body: bytearray) -> dict[str, Any]:
        now = time.monotonic()
        with self._lock:
            silent = sum(now - p.heard > header["timeout"] for p in self._peers.values())
            return {"dead": len(self._lost) + silent}

    def _on_command(self, peer: Peer, header: dict[str, Any], body: bytearray) -> dict[str, Any]:
        """MXNet's servers know commands of profilers; ours have none, and say so where somebody looks."""
        print(f"kvstore server {self.server.number}: command {header['head']!r}: {header['body'][:200]!r}", flush=True)
        return {}

    # -- waiting -----------------------------------------------------------------------------------------------------

    def _meet(self, name: str, peer: Peer, asked: dict[str, Any], then: Callable[..., None]) -> None:
        """Go on with `then` when all workers have come here."""
        with self._lock:
            met = self._meetings.setdefault(name, {})
            met[peer] = asked["ask"], time.monotonic(), asked
            if len(met) == self.workers - (0 if self.sync else len(self._lost)):
                del self._meetings[name]
                then(met)
            else:
                self._fail_meetings()

    def _fail_meetings(self) -> None:
        """End meetings that can never be complete: somebody is lost, or all workers wait, but not for the same."""
        if not self._meetings:
            return
        if self._lost and self.sync:
            return self._dissolve(list(self._meetings), self._loss())
        everywhere = {peer: name for name, met in self._meetings.items() for peer in met}
        if len(self._meetings) > 1 and len(everywhere) == len(self._peers) == self.workers:
            where = "; ".join(
                f"rank {p.rank} at {name}" for p, name in sorted(everywhere.items(), key=lambda i: i[0].rank)
            )
            self._dissolve(list(self._meetings), f"all workers wait for each other at different places: {where}")

    def _dissolve(self, names: Iterable[str], text: str) -> None:
        for name in names:
            for peer, (number, _, _) in self._meetings.pop(name).items():
                peer.tell({"answer": number, "error": ["RuntimeError", f"{name}: {text}"]})

    def look(self, now: float) -> None:
        """Fail what has waited longer than the deadline."""
        with self._lock:
            for name, met in list(self._meetings.items()):
                if now - min(since for _, since, _ in met.values()) > self.deadline:
                    missing = [r for r in range(self.workers) if r not in {p.rank for p in met}]
                    self._dissolve([name], f"waited {self.deadline:g} s for {self._heard(missing, now)}")
            slots = list(self._slots)
        replies = _Replies()
        for slot in slots:
            if slot.waiting and slot.lock.acquire(blocking=False):
                try:
                    if any(now - since > self.deadline for _, _, since, _ in slot.waiting):
                        missing = [r for r, box in enumerate(slot.inbox) if not box]
                        self._fail_waiting(
                            slot,
                            replies,
                            f"waited {self.deadline:g} s for round {slot.rounds + 1} of key {slot.key!r}, to which "
                            f"{self._heard(missing, now)} did not push",
                        )
                finally:
                    slot.lock.release()
        replies.send()

    def _heard(self, ranks: list[int], now: float) -> str:
        """Ranks, and when they were heard of."""

        def of(rank: int) -> str:
            if rank in self._peers:
                return f"rank {rank} (last heard of {now - self._peers[rank].heard:.1f} s ago)"
            return f"rank {rank} ({'lost' if rank in self._lost else 'never joined, or has left'})"

        with self._lock:
            return ", ".join(map(of, ranks))
