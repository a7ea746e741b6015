"""The store of a worker whose values lie on servers."""

from __future__ import annotations

import functools
import itertools
import math
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from typing import Any

import numpy as np

from mxcore import nd
from mxcore import optimizer as opt
from mxcore.base import MXNetError, MXNetWarning, error
from mxcore.context import Context, cpu
from mxcore.kvstore import KVStore, KVStoreBase
from mxcore.kvstore.checks import check_arrays, check_fresh, check_row_sparse, leaves_sparse
from mxcore.kvstore.compression import Compression, Narrow, TwoBit, compressor
from mxcore.kvstore.keys import Groups, Key
from mxcore.kvstore.kvstore import RowGroups, maker
from mxcore.kvstore.transfers import Arrival, Departure
from mxcore.kvstore.values import add, rows_asked, write
from mxcore.ndarray import NDArray
from mxcore.optimizer import config
from mxcore.plugin import Promise, Uninterrupted, fork_safe_lock, let_through, suppress

from . import encodings
from .client import Link, Pull, Push, Slot
from .job import Job, Member, current_job
from .peer import kind_of, told
from .slot import rows_from

__all__ = ["DistKVStore", "create"]

#: How many elements of small values go together.
_BATCH_ELEMENTS = 1 << 18

_ordinals = itertools.count()


def create(type: str) -> KVStoreBase:
    """Make a distributed store of a type; without a job around it, one that does the same for a single worker."""
    job = current_job(type)
    if job is not None:
        return DistKVStore(type, job, next(_ordinals))
    return maker("device" if "device" in type else "local")(type)


class DistKVStore(Member, KVStore):
    """Values on servers, which add up what all workers push.

    Parameters
    ----------
    type : str
        With ``async`` in it every push counts at once, else those of all workers together.
    job : Job
        Who this worker is, and where the servers are.
    ordinal : int
        Which of the job's stores this is.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.kv.create('dist_sync')``. Each store has keys and an optimizer of its own: the
    first that a worker makes is the first of the others, and so on. Here ``save_optimizer_states`` works, and numbers
    can be sent in half the bytes (``{'type': 'fp16'}`` and ``'bfloat16'``).
    """

    def __init__(self, type: str, job: Job, ordinal: int = 0) -> None:
        super().__init__(type)
        self._job = job
        self._sync = "async" not in type
        self._parts: dict[Key, list[Slot]] = {}
        self._specs: dict[Key, NDArray] = {}
        self._compress: Compression | None = None
        self._pushing = fork_safe_lock()
        self._optimizers = 0
        #: Whether there may be rounds that are not over.
        self._begun = False
        hello = job.hello(ordinal, type, self._sync)
        self._links: list[Link] = []
        weakref.finalize(self, _drop, self._links).atexit = False  # first: an interrupt may come anywhere
        try:
            for address in job.servers:
                link = Link(address, job.token, hello, job.deadline, job.transport)
                with Uninterrupted():
                    self._links.append(link)
                    link.begin()
            self._check_order()
        except BaseException:
            self.close()
            raise

    def _check_order(self) -> None:
        found = [link.number for link in self._links]
        if found != list(range(self._links[0].servers)):
            raise error(
                ValueError,
                f"kvstore: the job has {self._links[0].servers} servers, but MXCORE_KV_SERVERS lists those with the "
                f"numbers {found}; it must be the same for all workers",
            )

    # -- what the base calls -----------------------------------------------------------------------------------------

    def _init(self, values: list[tuple[Key, NDArray]]) -> None:
        with self._pushing:
            check_fresh((key for key, _ in values), self._parts)
            fresh: dict[Key, list[Slot]] = {key: [] for key, _ in values}
            asked = [[key, a.shape, np.dtype(a.dtype).name, a.stype] for key, a in values]
            (answer, _) = self._ask(0, "plan", keys=asked).result()
            by_link: dict[int, list[tuple[Slot, NDArray]]] = {}
            for (key, array), parts in zip(values, answer["parts"]):
                row = max(1, math.prod(array.shape[1:]))
                for server, start, stop in parts:
                    shape = array.shape if stop - start == array.size else ((stop - start) // row, *array.shape[1:])
                    slot = Slot(key, start, stop, shape, np.dtype(array.dtype))
                    slot.link = self._links[server]
                    fresh[key].append(slot)
                    by_link.setdefault(server, []).append((slot, array))
            waits = []
            for server, slots in by_link.items():
                specs = [[s.key, s.start, s.stop, s.shape, s.dtype.name, a.stype] for s, a in slots]
                bodies = [_host(a)[s.start : s.stop] for s, a in slots] if self.rank == 0 else []
                waits.append((slots, self._ask(server, "init", bodies, keys=specs)))
            failure = next((e for _, made in waits if (e := made.exception()) is not None), None)
            for slots, made in waits:
                link = slots[0][0].link
                if failure is None:
                    answer, segments = made.result()
                    link.lend(answer, [s for s, _ in slots], segments if answer.get("files") else None)
                elif made.exception() is None:  # the keys are to be free again, on all servers that can be asked
                    with suppress(MXNetError):
                        link.ask("forget", slots=made.result()[0]["slots"]).result()
            if failure is not None:
                raise failure
            self._parts.update(fresh)
            self._specs.update(values)

    def _replace(self, values: Sequence[tuple[Key, NDArray]]) -> None:
        """Give keys values, those of the first worker, also other ones than they have."""
        if self._sync:
            for link in self._links:
                link.settle()  # what was pulled is read where it is replaced
            self.barrier()
        if self.rank == 0:
            for key, array in values:
                for slot in self._parts[key]:
                    host = _host(array)[slot.start : slot.stop]
                    slot.link.ask("replace", [host], slots=[slot.number]).result()
        if self._sync:
            self.barrier()

    def _home(self, arrays: Sequence[NDArray]) -> Context:
        return arrays[0].context if "device" in self._type else cpu(0)

    def _push(self, groups: Groups, priority: int) -> None:
        for key, arrays in groups.items():
            self._check("push", key, arrays)
        for link in self._links:
            link.check()
        self._begun = True
        pushes: list[tuple[Slot, Push]] = []
        size = 0
        try:
            with self._pushing:
                for key, arrays in groups.items():
                    total = arrays[0] if len(arrays) == 1 else add(arrays, self._home(arrays))
                    pushes.extend(self._dense(key, total) if total.stype == "default" else self._rows(key, total))
                    size += total.size
                    if size > _BATCH_ELEMENTS:
                        self._put(pushes, priority)
                        pushes, size = [], 0
                self._put(pushes, priority)
        finally:
            _give_back(pushes)  # the traceback of an error must not keep arrays from being written to

    @staticmethod
    def _put(entries: Sequence[tuple[Slot, Any]], priority: int) -> None:
        """Give each server's link its entries."""
        by_link: dict[Link, list[tuple[Slot, Any]]] = {}
        for slot, entry in entries:
            by_link.setdefault(slot.link, []).append((slot, entry))
        with Uninterrupted():  # all servers, or none
            for link, batch in by_link.items():
                link.put(batch, priority)

    def _dense(self, key: Key, total: NDArray) -> Iterator[tuple[Slot, Push]]:
        """The pushes of a dense array, whose numbers are copied now, or when they are computed."""
        how = self._compress
        if isinstance(how, TwoBit):
            quantised = _host(how(key, total))
            for slot in self._parts[key]:
                yield slot, Push("2bit", encodings.pack_two_bits(quantised[slot.start : slot.stop]), how.threshold)
            return
        slots = self._parts[key]
        departure = Departure(total)
        for slot in slots:
            push = Push("raw")
            try:
                if isinstance(how, Narrow):
                    push.kind, push.body = how.type, np.empty(slot.size, how.dtype)
                elif slot.free:
                    slot.free, push.kind = False, "slot"  # at once: a signal's handler may push, too
                else:  # the server has not added up the last one yet
                    push.body = np.empty(slot.size, slot.dtype)
                if departure.ready:
                    departure.read(slot.push if push.kind == "slot" else push.body, slot.start)
                else:
                    push.departure = departure
                    departure.when_ready(functools.partial(slot.link.go_on, slot))
                yield slot, push
            except BaseException:
                _give_back([(slot, push)])
                raise

    def _rows(self, key: Key, total: NDArray) -> Iterator[tuple[Slot, Push]]:
        """The pushes of a row-sparse array: to each part its rows, even if there are none."""
        ids, data = total.indices.asnumpy(), total.data.asnumpy()
        for slot in self._parts[key]:
            first, last = slot.rows
            mine = (ids >= first) & (ids < last)
            local = np.ascontiguousarray(ids[mine] - first, np.int64)
            body = np.concatenate([local.view(np.uint8), np.ascontiguousarray(data[mine]).reshape(-1).view(np.uint8)])
            yield slot, Push("rows", body, len(local))

    def _pull(self, groups: Groups, priority: int, ignore_sparse: bool) -> None:
        for key, outs in groups.items():
            self._check("pull", key, outs)
        batch: list[tuple[Key, list[NDArray]]] = []
        size = 0
        for key, outs in groups.items():
            dense = [out for out in outs if out.stype == "default"]
            for out in outs:
                if out.stype != "default" and not leaves_sparse(key, out, ignore_sparse):
                    whole = nd.empty(out.shape, cpu(), out.dtype)
                    self._pull_dense([(key, [whole])], priority)
                    write(whole, out)
            if dense:
                batch.append((key, dense))
                size += dense[0].size
                if size > _BATCH_ELEMENTS:
                    self._pull_dense(batch, priority)
                    batch, size = [], 0
        if batch:
            self._pull_dense(batch, priority)

    def _pull_dense(self, values: list[tuple[Key, list[NDArray]]], priority: int) -> None:
        arrival = Arrival([outs for _, outs in values])
        pulls = []
        for i, (key, _) in enumerate(values):
            for slot in self._parts[key]:
                pulls.append((slot, Pull(functools.partial(arrival.write, i), arrival.fail)))
        arrival.expect(lambda: self._put(pulls, priority))

    def _pull_rows(self, groups: RowGroups, priority: int) -> None:
        for key, wanted in groups.items():
            outs = [out for out, _ in wanted]
            self._check("row_sparse_pull", key, outs)
            check_row_sparse(key, self._specs[key], outs)
        for key, wanted in groups.items():
            for out, row_ids in wanted:
                try:
                    rows = rows_asked(row_ids, self._specs[key].shape[0])
                except IndexError as e:
                    raise error(IndexError, f"kvstore: row_sparse_pull of key {key!r}: {e}") from e
                write(self._rows_of(key, rows, priority), out)

    def _rows_of(self, key: Key, rows: np.ndarray[Any, Any], priority: int) -> NDArray:
        spec = self._specs[key]
        waits = []
        for slot in self._parts[key]:
            first, last = slot.rows
            come = Promise()
            mine = rows[(rows >= first) & (rows < last)] - first

            def arrived(ids: Any, data: Any, first: int = first, come: Promise = come) -> None:
                come.set_result((ids + first, data))

            slot.link.put([(slot, Pull(arrived, come.set_exception, mine))], priority)
            waits.append(come)
        parts = [come.result() for come in waits]
        ids = np.concatenate([ids for ids, _ in parts])
        data = np.concatenate([data for _, data in parts]).reshape(len(ids), *spec.shape[1:])
        return rows_from(ids, data, spec.shape)

    def _check(self, verb: str, key: Key, arrays: Sequence[NDArray]) -> None:
        check_arrays(verb, key, self._specs.get(key), arrays)
        if verb == "push" and self._compress is not None:
            self._compress.check(key, arrays)

    # -- updating ----------------------------------------------------------------------------------------------------

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        self._compress = compressor(compression_params)

    def _tell_rate(self, rate: float) -> float:
        self._end_rounds()
        kept = [answer["kept"] for answer, _ in self._ask_all("learning_rate", rate=rate) if "kept" in answer]
        return float(kept[0]) if kept else rate

    def set_updater(self, updater: Any) -> None:
        """As for a `KVStore`, of an optimizer's updater that has no states yet, or None; each worker sets it."""
        if updater is not None and not isinstance(updater, opt.Updater):
            raise error(
                TypeError,
                f"kvstore: values of a {self._type} store change on servers, in other processes, where a function "
                "cannot go; use set_optimizer, or update on the workers (update_on_kvstore=False)",
            )
        if updater is not None and updater.states:
            raise error(
                ValueError,
                f"kvstore: the states of an updater do not go to the servers of a {self._type} store; use "
                "set_optimizer and load_optimizer_states",
            )
        text = None if updater is None else config.dump(updater.optimizer)
        self._optimizers += 1
        self._end_rounds()
        for answer, _ in self._ask_all("optimizer", config=text, time=self._optimizers):
            if "kept" in answer:  # that of the others, who have gone on meanwhile
                kept = answer["kept"]
                updater = None if kept is None else opt.get_updater(config.load(kept))
        super().set_updater(updater)  # for those who ask this worker for the optimizer
        split = [key for key, slots in self._parts.items() if len(slots) > 1]
        if split and updater is not None and updater.optimizer.reads_whole:
            warnings.warn(
                f"kvstore: {type(updater.optimizer).__name__} goes by norms of whole arrays, but the value of key "
                f"{split[0]!r} was split over servers, each of which takes those of its part; set the optimizer before "
                "values, as Module and Trainer do, or set MXNET_KVSTORE_BIGARRAY_BOUND above its number of elements",
                MXNetWarning,
                stacklevel=4,
            )

    def _end_rounds(self) -> None:
        """Wait until rounds that have begun are over, which go by what was set before them."""
        if self._sync and self._begun:
            self.barrier()

    def save_optimizer_states(self, fname: str | PathLike[str], dump_optimizer: bool = False) -> None:
        updater = self._states("save states of")
        updater.states = self._gather_states(updater.optimizer)
        super().save_optimizer_states(fname, dump_optimizer)

    def _gather_states(self, optimizer: opt.Optimizer) -> dict[Any, Any]:
        """The states of all servers: of split values, those of the parts one behind the other.

        The optimizer gets the counts of updates that the servers have.
        """
        whole = opt.Updater(opt.Optimizer())
        parts: list[dict[Any, Any]] = []
        for link, (answer, states) in zip(self._links, self._ask_all("states")):
            whole.set_states(bytes(states))
            parts.append(whole.states)
            # A file's optimizer brought the counts of all keys to each server; those of others have not moved there.
            here = {key for key, slots in self._parts.items() if any(slot.link is link for slot in slots)}
            optimizer._index_update_count.update({key: n for key, n in answer["counts"] if key in here})
            optimizer.num_update = max(optimizer.num_update, answer["num_update"])
        return {
            key: _join([parts[slot.link.number][key] for slot in slots], [slot.shape for slot in slots])
            for key, slots in self._parts.items()
            if all(key in parts[slot.link.number] for slot in slots)
        }

    def load_optimizer_states(self, fname: str | PathLike[str]) -> None:
        """As for a `KVStore`; the first worker's file counts, and others need none."""
        self._states("load states into")
        self._end_rounds()
        loaded: dict[str, Any] = {}
        failure = None
        if self.rank == 0:
            try:
                loaded["config"] = self._load_states(fname)
            except Exception as e:
                let_through(e)
                failure, loaded["error"] = e, [kind_of(e), str(e)]
        if self._sync:
            loaded = self._ask(0, "gather", value=loaded).result()[0]["values"][0]
        if failure is not None:
            raise failure
        if "error" in loaded:
            raise told(*loaded["error"])
        if self.rank and loaded.get("config"):
            self._updater = opt.get_updater(config.load(loaded["config"]))

    def _load_states(self, fname: str | PathLike[str]) -> str | None:
        """Give the states of a file to the servers, with its optimizer, which is returned as they get it."""
        before = self._states("load states into").optimizer
        updater = opt.Updater(before)
        updater.replicas = False
        updater.load(fname)
        optimizer = updater.optimizer
        text = None if optimizer is before else config.dump(optimizer)
        for link in self._links:
            mine = opt.Updater(optimizer)
            for key, slots in self._parts.items():
                for slot in slots:
                    if slot.link is link and key in updater.states:
                        mine.states[key] = _cut(updater.states[key], slice(*slot.rows), self._specs[key].shape)
            counts = [[key, n] for key, n in optimizer._index_update_count.items() if key in mine.states]
            header = {"config": text, "counts": counts, "num_update": optimizer.num_update}
            link.ask("set_states", [mine.get_states()], **header).result()
        self._updater = updater
        return text

    # -- workers -----------------------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """Wait until all workers have come here, and what they pushed before has come to all servers.

        Raises
        ------
        MXNetError
            If one does not come before the deadline, with its rank and when it was heard of.
        """
        for answer in [self._ask(i, "echo") for i in range(1, len(self._links))]:
            answer.result()
        self._ask(0, "barrier").result()

    def _count_dead(self, seconds: float) -> int:
        return int(self._ask(0, "dead", timeout=seconds).result()[0]["dead"])

    def _command(self, head: int, body: str) -> None:
        """As for a `KVStoreBase`; servers print commands that they do not know."""
        self._ask_all("command", head=head, text=body)

    def _ask(self, server: int, call: str, bodies: Sequence[Any] = (), **header: Any) -> Promise:
        return self._links[server].ask(call, bodies, **header)

    def _ask_all(self, call: str, **header: Any) -> list[tuple[dict[str, Any], Any]]:
        """Ask all servers the same, and wait for their answers."""
        return [answer.result() for answer in [link.ask(call, **header) for link in self._links]]

    def close(self) -> None:
        """Leave the job; what was pushed before still counts."""
        with ExitStack() as ends:
            for link in self._links:
                ends.callback(link.close)


def _give_back(pushes: list[tuple[Slot, Push]]) -> None:
    """Let go of pushes, and of the memory of those that will not be sent."""
    while pushes:
        slot, push = pushes.pop()
        if push.kind == "slot" and not push.put:
            slot.free = True


def _drop(links: Sequence[Link]) -> None:
    for link in links:
        link.drop()


def _host(array: NDArray) -> np.ndarray[Any, Any]:
    """Elements of an array in one dimension, on the host."""
    return array.asnumpy().reshape(-1)


def _join(states: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> Any:
    """The state of a value from those of its parts."""
    if len(states) == 1:
        return states[0]
    if isinstance(states[0], (list, tuple)):
        return type(states[0])(_join(inner, shapes) for inner in zip(*states))
    if isinstance(states[0], NDArray) and all(s.ndim and s.shape[0] == shape[0] for s, shape in zip(states, shapes)):
        return nd.concat(*[s.tostype("default") for s in states], dim=0).tostype(states[0].stype)
    return states[0]


def _cut(state: Any, rows: slice, shape: tuple[int, ...]) -> Any:
    """The state of a part from that of the value."""
    if isinstance(state, (list, tuple)):
        return type(state)(_cut(inner, rows, shape) for inner in state)
    if isinstance(state, NDArray) and state.ndim and state.shape[0] == shape[0]:
        return state.tostype("default")[rows].copy().tostype(state.stype)
    return state
