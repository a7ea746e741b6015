"""Values in the memory of one process, added up on the CPU or on the devices themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from mxcore.base import error
from mxcore.context import Context, cpu
from mxcore.kvstore import KVStore
from mxcore.kvstore.checks import check_arrays, check_fresh, check_row_sparse, leaves_sparse
from mxcore.kvstore.compression import Compression, compressor
from mxcore.kvstore.keys import Groups, Key
from mxcore.kvstore.kvstore import RowGroups
from mxcore.kvstore.together import add_each, move_each, serves, shares, take_each, write_each
from mxcore.kvstore.values import add, held, pick_rows, write
from mxcore.ndarray import NDArray
from mxcore.optimizer import Updater
from mxcore.plugin import fork_safe_lock, locked

__all__ = ["DeviceKVStore", "LocalKVStore"]


class LocalKVStore(KVStore):
    """A store that adds up on the CPU, in the order of the engine, which nothing waits for; threads may share it.

    Parameters
    ----------
    type : str
        The name under which it was asked for.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.kv.create('local')``. Beyond it, gradient compression works here, too.
    """

    def __init__(self, type: str = "local") -> None:
        super().__init__(type)
        self._stored: dict[Key, NDArray] = {}
        self._compress: Compression | None = None
        self._object_lock = fork_safe_lock()
        #: Whether some key is at home on a device that adds up several together.
        self._batched = False

    def _home(self, key: Key, arrays: Sequence[NDArray]) -> Context:
        """The context where a key is added up and updated."""
        return cpu(0)

    # -- what the base calls -----------------------------------------------------------------------------------------

    @locked
    def _init(self, values: list[tuple[Key, NDArray]]) -> None:
        check_fresh((key for key, _ in values), self._stored)
        self._replace(values)

    @locked
    def _replace(self, values: Iterable[tuple[Key, NDArray]]) -> None:
        """Give keys values, also other ones than they have; a Module uses it where there is one, unlike in MXNet."""
        for key, array in values:
            self._stored[key] = held(array, self._home(key, [array]))

    @locked
    def _push(self, groups: Groups, priority: int) -> None:
        for key, arrays in groups.items():
            self._check("push", key, arrays)
        if self._batched and self._compress is None:
            for some in shares(groups.items()):
                homes = [self._home(key, arrays) for key, arrays in some]
                totals = add_each([arrays for _, arrays in some], homes)
                take_each(self._stored, self._updater, some, totals)
            return
        moves: list[tuple[Key, NDArray, NDArray]] = []
        updater: Any = self._updater
        most = self._together()
        for key, arrays in groups.items():
            home = self._home(key, arrays)
            total = self._sum(key, arrays, home)
            if updater is None:
                self._stored[key] = total.copy() if total is arrays[0] else total
                continue
            stored = self._stored[key] = self._stored[key].as_in_context(home)
            if moves and (len(moves) == most or moves[-1][2].context is not home):
                move_each(updater, moves)
                moves = []
            moves.append((key, total, stored))
        if moves:
            move_each(updater, moves)

    @locked
    def _pull(self, groups: Groups, priority: int, ignore_sparse: bool) -> None:
        for key, outs in groups.items():
            self._check("pull", key, outs)
        together: list[tuple[NDArray, NDArray]] = []
        for key, outs in groups.items():
            for out in outs:
                if leaves_sparse(key, out, ignore_sparse):
                    continue
                if self._batched:
                    together.append((self._stored[key], out))
                else:
                    write(self._stored[key], out)
        if together:
            write_each(together)

    @locked
    def _pushpull(self, groups: Groups, outs: Groups, priority: int) -> None:
        super()._pushpull(groups, outs, priority)  # no other thread pushes between the two

    @locked
    def _pull_rows(self, groups: RowGroups, priority: int) -> None:
        for key, wanted in groups.items():
            outs = [out for out, _ in wanted]
            self._check("row_sparse_pull", key, outs)
            check_row_sparse(key, self._stored[key], outs)
        for key, wanted in groups.items():
            for out, row_ids in wanted:
                try:
                    write(pick_rows(self._stored[key], row_ids), out, mine=True)
                except IndexError as e:
                    raise error(IndexError, f"kvstore: row_sparse_pull of key {key!r}: {e}") from e

    def _together(self) -> int:
        """How many values one call of the updater moves: one, unless it is an optimizer's that takes several."""
        return self._updater.together() if isinstance(self._updater, Updater) else 1

    def _sum(self, key: Key, arrays: Sequence[NDArray], home: Context) -> NDArray:
        """The sum of what devices send; of a job's only worker, what it sends to servers elsewhere: their sum."""
        if self._compress is None:
            return add(arrays, home)
        if "dist" in self._type:
            return self._compress(key, add(arrays, home))
        return add([self._compress((key, i), a) for i, a in enumerate(arrays)], home)

    def _check(self, verb: str, key: Key, arrays: Sequence[NDArray]) -> None:
        check_arrays(verb, key, self._stored.get(key), arrays)
        if verb == "push" and self._compress is not None:
            self._compress.check(key, arrays)

    @locked
    def save_optimizer_states(self, fname: str | PathLike[str], dump_optimizer: bool = False) -> None:
        super().save_optimizer_states(fname, dump_optimizer)

    @locked
    def load_optimizer_states(self, fname: str | PathLike[str]) -> None:
        super().load_optimizer_states(fname)

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        self._compress = compressor(compression_params)


class DeviceKVStore(LocalKVStore):
    """A store that adds up on the devices: each key on one of those that push it, chosen so that all get a like share.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.kv.create('device')``.
    """

    def __init__(self, type: str = "device") -> None:
        super().__init__(type)
        self._homes: dict[Key, Context] = {}
        self._load: dict[Context, int] = {}  # elements of the keys at home in a context

    def _home(self, key: Key, arrays: Sequence[NDArray]) -> Context:
        home = self._homes.get(key)
        if home is None:
            home = min((a.context for a in arrays), key=lambda c: self._load.get(c, 0))
            self._batched = self._batched or serves(home)
            if key not in self._stored:  # a first value comes from one device only; who pushes shows later
                return home
            self._homes[key] = home
            self._load[home] = self._load.get(home, 0) + arrays[0].size
        return home

    def batches(self, contexts: Sequence[Context]) -> bool:
        return len(contexts) > 1 and all(map(serves, contexts))
