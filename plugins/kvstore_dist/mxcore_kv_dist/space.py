"""The values of one store on one server: rounds of pushes, updates, and who waits for what.

In a synchronous store a round of a value ends when every worker has pushed it once; pulls see the rounds that their
worker took part in. No worker pushes a value again before it has read what it pulled, so that values can be read from
the server's own memory: the next round cannot end. In an asynchronous store each push is a round, and readers get
copies.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mxcore import nd
from mxcore import optimizer as opt
from mxcore.base import MXNetError
from mxcore.context import cpu
from mxcore.kvstore.values import add, pick_rows
from mxcore.optimizer import config
from mxcore.plugin import let_through

from .meetings import Attendance, Meetings
from .memory import Segment, layout, view
from .peer import PIECE, Peer, Refused, Replies, kind_of
from .plan import Part, Plan
from .roster import Roster
from .slot import Round, Slot, Wait, over
from .wire import Channel, Closed

if TYPE_CHECKING:
    from .server import Server

__all__ = ["Space"]


#: What a store is like, which all of its workers must say alike: name in the first message -> what is said to another.
_ALIKE = {
    "type": "rank {rank} made a store of type {theirs!r}, others made {ours!r} of it",
    "program": "rank {rank} runs another program than the first worker here (the texts of their main modules differ); "
    "start all with the same one, or set MXCORE_KV_ANY_PROGRAM=1 for each",
    "bound": "rank {rank} splits values of {theirs} elements and more over servers, others those of {ours}: "
    "MXNET_KVSTORE_BIGARRAY_BOUND must be the same for all",
}

#: A question with the bytes behind it, and an answer.
_Asked: TypeAlias = dict[str, Any]
_Reply: TypeAlias = dict[str, Any]


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
        self._alike = {name: hello[name] for name in _ALIKE}
        self.sync: bool = hello["sync"]
        self.deadline = float(hello["deadline"])
        self.workers = server.workers
        self.roster = Roster(self.type, self.sync, self.workers)
        self._lock = self.roster.lock
        self._meetings = Meetings(self.roster, self.deadline)
        self._numbers = itertools.count()
        self._slots: dict[int, Slot] = {}
        self._by_key: dict[Any, Slot] = {}
        self._plan = Plan(server.servers, int(hello["bound"]))
        #: Key -> shape, dtype and storage type, on which all workers agreed, and where the parts lie.
        self._placed: dict[Any, tuple[list[Any], list[Part]]] = {}
        self._updating = threading.Lock()
        self._updater: opt.Updater | None = None
        #: The configurations that were set, by number, and the rank that came first with each.
        self._optimizers: dict[int, tuple[int, Any]] = {}

    # -- who is here -------------------------------------------------------------------------------------------------

    def enter(self, hello: dict[str, Any], channel: Channel) -> Peer:
        """Let a worker in, or say why not."""
        rank = hello["rank"]
        with self._lock:
            for name, text in _ALIKE.items():
                if hello[name] != self._alike[name]:
                    raise Refused(text.format(rank=rank, theirs=hello[name], ours=self._alike[name]))
            self.roster.check(rank)
            peer = Peer(self, rank, channel)
            self.roster.add(peer)
            return peer

    def serve(self, peer: Peer) -> None:
        """Do what a worker says until it leaves."""
        why = "was lost, as its connection ended without a word,"
        try:
            while peer.goodbye is None:
                header, size = peer.channel.receive()
                peer.heard = time.monotonic()
                self._handle(peer, header, size)
            why = f"failed ({peer.goodbye})" if peer.goodbye else "left the job"
        except Closed:
            pass
        except Exception as e:  # a message that no worker of ours sends
            let_through(e)
            why = "was sent away, as it was not understood,"
            peer.tell({"broken": f"server {self.server.number} does not understand rank {peer.rank}: {e!r}"})
        finally:
            self._remove(peer, why)

    def _remove(self, peer: Peer, why: str) -> None:
        """Let nobody wait for a worker that is gone."""
        self.server.note_end(peer)
        with self._lock:
            self.roster.remove(peer, why)
            self._meetings.forget(peer)
            if not self.server.closed:
                self._meetings.end()
        if self.server.closed:  # it was this server who hung up on all of them
            return peer.end()
        replies = Replies()
        for slot in list(self._slots.values()):
            with slot.lock:
                slot.waiting = [wait for wait in slot.waiting if wait.peer is not peer]
                self._fail_hopeless(slot, replies)
        replies.send()
        peer.end()

    @property
    def deserted(self) -> bool:
        """Whether all workers have left: nobody will ask for these values."""
        with self._lock:
            return len(self.roster.left) == self.workers

    def _handle(self, peer: Peer, header: dict[str, Any], size: int) -> None:
        replies = Replies()
        if "ask" in header:
            body = np.empty(size, np.uint8)  # takes no memory before it is filled
            peer.channel.into(body)
            self._answer(peer, header, body)
        for item in header.get("push", ()):
            self._receive_push(peer, item, replies)
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
            slot = self._slot(peer, number)
            if rows is not None:
                ids = np.empty(rows, np.int64)
                peer.channel.into(ids)
                rows = ids
            self._await_value(peer, slot, rows, replies)
        if "bye" in header:
            peer.goodbye = str(header["bye"])
        replies.send()

    # -- values ------------------------------------------------------------------------------------------------------

    def _slot(self, peer: Peer, number: int) -> Slot:
        if number not in peer.slots:
            raise ValueError(f"there is no slot {number!r}")
        return self._slots[number]

    def _receive_push(self, peer: Peer, item: Any, replies: Replies) -> None:
        """Receive a push: a slot's number if it lies in shared memory, or comes as it is; else what describes it."""
        number, kind, size, extra = (item, "slot", 0, 0) if isinstance(item, int) else item
        slot = self._slot(peer, number)
        with slot.lock:
            round = slot.round_of(peer.rank) if self.sync else Round(slot, 1)
        if kind == "slot" and peer.channel.local:
            with slot.lock:
                round.lend(peer, peer.pushed[number])
        elif kind == "slot":
            self._receive_numbers(peer, slot, round, "raw", 0)
        elif size != (slot.rows_length(extra) if kind == "rows" else slot.length(kind, slot.size)):
            raise ValueError(f"a push of {size} bytes ({kind}, {extra}) to key {slot.key!r}")
        elif kind == "rows":
            body = np.empty(size, np.uint8)
            peer.channel.into(body)
            rows = slot.decode_rows(body, extra)
            with slot.lock:
                round.add_rows(rows)
        else:
            self._receive_numbers(peer, slot, round, kind, extra)
        self._end_push(peer, slot, round, replies)

    @staticmethod
    def _receive_numbers(peer: Peer, slot: Slot, round: Round, kind: str, threshold: float) -> None:
        """Receive all numbers of a slot; of several workers each adds its own while the next come."""
        with slot.lock:
            total = round.sum
        if kind == "raw" and round.workers == 1:
            return peer.channel.into(total)
        step = PIECE // total.itemsize
        for at in range(0, slot.size, step):
            count = min(step, slot.size - at)
            body = peer.piece[: slot.length(kind, count)]
            peer.channel.into(body)
            numbers = slot.decode(kind, body, count, threshold)
            with slot.lock:
                round.add(at, numbers)

    def _end_push(self, peer: Peer, slot: Slot, round: Round, replies: Replies) -> None:
        """Count a push, and end the rounds in which nobody's is missing."""
        with slot.lock:
            slot.pushes[peer.rank] += 1
            peer.behind = False
            round.missing -= 1
            if not self.sync:
                self._end_round(slot, round, replies)
            while slot.begun and not slot.begun[0].missing:
                self._end_round(slot, slot.begun.popleft(), replies)
            self._serve_waiting(slot, replies)

    def _end_round(self, slot: Slot, round: Round, replies: Replies) -> None:
        if slot.failed is None:
            try:
                self._apply(slot, round.parts())
            except Exception as e:
                let_through(e)
                slot.failed = f"the update failed: {type(e).__name__}: {e}"
        slot.rounds += 1
        for peer in round.end():
            replies.add(peer, "free", slot.number)

    def _apply(self, slot: Slot, pushed: list[Any]) -> None:
        """Add up what remains to be, all of which is ours to write to, and update the value."""
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

    def _await_value(self, peer: Peer, slot: Slot, rows: Any, replies: Replies) -> None:
        """Send a worker the value, or these rows of it, when the rounds that it has pushed to are over."""
        with slot.lock:
            if peer.rank in slot.complaints:
                replies.add(peer, "failed", [slot.number, slot.complaints.pop(peer.rank)])
                return
            over = functools.partial(self._send_value, peer, slot, rows)
            self._await_rounds(peer, slot, over, functools.partial(_fail_pull, peer, slot), replies)

    def _await_rounds(
        self,
        peer: Peer,
        slot: Slot,
        over: Callable[[Replies], None],
        failed: Callable[[Replies, str], None],
        replies: Replies,
    ) -> None:
        """Go on, with the slot's lock, when the rounds that a worker has pushed to are over, or never will be."""
        slot.waiting.append(Wait(peer, slot.pushes[peer.rank] if self.sync else 0, time.monotonic(), over, failed))
        self._serve_waiting(slot, replies)
        if slot.waiting:
            self._fail_hopeless(slot, replies)

    def _serve_waiting(self, slot: Slot, replies: Replies) -> None:
        if slot.failed is not None:
            self._fail_waiting(slot, replies, slot.failed)
        still = []
        for wait in slot.waiting:
            if wait.needs > slot.rounds:
                still.append(wait)
                continue
            try:
                wait.over(replies)
            except Exception as e:  # of what one worker wants, others must not suffer
                let_through(e)
                wait.failed(replies, str(e))
        slot.waiting = still

    def _send_value(self, peer: Peer, slot: Slot, rows: Any, replies: Replies) -> None:
        if rows is not None:
            found = pick_rows(slot.array, nd.array(rows, cpu(), "int64"))
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
    def _fail_waiting(slot: Slot, replies: Replies, text: str, waits: Sequence[Wait] | None = None) -> None:
        """Tell those who wait that it was in vain; all of them unless told."""
        failed = slot.waiting if waits is None else waits
        slot.waiting = [wait for wait in slot.waiting if wait not in failed]
        for wait in failed:
            wait.failed(replies, text)

    def _fail_hopeless(self, slot: Slot, replies: Replies) -> None:
        """End waits for pushes of workers that are gone."""
        if not (self.sync and slot.waiting):
            return
        roster = self.roster
        if roster.lost or any(slot.pushes[rank] < wait.needs for wait in slot.waiting for rank in roster.left):
            self._fail_waiting(slot, replies, roster.loss())

    # -- questions ---------------------------------------------------------------------------------------------------

    def _answer(self, peer: Peer, header: dict[str, Any], body: np.ndarray[Any, Any]) -> None:
        answer = _ANSWERS[header["call"]]
        _tell(peer, header["ask"], lambda: answer(self, peer, {**header, "body": body}))

    def _plan_values(self, peer: Peer, asked: _Asked) -> _Reply | None:
        """Tell a worker where new values lie: when all say alike what these are, or did so while it was away."""
        specs = {key: spec for key, *spec in asked["keys"]}
        with self._lock:
            if not self.sync and all(key in self._placed and self._placed[key][0] == specs[key] for key in specs):
                return {"parts": [self._placed[key][1] for key in specs]}
            self._meetings.meet(f"init of {_several(list(specs))}", peer, asked, self._place)
        return None

    def _place(self, met: Attendance) -> None:
        """All workers know what new values are: decide where they lie; what an init that failed has left is gone."""
        first, *others = sorted(met, key=lambda peer: peer.rank)
        specs, *theirs = [{key: spec for key, *spec in met[peer][2]["keys"]} for peer in (first, *others)]
        for other, said in zip(others, theirs):
            if text := _difference(other.rank, said, first.rank, specs):
                raise Refused(text)
        whole = self._updater is not None and self._updater.optimizer.reads_whole
        for key, spec in specs.items():
            shape, dtype, _ = spec
            if key in self._placed:
                (_, before, _), parts = self._placed.pop(key)
                self._plan.forget(parts, np.dtype(before).itemsize)
            together = math.prod(shape if whole else shape[1:])
            parts = self._plan.place(math.prod(shape), np.dtype(dtype).itemsize, together)
            self._placed[key] = spec, parts
        for peer, (number, _, _) in met.items():
            peer.tell({"answer": number, "parts": [self._placed[key][1] for key in specs]})

    def _init(self, peer: Peer, asked: _Asked) -> None:
        with self._lock:
            keys = [key for key, *_ in asked["keys"]]
            known = [self._by_key[key] for key in keys if key in self._by_key]
            if known and not self.sync and len(known) == len(keys):
                return self._hand_out(peer, asked["ask"], *self._lend(peer, known))
            if known:
                raise Refused(f"key {known[0].key!r} was initialised before; init and broadcast take a key once")
            self._meetings.meet(f"first values of {_several(keys)}", peer, asked, self._begin)

    def _begin(self, met: Attendance) -> None:
        """All workers know new keys: make their memory, with the values of the first rank."""
        asked = next((asked for peer, (_, _, asked) in met.items() if peer.rank == 0), None)
        if asked is None:
            raise Refused("rank 0, from which first values come, is gone", ConnectionError)
        slots = [Slot(next(self._numbers), key, spec, self.workers) for key, *spec in asked["keys"]]
        sizes = [slot.size * np.dtype(slot.dtype).itemsize for slot in slots]
        if sum(sizes) != asked["body"].size:
            raise Refused(f"rank 0 sent {asked['body'].size} bytes for values of {sum(sizes)} bytes")
        offsets, end = layout(sizes)
        values = Segment(end, f"the values of server {self.server.number}")
        at = 0
        for slot, offset, size in zip(slots, offsets, sizes):
            slot.value = view(values.memory, offset, slot.size, slot.dtype)
            slot.fill(asked["body"], at)
            at += size
        try:
            lent = [(peer, number, *self._lend(peer, slots, values)) for peer, (number, _, _) in met.items()]
        except BaseException:
            for peer, slot in itertools.product(met, slots):
                peer.forget(slot.number)
            raise
        self._slots.update((slot.number, slot) for slot in slots)
        self._by_key.update((slot.key, slot) for slot in slots)
        for item in lent:
            self._hand_out(*item)
        values.close()

    def _lend(
        self, peer: Peer, slots: list[Slot], values: Segment | None = None
    ) -> tuple[dict[str, Any], list[Segment]]:
        """What a worker is to know of slots; one of this host gets memory for pushes, and from which it reads.

        Parameters
        ----------
        peer : Peer
        slots : list of Slot
        values : Segment, optional
            Where their values lie: it reads them there if nobody else can change them meanwhile.
        """
        offsets, end = layout([slot.size * np.dtype(slot.dtype).itemsize for slot in slots])
        header = {"slots": [slot.number for slot in slots], "offsets": offsets, "size": end}
        if not peer.channel.local:
            return header, []
        shared = values is not None and self.sync
        whose = f"of rank {peer.rank} on server {self.server.number}"
        pushed = Segment(end, f"the pushes {whose}")
        pulled = values.share() if values is not None and shared else Segment(end, f"the pulls {whose}")
        for slot, offset in zip(slots, offsets):
            peer.pushed[slot.number] = view(pushed.memory, offset, slot.size, slot.dtype)
            peer.pulled[slot.number] = slot.value if shared else view(pulled.memory, offset, slot.size, slot.dtype)
        return {**header, "files": 2}, [pushed, pulled]

    @staticmethod
    def _hand_out(peer: Peer, number: int, header: dict[str, Any], files: list[Segment]) -> None:
        peer.slots.update(header["slots"])
        peer.tell({"answer": number, **header}, (), files)

    def _forget(self, peer: Peer, asked: _Asked) -> _Reply:
        """Take values back of which another server has refused its part; with the last worker's they are gone."""
        with self._lock:
            for number in asked["slots"]:
                slot = self._slot(peer, number)
                peer.forget(number)
                if not any(number in other.slots for other in self.roster.peers.values()):
                    del self._slots[number], self._by_key[slot.key]
        return {}

    def _replace(self, peer: Peer, asked: _Asked) -> _Reply:
        """Take other values, those of a checkpoint, unless who brings them has missed what happened since then."""
        if peer.behind:
            return self._keep(peer)
        at = 0
        for number in asked["slots"]:
            slot = self._slots[number]
            with slot.lock:
                slot.fill(asked["body"], at)
            at += slot.value.nbytes
        return {}

    def _keep(self, peer: Peer) -> _Reply:
        text = f"rank {peer.rank} has come back; what it sets is older than what the others have made, which stays"
        print(f"kvstore server {self.server.number}: {text}", flush=True)
        return {}

    def _barrier(self, peer: Peer, asked: _Asked) -> None:
        self._meetings.meet("barrier", peer, asked, self._pass)

    def _echo(self, peer: Peer, asked: _Asked) -> _Reply:
        """Answer: all that this worker said before was heard."""
        return {}

    def _pass(self, met: Attendance) -> None:
        for peer, (number, _, _) in met.items():
            peer.tell({"answer": number})

    def _gather(self, peer: Peer, asked: _Asked) -> None:
        self._meetings.meet("gathering", peer, asked, self._share)

    def _share(self, met: Attendance) -> None:
        """Tell all workers what each of them has to say, by rank."""
        values = [asked["value"] for _, (_, _, asked) in sorted(met.items(), key=lambda item: item[0].rank)]
        for peer, (number, _, _) in met.items():
            peer.tell({"answer": number, "values": values})

    def _set_optimizer(self, peer: Peer, asked: _Asked) -> _Reply:
        """Take the optimizer of the worker that comes first, or None; all of them must bring the same."""
        text = asked["config"]
        settings = None if text is None else json.loads(text)
        updater = None if text is None else opt.get_updater(config.load(text))
        with self._updating:
            if peer.behind and self._optimizers and asked["time"] not in self._optimizers:
                ours = self._updater
                return {**self._keep(peer), "kept": None if ours is None else config.dump(ours.optimizer)}
            first, others = self._optimizers.setdefault(asked["time"], (peer.rank, settings))
            if others is settings:
                if asked["time"] == max(self._optimizers):
                    self._updater = updater
            elif others != settings and not peer.returned:  # whose schedule may have gone on meanwhile
                raise Refused(
                    f"rank {peer.rank} sets the optimizer {_contrast(settings, others)}, but rank {first} has set "
                    f"{_contrast(others, settings)}; all workers must set the same"
                )
        return {}

    def _states(self, peer: Peer, asked: _Asked) -> None:
        """Tell the states when the rounds that this worker has pushed to are over, as a pull does of a value."""
        self._optimizing()
        replies = Replies()
        with self._lock:
            slots = [self._slots[number] for number in peer.slots]
        question = _Question(peer, asked["ask"], len(slots) + 1, self._read_states)
        for slot in slots:
            with slot.lock:
                failed = functools.partial(question.fail, slot)
                self._await_rounds(peer, slot, question.go_on, failed, replies)
        question.go_on()
        replies.send()

    def _read_states(self) -> _Reply:
        with self._updating:
            updater = self._optimizing()
            optimizer = updater.optimizer
            counts = [[key, n] for key, n in optimizer._index_update_count.items()]
            return {"counts": counts, "num_update": optimizer.num_update, "bodies": [updater.get_states()]}

    def _set_states(self, peer: Peer, asked: _Asked) -> _Reply:
        if peer.behind:
            return self._keep(peer)
        with self._updating:
            updater, text = self._optimizing(), asked["config"]
            if text is not None:  # that of the file
                updater = opt.Updater(config.load(text))
            updater.set_states(bytes(asked["body"]))
            updater.optimizer._index_update_count.update(map(tuple, asked["counts"]))
            updater.optimizer.num_update = max(updater.optimizer.num_update, asked["num_update"])
            self._updater = updater
        return {}

    def _set_learning_rate(self, peer: Peer, asked: _Asked) -> _Reply:
        with self._updating:
            optimizer = self._optimizing().optimizer
            if peer.behind:
                return {**self._keep(peer), "kept": optimizer.learning_rate}
            optimizer.set_learning_rate(asked["rate"])
        return {}

    def _optimizing(self) -> opt.Updater:
        if self._updater is None:
            raise Refused("there are no optimizer states: call set_optimizer first", RuntimeError)
        return self._updater

    def _count_dead(self, peer: Peer, asked: _Asked) -> _Reply:
        return {"dead": self.roster.dead(asked["timeout"])}

    def _command(self, peer: Peer, asked: _Asked) -> _Reply:
        """MXNet's servers know commands of profilers; ours have none, and say so where somebody looks."""
        print(f"kvstore server {self.server.number}: command {asked['head']!r}: {asked['text'][:200]!r}", flush=True)
        return {}

    def expire(self, now: float) -> None:
        """Fail what has waited longer than the deadline."""
        self._meetings.expire(now)
        with self._lock:
            slots = list(self._slots.values())
        replies = Replies()
        for slot in slots:
            if slot.waiting and slot.lock.acquire(blocking=False):
                try:
                    late = [wait for wait in slot.waiting if now - wait.since > self.deadline]
                    if late:
                        missing = [rank for rank, pushes in enumerate(slot.pushes) if pushes <= slot.rounds]
                        self._fail_waiting(
                            slot,
                            replies,
                            f"waited {self.deadline:g} s for round {slot.rounds + 1} of key {slot.key!r}, to which "
                            f"{self.roster.heard(missing, now)} did not push",
                            late,
                        )
                finally:
                    slot.lock.release()
        replies.send()

    def _last_heard(self, peer: Peer, asked: _Asked) -> _Reply:
        return {"heard": self.roster.heard(asked["ranks"], time.monotonic())}


#: What workers ask, and who answers: a header, whose ``bodies`` are the bytes behind it, or nothing yet.
_ANSWERS: dict[str, Callable[[Space, Peer, _Asked], _Reply | None]] = {
    "plan": Space._plan_values,
    "init": Space._init,
    "forget": Space._forget,
    "replace": Space._replace,
    "barrier": Space._barrier,
    "echo": Space._echo,
    "gather": Space._gather,
    "optimizer": Space._set_optimizer,
    "states": Space._states,
    "set_states": Space._set_states,
    "learning_rate": Space._set_learning_rate,
    "heard": Space._last_heard,
    "dead": Space._count_dead,
    "command": Space._command,
}


class _Question:
    """A question that is answered when all that it waits for is over.

    Parameters
    ----------
    peer : Peer
        Who asks.
    number : int
        Of the question.
    waits : int
        For how many things.
    answer : callable
        Gives the reply.
    """

    def __init__(self, peer: Peer, number: int, waits: int, answer: Callable[[], _Reply]) -> None:
        self._peer, self._number, self._answer = peer, number, answer
        self._waits: int | None = waits
        self._lock = threading.Lock()

    def go_on(self, replies: Replies | None = None) -> None:
        """One of these things is over."""
        with self._lock:
            if self._waits is None:
                return
            self._waits -= 1
            over = not self._waits
        if over:
            _tell(self._peer, self._number, self._answer)

    def fail(self, slot: Slot, replies: Replies, text: str) -> None:
        """One of them will never be over: say so, and wait for nothing more."""
        with self._lock:
            waited, self._waits = self._waits, None
        if waited is not None:
            self._peer.tell({"answer": self._number, "error": ["RuntimeError", f"key {slot.key!r}: {text}"]})


def _tell(peer: Peer, number: int, answer: Callable[[], _Reply | None]) -> None:
    """Answer a question, unless there is no reply yet; with what went wrong, if it did."""
    try:
        reply = answer()
    except Exception as e:
        let_through(e)
        peer.tell({"answer": number, "error": [kind_of(e), str(e)]})
    else:
        if reply is not None:
            bodies = reply.pop("bodies", ())
            peer.tell({"answer": number, **reply}, bodies)


def _fail_pull(peer: Peer, slot: Slot, replies: Replies, text: str) -> None:
    replies.add(peer, "failed", [slot.number, text])


def _several(keys: list[Any]) -> str:
    return ", ".join(map(repr, keys[:5])) + (f" … ({len(keys)} keys)" if len(keys) > 5 else "")


def _contrast(settings: dict[str, Any] | None, others: dict[str, Any] | None) -> str:
    """An optimizer, with what other settings have otherwise."""
    if settings is None:
        return "None"
    theirs = {} if others is None else others["state"]
    differ = {name: value for name, value in settings["state"].items() if theirs.get(name) != value}
    return f"{settings['optimizer']}({', '.join(f'{name}={json.dumps(value)}' for name, value in differ.items())})"


def _difference(rank: int, mine: dict[Any, Any], other: int, theirs: dict[Any, Any]) -> str | None:
    """How the keys of two workers differ that are to be the same."""
    if list(mine) != list(theirs):
        key = next(b if a == () else a for a, b in itertools.zip_longest(mine, theirs, fillvalue=()) if a != b)
        return f"rank {rank} and rank {other} do not have the same keys in the same order: they differ at {key!r}"
    for key in mine:
        ours, other_ones = (
            f"has shape {tuple(shape)} of {dtype} ({stype})" for shape, dtype, stype in (mine[key], theirs[key])
        )
        if ours != other_ones:
            return f"of key {key!r} rank {rank} {ours}, rank {other} {other_ones}"
    return None
