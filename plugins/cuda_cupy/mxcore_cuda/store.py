"""KVStore 'nccl': values on GPUs, added up and handed out by NCCL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

from mxcore.context import Context
from mxcore.kvstore import KVStore
from mxcore.kvstore.checks import check_arrays, check_fresh, leaves_sparse
from mxcore.kvstore.keys import Groups, Key
from mxcore.kvstore.together import add_each, launch, shares, take_each, write_each
from mxcore.kvstore.values import held
from mxcore.ndarray import NDArray, empty
from mxcore.plugin import error, fork_safe_lock, locked

from . import nccl, probe
from .nccl import Step

__all__ = ["NCCLKVStore"]

Item = tuple[Key, Sequence[NDArray]]


class NCCLKVStore(KVStore):
    """A store of dense values that NCCL adds up over the GPUs that push, and hands out to those that pull.

    A key is at home on one of the GPUs that push it, chosen so that all get a like share; there it is updated.

    Parameters
    ----------
    type : str
        The name under which it was asked for.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.kv.create('nccl')``. Values may be initialised from, and pulled into, arrays of
    any context; what one GPU brings several times is added up there first.
    """

    def __init__(self, type: str = "nccl") -> None:
        if not probe.count():
            raise error(RuntimeError, f"kvstore {type!r} is for GPUs: {probe.why()}; 'device' is for all devices")
        nccl.need()
        super().__init__(type)
        self._stored: dict[Key, NDArray] = {}
        self._homes: dict[Key, Context] = {}
        self._load: dict[Context, int] = {}  # elements of the keys at home on a GPU
        self._object_lock = fork_safe_lock()

    def batches(self, contexts: Sequence[Context]) -> bool:
        return len(contexts) > 1

    # -- what the base calls -----------------------------------------------------------------------------------------

    @locked
    def _init(self, values: list[tuple[Key, NDArray]]) -> None:
        check_fresh((key for key, _ in values), self._stored)
        self._replace(values)

    @locked
    def _replace(self, values: Iterable[tuple[Key, NDArray]]) -> None:
        """Give keys values, also other ones than they have; a Module uses it where there is one."""
        values = list(values)
        for key, array in values:
            self._refuse_sparse("init", key, [array])
        for key, array in values:
            self._stored[key] = held(array, self._homes.get(key, array.context))

    @locked
    def _push(self, groups: Groups, priority: int) -> None:
        self._check_push(groups)
        for some in shares(groups.items()):
            homes = [self._home(key, arrays) for key, arrays in some]
            take_each(self._stored, self._updater, some, self._sums(some, homes))

    @locked
    def _pull(self, groups: Groups, priority: int, ignore_sparse: bool) -> None:
        for key, outs in groups.items():
            check_arrays("pull", key, self._stored.get(key), outs)
            if not ignore_sparse:
                self._refuse_sparse("pull", key, outs)
        self._hand_out(
            [
                (self._stored[key], [out for out in outs if not leaves_sparse(key, out, ignore_sparse)])
                for key, outs in groups.items()
            ]
        )

    @locked
    def _pushpull(self, groups: Groups, outs: Groups, priority: int) -> None:
        if self._updater is not None or not _apart(groups, outs):
            super()._pushpull(groups, outs, priority)
            return
        self._check_push(groups)
        here = [key for key, arrays in groups.items() if key in outs and _meet(arrays, outs[key])]
        if here:
            self._sum_everywhere([(key, groups[key], outs[key]) for key in here])
        pushed, pulled = ({k: v for k, v in given.items() if k not in here} for given in (groups, outs))
        if pushed or pulled:
            super()._pushpull(pushed, pulled, priority)

    # -- checks ------------------------------------------------------------------------------------------------------

    def _check_push(self, groups: Groups) -> None:
        for key, arrays in groups.items():
            self._refuse_sparse("push", key, arrays)
            check_arrays("push", key, self._stored.get(key), arrays)
            for a in arrays:
                if a.context.device_type != "gpu":
                    raise error(
                        ValueError,
                        f"kvstore: push of key {key!r}: {self.type!r} adds up what GPUs bring, but an array is on "
                        f"{a.context}; 'device' and 'local' take arrays of the CPU",
                    )
            if len({a.context for a in arrays}) > 1 and not nccl.adds(arrays[0]._data.dtype):
                raise error(
                    TypeError, f"kvstore: push of key {key!r}: NCCL adds up no {arrays[0]._data.dtype}; 'device' does"
                )

    def _refuse_sparse(self, verb: str, key: Key, arrays: Sequence[NDArray]) -> None:
        for a in arrays:
            if a.stype != "default":
                raise error(
                    TypeError,
                    f"kvstore: {verb} of key {key!r}: {self.type!r} has dense values only, the array on {a.context} is "
                    f"{a.stype}; 'device' and 'local' take it",
                )

    # -- sums --------------------------------------------------------------------------------------------------------

    def _home(self, key: Key, arrays: Sequence[NDArray]) -> Context:
        home = self._homes.get(key)
        if home is None:
            home = self._homes[key] = min((a.context for a in arrays), key=lambda c: self._load.get(c, 0))
            self._load[home] = self._load.get(home, 0) + arrays[0].size
        return home

    def _sums(self, items: Sequence[Item], homes: Sequence[Context]) -> list[NDArray]:
        """The sum of each key, where it is at home."""
        parts = _of_each_gpu([arrays for _, arrays in items])
        totals: list[Any] = [None] * len(items)
        work = _Work()
        for i, (found, home) in enumerate(zip(parts, homes)):
            if len(found) == 1:
                (totals[i],) = found.values()
                continue
            root = home if home in found else next(iter(found))
            totals[i] = empty(next(iter(found.values())).shape, root, found[root]._data.dtype)
            work.add("Reduce", root, found, {root: totals[i]})
        work.run()
        return add_each([[total] for total in totals], homes)

    def _sum_everywhere(self, items: Sequence[tuple[Key, Sequence[NDArray], Sequence[NDArray]]]) -> None:
        """Let sums replace the values of keys, and write them to all the GPUs that they come from."""
        work, copies = _Work(), []
        for key, arrays, outs in items:
            home, old = self._home(key, arrays), self._stored[key]
            value = old if old.context is home else empty(old.shape, home, old._data.dtype)
            targets = {out.context: out for out in outs}
            copies.append((value, targets[home]))
            self._stored[key] = targets[home] = value
            work.add("AllReduce", home, {a.context: a for a in arrays}, targets)
        work.run()
        write_each(copies)

    def _hand_out(self, items: Sequence[tuple[NDArray, Sequence[NDArray]]]) -> None:
        """Write values to arrays, those on other GPUs by NCCL."""
        storages = [id(out._st) for _, outs in items for out in outs]
        alone = len({*storages}) < len(storages)  # their order counts
        work, copies = _Work(), []
        for value, outs in items:
            home, targets = value.context, dict[Context, NDArray]()
            for out in outs:
                if alone or home.device_type != "gpu" or out.context in targets or not _alike(value, out):
                    copies.append((value, out))
                else:
                    targets[out.context] = out
            if targets.keys() <= {home}:
                copies += [(value, out) for out in targets.values()]
            else:
                targets.setdefault(home, value)
                work.add("Broadcast", home, {home: value}, targets)
        work.run()
        write_each(copies)

    @locked
    def save_optimizer_states(self, fname: str | PathLike[str], dump_optimizer: bool = False) -> None:
        super().save_optimizer_states(fname, dump_optimizer)

    @locked
    def load_optimizer_states(self, fname: str | PathLike[str]) -> None:
        super().load_optimizer_states(fname)


class _Work:
    """Calls of NCCL, a group of them for all keys over the same GPUs."""

    def __init__(self) -> None:
        self._found: dict[tuple[Context, ...], list[tuple[Step, list[NDArray], list[NDArray]]]] = {}

    def add(self, name: str, root: Context, sources: dict[Context, NDArray], targets: dict[Context, NDArray]) -> None:
        """Add a call; each array is on the context it stands by."""
        contexts = tuple(sorted({*sources, *targets}, key=lambda c: c.device_id))
        if not next(iter(sources.values())).size:
            return
        given = {ctx: a if a._data.flags.c_contiguous else a.copy() for ctx, a in sources.items()}
        step = Step(
            [_data(given.get(ctx)) for ctx in contexts],
            [_data(targets.get(ctx)) for ctx in contexts],
            name,
            contexts.index(root),
        )
        self._found.setdefault(contexts, []).append((step, [*given.values()], [*targets.values()]))

    def run(self) -> None:
        """Launch them."""
        for contexts, some in self._found.items():
            found, steps = nccl.clique(tuple(ctx.device_id for ctx in contexts)), [step for step, _, _ in some]
            launch(
                lambda found=found, steps=steps: found.run(steps),  # type: ignore[misc]
                [a for _, reads, _ in some for a in reads],
                [a for _, _, writes in some for a in writes],
                contexts,
            )


def _data(a: NDArray | None) -> Any:
    return None if a is None else a._data


def _of_each_gpu(groups: Sequence[Sequence[NDArray]]) -> list[dict[Context, NDArray]]:
    """What each GPU has of each group, added up there."""
    found: list[dict[Context, NDArray]] = []
    several: list[tuple[int, Context, list[NDArray]]] = []
    for i, arrays in enumerate(groups):
        mine: dict[Context, list[NDArray]] = {}
        for a in arrays:
            mine.setdefault(a.context, []).append(a)
        found.append({ctx: some[0] for ctx, some in mine.items()})
        several += [(i, ctx, some) for ctx, some in mine.items() if len(some) > 1]
    sums = add_each([some for _, _, some in several], [ctx for _, ctx, _ in several])
    for (i, ctx, _), total in zip(several, sums):
        found[i][ctx] = total
    return found


def _alike(value: NDArray, out: NDArray) -> bool:
    """Whether NCCL can write a value, or what is like it, to an array."""
    dtype = value._data.dtype
    return (
        out.context.device_type == "gpu"
        and out.stype == "default"
        and out._data.dtype == dtype
        and bool(value._data.flags.c_contiguous and out._data.flags.c_contiguous)
        and nccl.adds(dtype)
    )


def _meet(arrays: Sequence[NDArray], outs: Sequence[NDArray]) -> bool:
    """Whether sums go to the GPUs that they come from, one array on each of several."""
    places = {a.context for a in arrays}
    return (
        len(places) > 1
        and len(arrays) == len(outs) == len(places)
        and places == {out.context for out in outs}
        and all(out.shape == arrays[0].shape and _alike(arrays[0], out) for out in outs)
    )


def _apart(groups: Groups, outs: Groups) -> bool:
    """Whether nothing is written that another key is read from, or that is written once more."""
    read: dict[int, list[Any]] = {}
    for key, arrays in groups.items():
        for a in arrays:
            read.setdefault(id(a._st), []).append((key, a._data))
    written: set[int] = set()
    for key, arrays in outs.items():
        for out in arrays:
            place = id(out._st)
            if place in written or any(k != key or data is not out._data for k, data in read.get(place, ())):
                return False
            written.add(place)
    return True
