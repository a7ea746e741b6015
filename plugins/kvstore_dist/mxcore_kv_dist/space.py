"""The values of one store on one server: rounds of pushes, updates, and who waits for what.

In a synchronous store a round of a value ends when every worker has pushed it once; pulls see the rounds that their
worker took part in. No worker pushes a value again before it has read what it pulled, so that values can be read from
the server's own memory: the next round cannot begin. In an asynchronous store each push is a round, and readers get
copies.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from mxcore import nd
from mxcore import optimizer as opt
from mxcore.base import MXNetError
from mxcore.context import cpu
from mxcore.kvstore.values import add, pick_rows
from mxcore.optimizer import config

from .memory import Segment, layout, view
from .peer import Peer, Replies
from .plan import Plan
from .slot import Slot, over
from .wire import Channel, Closed

if TYPE_CHECKING:
    from .server import Server

__all__ = ["Refused", "Space"]


class Refused(Exception):
    """What a worker asks for cannot be; it is told why."""


_Met: TypeAlias = dict[Peer, tuple[int, float, dict[str, Any]]]


class _Meeting(NamedTuple):
    """Where workers wait for each other: what follows, and of each its question's number, since when, and all of it."""

    then: Callable[[_Met], None]
    met: _Met


class _Gone(NamedTuple):
    """A worker that is not here any more: since when, when it was last heard of, and why."""

    since: float
    heard: float
    why: str

    def text(self, rank: int) -> str:
        now = time.monotonic()
        return f"rank {rank} {self.why} {now - self.since:.1f} s ago (last heard of {now - self.heard:.1f} s ago)"


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
        self.name: Any = hello["store"]
        self.type: str = hello["type"]
        self.program: str = hello["program"]
        self.sync: bool = hello["sync"]
        self.deadline = float(hello["deadline"])
        self.workers = server.workers
        self._lock = threading.RLock()
        self._peers: dict[int, Peer] = {}
        #: Workers whose connection ended without a word, and those that said goodbye, by rank.
        self._lost: dict[int, _Gone] = {}
        self._left: dict[int, _Gone] = {}
        self._slots: list[Slot] = []
        self._by_key: dict[Any, Slot] = {}
        self._plan = Plan(server.servers)
        self._placed: dict[Any, Any] = {}
        self._meetings: dict[str, _Meeting] = {}
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
            self._left.pop(rank, None)
            peer = self._peers[rank] = Peer(self, rank, channel)
            for slot in self._slots:  # who comes back takes part from now on
                slot.inbox[rank].clear()
            return peer

    def serve(self, peer: Peer) -> None:
        """Do what a worker says until it leaves."""
        why = "was lost, as its connection ended without a word,"
        try:
            while not peer.said_goodbye:
                header, size = peer.channel.receive()
                peer.heard = time.monotonic()
                self._handle(peer, header, size)
            why = "left the job"
        except Closed:
            pass
        except Exception as e:  # a message that no worker of ours sends
            why = "was sent away, as it was not understood,"
            peer.tell({"broken": f"server {self.server.number} does not understand rank {peer.rank}: {e!r}"})
        finally:
            self._miss(peer, why)

    def _miss(self, peer: Peer, why: str) -> None:
        """Let nobody wait for a worker that is gone."""
        with self._lock:
            del self._peers[peer.rank]
            gone = self._left if peer.said_goodbye else self._lost
            gone[peer.rank] = _Gone(time.monotonic(), peer.heard, why)
            for meeting in self._meetings.values():
                meeting.met.pop(peer, None)
            if not self.server.closed:
                self._settle()
        if self.server.closed:  # it was this server who hung up on all of them
            return peer.end()
        replies = Replies()
        for slot in list(self._slots):
            with slot.lock:
                slot.waiting = [waits for waits in slot.waiting if waits[0] is not peer]
                self._fail_hopeless(slot, replies)
        replies.send()
        peer.end()

    @property
    def deserted(self) -> bool:
        """Whether all workers have left: nobody will ask for these values."""
        with self._lock:
            return len(self._left) == self.workers

    def _loss(self) -> str:
        """Why a synchronous job cannot go on: workers were lost, or else have left."""
        gone = self._lost or self._left
        ranks = ", ".join(gone[rank].text(rank) for rank in sorted(gone))
        return f"{ranks}; a {self.type} job cannot go on without it"

    def _handle(self, peer: Peer, header: dict[str, Any], size: int) -> None:
        replies = Replies()
        if "ask" in header:
            body = np.empty(size, np.uint8)  # takes no memory before it is filled
            peer.channel.into(body)
            self._answer(peer, header, body)
        for item in header.get("push", ()):
            self._take(peer, item, replies)
        for number, text in header.get("failed", ()):
            slot = self._slots[number]
            text = f"the push of rank {peer.rank} failed: {text}"
            with slot.lock:
                if self.sync:
                    slot.failed = text
                    self._fail_waiting(slot, replies, text)
                else:
                    slot.complaints[peer.rank] = text
        for item in header.get("pull", ()):
            number, rows = (item, None) if isinstance(item, int) else item
            slot = self._lent(peer, number)
            if rows is not None:
                ids = np.empty(rows, np.int64)
                peer.channel.into(ids)
                rows = ids
            self._want(peer, slot, rows, replies)
        if "bye" in header:
            peer.said_goodbye = True
        replies.send()

    # -- values ------------------------------------------------------------------------------------------------------

    def _take(self, peer: Peer, item: Any, replies: Replies) -> None:
        """Take a push: a slot's number if it lies in the memory for it, or comes in full; else what describes it."""
        if isinstance(item, int):
            slot = self._lent(peer, item)
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
        slot = self._lent(peer, number)
        if size != slot.length(kind, extra):
            raise ValueError(f"a push of {size} bytes ({kind}, {extra}) to key {slot.key!r}")
        body = np.empty(size, np.uint8)
        peer.channel.into(body)
        self._push(peer, slot, slot.decode(kind, body, extra), False, replies)

    def _lent(self, peer: Peer, number: int) -> Slot:
        if number not in peer.pushed:
            raise ValueError(f"there is no slot {number!r}")
        return self._slots[number]

    def _push(self, peer: Peer, slot: Slot, pushed: Any, own: bool, replies: Replies) -> None:
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

    def _apply(self, slot: Slot, pushed: list[Any]) -> None:
        """Add up what came, all of which is ours to write to, and update the value."""
        updater = self._updater
        if updater is None and not self.sync:
            raise MXNetError(f"a {self.type} store needs an optimizer: call set_optimizer before the first push")
        if slot.stype == "row_sparse" or any(not isinstance(p, np.ndarray) for p in pushed):
            self._apply_rows(slot, pushed)
        elif updater is None:
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
                updater(slot.key, over(total, slot.shape), slot.array)
                slot.array.wait_to_read()  # who pulls reads the memory

    def _apply_rows(self, slot: Slot, pushed: list[Any]) -> None:
        total = add([over(p, slot.shape) if isinstance(p, np.ndarray) else p for p in pushed], cpu())
        if self._updater is None:
            if slot.stype == "row_sparse":
                slot.array = total.tostype("row_sparse")
            else:
                slot.value[:] = total.asnumpy().reshape(-1)
            return
        with self._updating:
            self._updater(slot.key, total, slot.array)
            slot.array.wait_to_read()

    def _want(self, peer: Peer, slot: Slot, rows: Any, replies: Replies) -> None:
        with slot.lock:
            if peer.rank in slot.complaints:
                replies.add(peer, "failed", [slot.number, slot.complaints.pop(peer.rank)])
                return
            slot.waiting.append((peer, slot.pushes[peer.rank] if self.sync else 0, time.monotonic(), rows))
            self._serve_waiting(slot, replies)
            if slot.waiting:
                self._fail_hopeless(slot, replies)

    def _serve_waiting(self, slot: Slot, replies: Replies) -> None:
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
            except Exception as e:  # of what one worker wants, others must not suffer
                replies.add(peer, "failed", [slot.number, str(e)])
        slot.waiting = still

    def _give(self, peer: Peer, slot: Slot, rows: Any, replies: Replies) -> None:
        if rows is not None:
            found = pick_rows(slot.array, nd.array(rows, dtype="int64"))
            ids, data = found.indices.asnumpy(), np.ascontiguousarray(found.data.asnumpy())
            replies.add(peer, "here", [slot.number, len(ids), data.nbytes], ids, data)
            return
        value = slot.value
        if slot.stype == "row_sparse":  # whose array is another with each update
            np.copyto(value, slot.array.asnumpy().reshape(-1))
        if not peer.channel.local:
            replies.add(peer, "here", slot.number, value if self.sync else value.copy())
            return
        if peer.pulled[slot.number] is not slot.value:
            np.copyto(peer.pulled[slot.number], value)
        replies.add(peer, "here", slot.number)

    @staticmethod
    def _fail_waiting(slot: Slot, replies: Replies, text: str) -> None:
        for peer, *_ in slot.waiting:
            replies.add(peer, "failed", [slot.number, text])
        slot.waiting = []

    def _fail_hopeless(self, slot: Slot, replies: Replies) -> None:
        """End waits for pushes of workers that are gone."""
        if not (self.sync and slot.waiting):
            return
        if self._lost or any(slot.pushes[rank] < needs for _, needs, *_ in slot.waiting for rank in self._left):
            self._fail_waiting(slot, replies, self._loss())

    # -- questions ---------------------------------------------------------------------------------------------------

    def _answer(self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]) -> None:
        number = header["ask"]
        handler: Callable[..., Any] = getattr(self, f"_on_{header['call']}")
        try:
            reply = handler(peer, header, body)
        except Exception as e:
            kind = next((c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins"), "RuntimeError")
            peer.tell({"answer": number, "error": [kind, str(e)]})
        else:
            if reply is not None:
                extra, bodies = reply if isinstance(reply, tuple) else (reply, ())
                peer.tell({"answer": number, **extra}, bodies)

    def _on_place(self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]) -> dict[str, Any]:
        with self._lock:
            for key, elements, itemsize, row in header["keys"]:
                if key not in self._placed:
                    self._placed[key] = self._plan.place(elements, itemsize, row)
            return {"parts": [self._placed[key] for key, *_ in header["keys"]]}

    def _on_init(self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]) -> None:
        with self._lock:
            keys = {key: spec for key, *spec in header["keys"]}
            name = (
                "init of " + ", ".join(map(repr, list(keys)[:5])) + (f" … ({len(keys)} keys)" if len(keys) > 5 else "")
            )
            if not self.sync and all(key in self._by_key for key in keys):
                return self._lend(peer, header["ask"], [self._by_key[key] for key in keys])
            for key in keys:
                if key in self._by_key:
                    raise Refused(f"key {key!r} was initialised before; init and broadcast take a key once")
            meeting = self._meetings.get(name)
            for other, (_, _, asked) in meeting.met.items() if meeting is not None else ():
                text = _difference(peer.rank, keys, other.rank, {key: spec for key, *spec in asked["keys"]})
                if text:
                    self._dissolve([name], text)
                    raise Refused(f"{name}: {text}")
            self._meet(name, peer, {**header, "body": body}, self._begin)

    def _begin(self, met: _Met) -> None:
        """All workers know new keys: make their memory, with the values of the first rank."""
        asked = next((asked for peer, (_, _, asked) in met.items() if peer.rank == 0), None)
        if asked is None:
            raise Refused("rank 0, from which first values come, is gone")
        first = len(self._slots)
        slots = [Slot(first + i, key, spec, self.workers) for i, (key, *spec) in enumerate(asked["keys"])]
        sizes = [slot.size * np.dtype(slot.dtype).itemsize for slot in slots]
        if sum(sizes) != asked["body"].size:
            raise Refused(f"rank 0 sent {asked['body'].size} bytes for values of {sum(sizes)} bytes")
        offsets, end = layout(sizes)
        values = Segment(end)
        at = 0
        for slot, offset, size in zip(slots, offsets, sizes):
            slot.value = view(values.memory, offset, slot.size, slot.dtype)
            slot.fill(asked["body"], at)
            at += size
        self._slots += slots
        self._by_key.update((slot.key, slot) for slot in slots)
        for peer, (number, _, _) in met.items():
            self._lend(peer, number, slots, values)
        values.close()

    def _lend(self, peer: Peer, number: int, slots: list[Slot], values: Segment | None = None) -> None:
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

    def _on_replace(self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]) -> dict[str, Any]:
        at = 0
        for number in header["slots"]:
            slot = self._slots[number]
            with slot.lock:
                slot.fill(body, at)
            at += slot.value.nbytes
        return {}

    def _on_barrier(self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]) -> None:
        self._meet("barrier", peer, header, self._pass)

    def _on_echo(self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]) -> dict[str, Any]:
        """Answer: all that this worker said before was heard."""
        return {}

    def _pass(self, met: _Met) -> None:
        for peer, (number, _, _) in met.items():
            peer.tell({"answer": number})

    def _on_gather(self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]) -> None:
        self._meet("gathering", peer, header, self._share)

    def _share(self, met: _Met) -> None:
        """Tell all workers what each of them has to say, by rank."""
        values = [asked["value"] for _, (_, _, asked) in sorted(met.items(), key=lambda item: item[0].rank)]
        for peer, (number, _, _) in met.items():
            peer.tell({"answer": number, "values": values})

    def _on_optimizer(self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]) -> dict[str, Any]:
        """Take the optimizer of the worker that comes first; all of them bring the same."""
        updater = opt.get_updater(config.load(header["config"]))
        with self._updating:
            if header["time"] > self._optimizers:
                self._updater, self._optimizers = updater, header["time"]
        return {}

    def _on_states(
        self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]
    ) -> tuple[dict[str, Any], list[bytes]]:
        with self._updating:
            updater = self._optimizing()
            optimizer = updater.optimizer
            counts = [[key, n] for key, n in optimizer._index_update_count.items()]
            return {"counts": counts, "num_update": optimizer.num_update}, [updater.get_states()]

    def _on_set_states(self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]) -> dict[str, Any]:
        with self._updating:
            updater = self._optimizing()
            updater.set_states(bytes(body))
            updater.optimizer._index_update_count.update(map(tuple, header["counts"]))
            updater.optimizer.num_update = max(updater.optimizer.num_update, header["num_update"])
        return {}

    def _on_learning_rate(self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]) -> dict[str, Any]:
        with self._updating:
            self._optimizing().optimizer.set_learning_rate(header["rate"])
        return {}

    def _optimizing(self) -> opt.Updater:
        if self._updater is None:
            raise Refused("there are no optimizer states: call set_optimizer first")
        return self._updater

    def _on_dead(self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]) -> dict[str, Any]:
        now = time.monotonic()
        with self._lock:
            silent = sum(now - p.heard > header["timeout"] for p in self._peers.values())
            return {"dead": len(self._lost) + silent}

    def _on_command(self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]) -> dict[str, Any]:
        """MXNet's servers know commands of profilers; ours have none, and say so where somebody looks."""
        print(f"kvstore server {self.server.number}: command {header['head']!r}: {header['body'][:200]!r}", flush=True)
        return {}

    # -- waiting -----------------------------------------------------------------------------------------------------

    def _meet(self, name: str, peer: Peer, asked: dict[str, Any], then: Callable[[_Met], None]) -> None:
        """Go on with `then` when all workers have come here."""
        with self._lock:
            meeting = self._meetings.setdefault(name, _Meeting(then, {}))
            if peer in meeting.met:
                raise Refused(f"{name}: rank {peer.rank} waits there already, in another thread")
            meeting.met[peer] = asked["ask"], time.monotonic(), asked
            self._settle()

    def _settle(self) -> None:
        """Go on with meetings that are complete, and end those that can never be."""
        for name, (then, met) in list(self._meetings.items()):
            if not met:
                del self._meetings[name]
            elif len(met) == self.workers - (0 if self.sync else len(self._lost) + len(self._left)):
                del self._meetings[name]
                try:
                    then(met)
                except Exception as e:
                    self._disappoint(met, f"{name}: {e if isinstance(e, Refused) else repr(e)}")
        if self.sync and (self._lost or self._left):
            return self._dissolve(list(self._meetings), self._loss())
        everywhere = {peer: name for name, meeting in self._meetings.items() for peer in meeting.met}
        if len(self._meetings) > 1 and len(everywhere) == len(self._peers) == self.workers:
            where = "; ".join(
                f"rank {p.rank} at {name}" for p, name in sorted(everywhere.items(), key=lambda i: i[0].rank)
            )
            self._dissolve(list(self._meetings), f"all workers wait for each other at different places: {where}")

    def _dissolve(self, names: Iterable[str], text: str) -> None:
        for name in names:
            self._disappoint(self._meetings.pop(name).met, f"{name}: {text}")

    @staticmethod
    def _disappoint(met: _Met, text: str) -> None:
        for peer, (number, _, _) in met.items():
            peer.tell({"answer": number, "error": ["RuntimeError", text]})

    def look(self, now: float) -> None:
        """Fail what has waited longer than the deadline."""
        with self._lock:
            for name, (_, met) in list(self._meetings.items()):
                if now - min(since for _, since, _ in met.values()) > self.deadline:
                    missing = [r for r in range(self.workers) if r not in {p.rank for p in met}]
                    self._dissolve([name], f"waited {self.deadline:g} s for {self._heard(missing, now)}")
            slots = list(self._slots)
        replies = Replies()
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
            gone = self._lost.get(rank) or self._left.get(rank)
            return gone.text(rank) if gone else f"rank {rank} (which never joined)"

        with self._lock:
            return ", ".join(map(of, ranks))


def _difference(rank: int, mine: dict[Any, Any], other: int, theirs: dict[Any, Any]) -> str | None:
    """How the keys of two workers differ that are to be the same."""
    if list(mine) != list(theirs):
        key = next(b if a == () else a for a, b in itertools.zip_longest(mine, theirs, fillvalue=()) if a != b)
        return f"rank {rank} and rank {other} do not have the same keys in the same order: they differ at {key!r}"
    for key in mine:
        ours, other_ones = (
            f"has shape {tuple(shape)} of {dtype} ({stype})" for *_, dtype, stype, shape in (mine[key], theirs[key])
        )
        if ours != other_ones:
            return f"of key {key!r} rank {rank} {ours}, rank {other} {other_ones}"
    return None
