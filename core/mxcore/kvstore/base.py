"""What every KVStore has, and the smallest one there can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from ..base import error
from .keys import check_index, check_number, group, singles

if TYPE_CHECKING:
    from ..context import Context
    from ..optimizer import Optimizer

__all__ = ["KVStoreBase", "TestStore"]

Class = TypeVar("Class", bound=Callable[..., Any])


#: What `KVStore` has beyond `KVStoreBase`, for stores that keep values.
_KEEPING = frozenset(
    "init pull push row_sparse_pull set_gradient_compression set_learning_rate set_updater _set_updater".split()
)


def _absent(self: object, what: str, kind: type[Exception] = NotImplementedError, hint: str = "") -> Exception:
    return error(kind, f"{type(self).__name__} does not define {what}{hint}")


class KVStoreBase:
    """The least that `gluon.Trainer` needs of a store; `register` makes a subclass known to ``mx.kv.create``.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.kv.KVStoreBase``.

    Examples
    --------
    >>> import mxcore as mx
    >>> @mx.kv.KVStoreBase.register
    ... class Lonely(mx.kv.KVStoreBase):
    ...     rank, num_workers, type = 0, 1, "lonely"
    >>> mx.kv.create("lonely").num_workers
    1
    """

    #: The capability to update values itself, see `is_capable`.
    OPTIMIZER = "optimizer"

    #: Name in lower case -> class, of the registered ones.
    kv_registry: dict[str, Any] = {}

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Make `value` the value of new keys and hand it out.

        Parameters
        ----------
        key : int or str, or a list
            Which value.
        value : NDArray, or a list
            One array for each key.
        out : NDArray, or lists
            Where it goes: one array or a list for each key.
        priority : int
            Where stores have queues, higher goes first.
        """
        raise _absent(self, "broadcast")

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Add up values of several devices and workers, and hand out the result.

        Parameters
        ----------
        key : int or str, or a list
            Which value.
        value : NDArray, or lists
            One array or a list for each key.
        out : NDArray, or lists, optional
            Where the result goes; `value` itself unless told.
        priority : int
            As for `broadcast`.
        """
        raise _absent(self, "pushpull")

    def batches(self, contexts: Sequence[Context]) -> bool:
        """Whether `pushpull` of lists of keys takes less than one call for each, with arrays on all of some contexts.

        Parameters
        ----------
        contexts : sequence of Context

        Returns
        -------
        bool
        """
        return False

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Let the store move its values with an optimizer.

        Parameters
        ----------
        optimizer : Optimizer
            The rule; pushed values are gradients from then on.
        """
        raise _absent(self, "set_optimizer")

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return whether the store can do something.

        Parameters
        ----------
        capability : {'optimizer'}
            ``'optimizer'``: update values itself.
        """
        raise error(NotImplementedError, f"this store does not say whether it is capable of {capability!r}")

    def save_optimizer_states(self, fname: str | PathLike[str], dump_optimizer: bool = False) -> None:
        """Write the states of the optimizer to a file.

        Parameters
        ----------
        fname : str
            A path or URL.
        dump_optimizer : bool
            Include the optimizer itself.
        """
        raise _absent(self, "save_optimizer_states")

    def load_optimizer_states(self, fname: str | PathLike[str]) -> None:
        """Read what `save_optimizer_states` wrote.

        Parameters
        ----------
        fname : str
            A path or URL.
        """
        raise _absent(self, "load_optimizer_states")

    def barrier(self) -> None:
        """Wait for the other workers; where there are none, go on."""

    def num_dead_node(self, node_id: int = 0, timeout: int = 60) -> int:
        """How many workers are gone, or were not heard of for some time; where there are no others, none.

        Parameters
        ----------
        node_id : int
            Taken for MXNet's sake.
        timeout : int
            In seconds.
        """
        return self._count_dead(check_number("a timeout", timeout))

    def _count_dead(self, seconds: float) -> int:
        """How many workers are gone, or were not heard of for so many seconds."""
        return 0

    def send_command_to_servers(self, head: int, body: str) -> None:
        """Send a command to all servers; where there are none, nobody gets it.

        Parameters
        ----------
        head : int
            Which command.
        body : str
            What it is about.
        """
        if not isinstance(body, str):
            raise error(TypeError, f"kvstore: the body of a command is a str, not {body!r}")
        self._command(check_index("the head of a command", head), str(body))

    def _command(self, head: int, body: str) -> None:
        """Send a command to all servers."""

    def close(self) -> None:
        """Leave the other workers; where there are none, go on."""

    def _barrier(self) -> None:
        self.barrier()

    def _send_command_to_servers(self, head: int, body: str) -> None:
        self.send_command_to_servers(head, body)

    def get_num_dead_node(self, node_id: int = 0, timeout: int = 60) -> int:
        """`num_dead_node`, by an older name."""
        return self.num_dead_node(node_id, timeout)

    def __getattr__(self, name: str) -> Any:
        if name in _KEEPING:
            hint = "; a store that keeps no values has broadcast and pushpull, and whoever uses it updates"
            raise _absent(self, name, AttributeError, hint)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def type(self) -> str:
        """Name of the type of store."""
        raise _absent(self, "type")

    @property
    def rank(self) -> int:
        """Number of this worker, from 0."""
        raise _absent(self, "rank")

    @property
    def num_workers(self) -> int:
        """How many workers share the store."""
        raise _absent(self, "num_workers")

    @staticmethod
    def register(klass: Class) -> Class:
        """Make a class known to ``mx.kv.create`` under its name in lower case; usable as a decorator.

        Parameters
        ----------
        klass : type
            A subclass of `KVStoreBase`, made without arguments.

        Returns
        -------
        type
            The same.
        """
        if not (isinstance(klass, type) and issubclass(klass, KVStoreBase)):
            raise error(TypeError, f"KVStoreBase.register takes subclasses of KVStoreBase, not {klass!r}")
        KVStoreBase.kv_registry[klass.__name__.lower()] = klass
        return klass


def capable(capability: str) -> bool:
    """Check the name of a capability; return whether it is 'optimizer', the only one."""
    if str(capability).lower() != KVStoreBase.OPTIMIZER:
        raise error(ValueError, f"unknown capability {capability!r}; the only one is {KVStoreBase.OPTIMIZER!r}")
    return True


@KVStoreBase.register
class TestStore(KVStoreBase):
    """A store that keeps nothing: it only adds up and hands out. An example, and a stand-in for tests.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.kvstore.base.TestStore``.

    Examples
    --------
    >>> import mxcore as mx
    >>> parts = [mx.nd.ones(2), mx.nd.ones(2, ctx=mx.cpu(1))]
    >>> mx.kv.create("teststore").pushpull(0, parts)
    >>> parts[1].asnumpy()
    array([2., 2.], dtype=float32)
    """

    __test__ = False  # not a class of tests, for pytest
    type = "teststore"
    rank = 0
    num_workers = 1

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        outs = group(key, out)
        for k, array in singles("broadcast", key, value):
            for target in outs[k]:
                array.copyto(target)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        outs = group(key, value if out is None else out)
        for k, arrays in group(key, value).items():
            total = arrays[0].copy()
            for other in arrays[1:]:
                total += other.as_in_context(total.context)
            for target in outs[k]:
                total.copyto(target)

    @staticmethod
    def is_capable(capability: str) -> bool:
        return not capable(capability)
