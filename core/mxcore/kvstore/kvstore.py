"""The base of stores with MXNet's whole interface, and `create`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import Any, TypeAlias, TypeVar

from .. import kinds
from .. import optimizer as opt
from .._core import tables
from .._core.errors import suggest
from .._core.state import state
from .._core.transfer import check_writable
from .._io_files import write_atomic
from ..autograd import pause
from ..base import error
from ..ndarray import NDArray
from ..optimizer.base import checked_rate
from .base import KVStoreBase, capable
from .keys import Groups, Key, check_index, group, pairs, singles

__all__ = ["KVStore", "RowGroups", "create", "maker", "writable"]

#: What changes stored arrays in place: called with key, pushed and stored array.
Updater: TypeAlias = Callable[[Key, NDArray, NDArray], Any]
_T = TypeVar("_T")
#: Row-sparse arrays by key, each with the numbers of the rows that it gets.
RowGroups: TypeAlias = dict[Key, list[tuple[NDArray, NDArray]]]


@contextmanager
def _at(priority: Any) -> Iterator[int]:
    """What is pushed to workers meanwhile has this priority, which is given back as an int."""
    checked = check_index("a priority", priority)
    was, state.priority = state.priority, checked
    try:
        yield checked
    finally:
        state.priority = was


class KVStore(KVStoreBase):
    """Values by key, shared by devices or machines. Made by `create`.

    This class reads what users give and keeps the updater. A type of store derives from it and defines what
    happens to keys: `_init`, `_push`, `_pull`, where it has row-sparse values `_pull_rows`, and `_pushpull` where both
    are less work at once. They are called outside of recording, with keys checked, grouped and in order: ints by their
    values, names as they were initialised, whatever the order in which they are given.

    Parameters
    ----------
    type : str
        The name under which the store was asked for.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.kv.KVStore``. A custom updater gets str keys as str, MXNet's Python 3 gives
    bytes. What was pushed may be overwritten afterwards without changing the store.

    Examples
    --------
    >>> import mxcore as mx
    >>> kv = mx.kv.create("device")
    >>> kv.init([3, 5], [mx.nd.ones(2)] * 2)
    >>> kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    >>> outs = [mx.nd.empty(2), mx.nd.empty(2)]
    >>> kv.pushpull([3, 5], [mx.nd.ones(2)] * 2, out=outs)
    >>> outs[1].asnumpy()
    array([0.5, 0.5], dtype=float32)
    """

    def __init__(self, type: str) -> None:
        self._type = type
        self._updater: Updater | None = None

    @property
    def _named(self) -> dict[Key, int]:
        """Key that is a str -> how many were initialised before."""
        found: dict[Key, int] = self.__dict__.setdefault("_names", {})
        return found

    def _in_order(self, groups: dict[Key, _T]) -> dict[Key, _T]:
        """Groups by key in the order in which values are updated and written."""
        if len(groups) < 2:
            return groups
        named, last = self._named, len(self._named)
        by_name = isinstance(next(iter(groups)), str)
        return {k: groups[k] for k in sorted(groups, key=(lambda k: named.get(k, last)) if by_name else None)}

    # -- what a type of store defines --------------------------------------------------------------------------------

    def _init(self, values: list[tuple[Key, NDArray]]) -> None:
        """Keep first values: `values` is a list of (key, array)."""
        raise error(NotImplementedError, f"KVStore {self.type!r} does not define init")

    def _push(self, groups: Groups, priority: int) -> None:
        """Add up ``groups[key]``, a list of arrays, and update or replace the value of each key."""
        raise error(NotImplementedError, f"KVStore {self.type!r} does not define push")

    def _pull(self, groups: Groups, priority: int, ignore_sparse: bool) -> None:
        """Write the value of each key to all arrays of ``groups[key]``."""
        raise error(NotImplementedError, f"KVStore {self.type!r} does not define pull")

    def _pushpull(self, groups: Groups, outs: Groups, priority: int) -> None:
        """Do both, for a type that does them faster at once."""
        self._push(groups, priority)
        self._pull(outs, priority, True)

    def _pull_rows(self, groups: RowGroups, priority: int) -> None:
        """Write rows: ``groups[key]`` is a list of (row_sparse array, row numbers)."""
        raise error(NotImplementedError, f"KVStore {self.type!r} has no row_sparse_pull")

    # -- values ------------------------------------------------------------------------------------------------------

    def init(self, key: Any, value: Any) -> None:
        """Give new keys their first values.

        Parameters
        ----------
        key : int or str, or a list
            Keys that have no value yet.
        value : NDArray, or a list
            One array for each key.

        Raises
        ------
        MXNetError
            (also ValueError) if a key has a value already, or more than one array is given for it.

        Examples
        --------
        >>> import mxcore as mx
        >>> kv = mx.kv.create("local")
        >>> kv.init(3, mx.nd.ones((2, 3)))
        >>> kv.init(["a", "b"], [mx.nd.ones(2), mx.nd.ones(3)])
        Traceback (most recent call last):
            ...
        mxcore.base.MXNetTypeError: kvstore: key 'a' is of type str, but the keys of this store are int
        """
        values = singles("init", key, value)
        with pause():
            self._init(values)
        for k, _ in values:
            if isinstance(k, str):
                self._named.setdefault(k, len(self._named))

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Add up the arrays given for each key; with an updater they move its value, else they replace it.

        Parameters
        ----------
        key : int or str, or a list
            Which values; arrays for a key that comes twice are added up, too.
        value : NDArray, or lists
            For each key an array, or a list with one from each device.
        priority : int
            Of what waits for a worker of a device, the highest goes first.

        Raises
        ------
        MXNetError
            (also KeyError or ValueError) if a key has no value yet, or an array has another shape.

        Examples
        --------
        >>> import mxcore as mx
        >>> kv = mx.kv.create("local")
        >>> kv.init(3, mx.nd.ones(2))
        >>> kv.push(3, [mx.nd.ones(2, ctx=mx.cpu(i)) for i in range(4)])
        >>> out = mx.nd.empty(2)
        >>> kv.pull(3, out=out)
        >>> out.asnumpy()
        array([4., 4.], dtype=float32)
        """
        groups = self._in_order(group(key, value))
        with pause(), _at(priority) as priority:
            self._push(groups, priority)

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Write the values of keys to arrays.

        Parameters
        ----------
        key : int or str, or a list
            Which values.
        out : NDArray, or lists
            For each key an array, or a list with one on each device.
        priority : int
            As for `push`.
        ignore_sparse : bool
            Leave sparse arrays in `out` as they are, with a warning; `row_sparse_pull` fills those.

        Raises
        ------
        MXNetError
            (also KeyError or ValueError) if a key has no value yet, or an array has another shape.
        """
        groups = self._in_order(writable("pull", key, _given("out", out)))
        with pause(), _at(priority) as priority:
            self._pull(groups, priority, ignore_sparse)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        groups = self._in_order(group(key, value))
        outs = self._in_order(writable("pushpull", key, value if out is None else out))
        with pause(), _at(priority) as priority:
            self._pushpull(groups, outs, priority)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        outs = writable("broadcast", key, _given("out", out))
        with pause(), _at(priority) as priority:
            self.init(key, value)
            self._pull(self._in_order(outs), priority, True)

    def row_sparse_pull(self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None) -> None:
        """Write some rows of row-sparse values to row-sparse arrays.

        Parameters
        ----------
        key : int or str, or a list
            Which values.
        out : NDArray, or lists
            Row-sparse arrays, as for `pull`; each gets exactly the rows asked for.
        priority : int
            As for `push`.
        row_ids : NDArray, or lists
            Row numbers for each array in `out`, in any order and repeated as you like; one array may serve all.

        Raises
        ------
        MXNetError
            (also KeyError, ValueError, TypeError or IndexError) if a key or row does not exist, or an array is not
            row-sparse.
        """
        outs = pairs(key, _given("out", out))
        ids = _given("row_ids", row_ids)
        if not isinstance(ids, (list, tuple)):
            ids = [[ids]] * len(outs)
        elif not isinstance(key, (list, tuple)):
            ids = [ids]
        rows = dict(pairs([k for k, _ in outs], ids))
        groups: RowGroups = {}
        for k, arrays in outs:
            given = rows[k]
            if len(given) == 1:
                given = given * len(arrays)
            if len(given) != len(arrays):
                raise error(
                    ValueError,
                    f"kvstore: row_sparse_pull of key {k!r} into {len(arrays)} arrays needs one "
                    f"row_ids or as many, got {len(given)}",
                )
            groups.setdefault(k, []).extend(zip(arrays, given))
        with pause(), _at(priority) as priority:
            self._pull_rows(self._in_order(groups), priority)

    # -- updating ----------------------------------------------------------------------------------------------------

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Compress what is pushed: dense arrays of float32.

        Parameters
        ----------
        compression_params : dict
            ``{'type': '2bit', 'threshold': 0.5}``: of each element of gradient plus carried error only
            -threshold, 0 or threshold goes on; or ``{'type': 'fp16'}`` or ``{'type': 'bfloat16'}``: numbers go in half
            the bytes.

        Raises
        ------
        MXNetError
            (also ValueError) if the parameters make no sense, or this type of store does not compress.
        """
        raise error(ValueError, f"KVStore {self.type!r} does not compress gradients")

    def set_optimizer(self, optimizer: opt.Optimizer) -> None:
        if not isinstance(optimizer, opt.Optimizer):
            raise error(
                TypeError, f"set_optimizer takes an Optimizer, got {optimizer!r}; mx.optimizer.create makes one"
            )
        self.set_updater(opt.get_updater(optimizer))

    def set_updater(self, updater: Updater | None) -> None:
        """Let a function change stored values in place at each push.

        Parameters
        ----------
        updater : callable or None
            Called with key, pushed and stored array, of which it copies what it keeps, for their memory is used again;
            None: what is pushed replaces what is stored.
        """
        if updater is not None and not callable(updater):
            raise error(TypeError, f"an updater is a function of key, pushed and stored array, not {updater!r}")
        if isinstance(updater, opt.Updater):
            updater.replicas = False
            updater.optimizer._count_on(0)
        self._updater = updater

    def _set_updater(self, updater: Updater | None) -> None:
        self.set_updater(updater)

    def set_learning_rate(self, rate: float) -> None:
        """Set the learning rate of the store's optimizer, for pushes from now on; in a job each worker sets it.

        Parameters
        ----------
        rate : float
        """
        optimizer = self._states("set the learning rate of").optimizer
        optimizer.set_learning_rate(self._tell_rate(float(checked_rate(rate))))

    def _tell_rate(self, rate: float) -> float:
        """Tell a rate to servers, where they update, and return the one that they have then.

        What they refuse is not set here.
        """
        return rate

    @staticmethod
    def is_capable(capability: str) -> bool:
        return capable(capability)

    def save_optimizer_states(self, fname: str | PathLike[str], dump_optimizer: bool = False) -> None:
        write_atomic(fname, self._states("save states of").get_states(dump_optimizer))

    def load_optimizer_states(self, fname: str | PathLike[str]) -> None:
        updater = self._states("load states into")
        updater.load(fname)

    def _states(self, verb: str) -> opt.Updater:
        if not isinstance(self._updater, opt.Updater):
            raise error(AssertionError, f"kvstore: there is no optimizer to {verb}; call set_optimizer first")
        return self._updater

    # -- workers -----------------------------------------------------------------------------------------------------

    @property
    def type(self) -> str:
        return self._type

    @property
    def rank(self) -> int:
        return 0

    @property
    def num_workers(self) -> int:
        return 1

    def __repr__(self) -> str:
        return f"<KVStore {self.type}>"


def _given(name: str, value: Any) -> Any:
    if value is None:
        raise error(ValueError, f"kvstore: {name} is needed")
    return value


def writable(verb: str, key: Any, out: Any) -> Groups:
    """Arrays by key that can all be written to: none is filled, and nothing is pushed, if one cannot.

    Parameters
    ----------
    verb : str
        What is done: 'pull', 'broadcast', …
    key : int or str, or a list
    out : NDArray, or lists
        For each key an array, or a list with one on each device.

    Examples
    --------
    >>> import mxcore as mx
    >>> list(writable("pull", [3, 5], [mx.nd.ones(1), mx.nd.ones(2)]))
    [3, 5]
    """
    groups = group(key, out)
    for k, arrays in groups.items():
        for a in arrays:
            check_writable(a, f"kvstore: {verb} of key {k!r}")
    return groups


def of_one_process(name: str) -> bool:
    """Whether stores of a type add up within one process, so that a single context needs none."""
    return name.lower().startswith(("local", "device", "nccl"))


#: Types of MXNet that no plugin of mxcore's distribution brings -> who would.
_PROVIDERS = {
    "nccl": "; 'nccl' comes with mxcore-cuda (pip install 'mxcore-cuda[nccl13]' or [nccl12]), 'device' does the same",
    "horovod": "; 'horovod' would come with a plugin over Horovod, 'allreduce' does the same",
    "byteps": "; 'byteps' would come with a plugin over BytePS, 'dist_sync' does the same",
    "p3": "; 'p3' is 'dist_sync' with priorities, which 'dist_sync' has here",
}


def create(name: str = "local") -> KVStoreBase:
    """Make a store.

    Parameters
    ----------
    name : str
        A type, in any case: ``'local'`` adds up on the CPU, ``'device'`` on the devices that push; further ones
        come from plugins and `KVStoreBase.register`.

    Returns
    -------
    KVStoreBase

    Raises
    ------
    MXNetError
        (also TypeError or KeyError) if there is no such type.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.kv.create``, except that an unknown name is an error, not a local store.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.kv.create("local").type
    'local'
    """
    if not isinstance(name, str):
        raise error(TypeError, f"kvstore.create takes the name of a type, got {name!r}")
    return maker(name.lower())(name.lower())


def maker(type: str) -> Callable[[str], KVStoreBase]:
    """What makes stores of a type, which may go by another name.

    Parameters
    ----------
    type : str
        In lower case.

    Returns
    -------
    callable
        Of the name.

    Raises
    ------
    MXNetError
        (also KeyError) if there is no such type.

    Examples
    --------
    >>> maker("local")("nearby")
    <KVStore nearby>
    """
    registered = KVStoreBase.kv_registry.get(type)
    if registered is not None:
        return lambda name: registered()
    known = sorted({*kinds.names("kvstore"), *KVStoreBase.kv_registry})
    if type not in known:
        raise error(
            KeyError,
            f"no kvstore is of type {type!r}{suggest(type, known)}; known types: {', '.join(known)}"
            + _PROVIDERS.get(type, "")
            + tables.why(),
        )
    return kinds.making("kvstore", type, KVStoreBase)
