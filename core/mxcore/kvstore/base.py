"""What every KVStore has, and the smallest one there can be."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from ..base import error
from .keys import group

if TYPE_CHECKING:
    from ..optimizer import Optimizer

__all__ = ["KVStoreBase", "TestStore"]

Class = TypeVar("Class", bound=Callable[..., Any])


def _absent(self: object, what: str) -> Exception:
    return error(NotImplementedError, f"{type(self).__name__} does not define {what}")


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
        for k, (array,) in group(key, value).items():
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
