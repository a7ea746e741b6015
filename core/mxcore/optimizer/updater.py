"""An optimizer together with the states of the weights that it moves."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from os import PathLike
from typing import Any

from .._core.errors import MXNetError, error, in_a_line
from .._core.transfer import check_writable, read_only
from .._io_files import checked, naming, read_whole
from .._locks import fork_safe_lock, locked
from ..context import Context
from ..drafts import settle
from ..ndarray import NDArray
from ._fused import MOST, FusedOptimizer, Group, Step, move
from ._standing import Standing
from ._states import check_readable, dumps, is_pickle, loads
from ._whole import check_fits, check_state
from .base import Optimizer

#: So many lists of weights that move together are remembered, and so often once more that was not met again.
_MOST, _TRIES = 64, 3


class Updater:
    """A function ``update(index, grad, weight)`` that keeps the optimizer's states.

    Parameters
    ----------
    optimizer : Optimizer
        The rule.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.Updater``. Threads that share one take turns.

    Examples
    --------
    >>> import mxcore as mx
    >>> update = Updater(mx.optimizer.SGD(momentum=0.9))
    >>> update(0, mx.nd.ones(2), mx.nd.ones(2))
    >>> list(update.states)
    [0]
    """

    #: Whether there are replicas of the weights on several devices, each of which counts its own updates. A store has
    #: one value of each, on whichever device.
    replicas = True

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self._object_lock = fork_safe_lock()
        self.states: dict[Any, Any] = {}
        self.states_synced: dict[Any, bool] = {}
        self.aggregate_updates = optimizer.aggregate_num > 0
        #: First index and number of those that move together -> how they do.
        self._standing: dict[Any, Standing] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_standing": {}}  # what is bound is bound to this one's arrays

    @locked
    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """Move one weight, or a list of them, in place.

        Parameters
        ----------
        index : int or str, or a list
            Which parameter.
        grad : NDArray, or a list
            Its gradient.
        weight : NDArray, or a list
            Its value.
        """
        if not isinstance(index, (list, tuple)):
            index, grad, weight = [index], [grad], [weight]
        optimizer, states = self.optimizer, self.states
        given = weight
        if len(index) > 1 and isinstance(optimizer, FusedOptimizer):
            found = self._standing.get((index[0], len(index)))
            if found is not None:
                optimizer._set_current_context(found.ctx.device_id if self.replicas else 0)
                if self._tell(index, weight, found.step, optimizer, states, index, weight, grad):
                    return
        if not getattr(optimizer, "allow_np_array", False):
            grad = [g if g.__class__ is NDArray else _classic(g) for g in grad]
            weight = [w if w.__class__ is NDArray else _classic(w) for w in weight]
        if weight:
            optimizer._set_current_context(weight[0].context.device_id if self.replicas else 0)
        for i, w in zip(index, weight):
            if i not in states:
                states[i] = optimizer.create_state_multi_precision(i, w)
                self.states_synced[i] = True
            elif not self.states_synced.get(i, True):  # an interrupt may have come behind the state
                state = self.sync_state_context(states[i], w.context)
                check_state(optimizer, i, w, state)
                states[i], self.states_synced[i] = state, True
        self._check(index, weight)  # before any of them moves
        self._tell(index, weight, self._move, optimizer, index, grad, weight, given)

    def _tell(self, index: Sequence[Any], weight: Sequence[Any], step: Callable[..., Any], *args: Any) -> Any:
        """Make a step of weights; of one that fails the error says what does not fit, or has no value."""
        try:
            return step(*args)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as e:
            for i, w in zip(index, weight):  # as states of another form give
                if i in self.states:
                    check_fits(self.optimizer, i, w, self.states[i])
            if isinstance(e, MXNetError) or not isinstance(e, (ValueError, ArithmeticError)) or not self._is_stock:
                raise
            kind = next(kind for kind in (ArithmeticError, ValueError) if isinstance(e, kind))
            what = f"optimizer {type(self.optimizer).__name__} cannot move a weight: {in_a_line(e)}"
            raise error(kind, f"{what}; {_numbers(self.optimizer)}") from e

    @property
    def _is_stock(self) -> bool:
        """Whether neither the rule nor its schedule is the user's own, whose errors are his."""
        both = self.optimizer, self.optimizer.lr_scheduler
        return all(what is None or type(what).__module__.startswith("mxcore.") for what in both)

    def _move(
        self,
        optimizer: Optimizer,
        index: Sequence[Any],
        grad: Sequence[Any],
        weight: Sequence[Any],
        given: Sequence[Any],
    ) -> None:
        """Move weights, whose states are there; as `given` they are of any class."""
        states = self.states
        # Of a group that has moved more and less often a schedule gives the rate of the most, as in MXNet.
        uneven = self.aggregate_updates and optimizer.lr_scheduler is not None and not optimizer._are_even(index)
        if len(index) > 1 and isinstance(optimizer, FusedOptimizer) and optimizer._is_told and not uneven:
            held = [states[i] for i in index]
            steps, groups = move(optimizer, zip(index, weight, grad, held))
            self._stand(optimizer, index, given, held, steps, groups)
            return
        if not (self.aggregate_updates and optimizer.aggregate_num > 0):
            for i, w, g in zip(index, weight, grad):
                optimizer.update_multi_precision(i, w, g, states[i])
            return
        by_dtype: dict[Any, list[Any]] = {}  # one call takes weights of one dtype
        for item in zip(index, weight, grad):
            by_dtype.setdefault(item[1].dtype, []).append(item)
        for group in by_dtype.values():
            for start in range(0, len(group), optimizer.aggregate_num):
                i, w, g = zip(*group[start : start + optimizer.aggregate_num])
                optimizer.update_multi_precision(list(i), list(w), list(g), [states[k] for k in i])

    def _stand(
        self,
        optimizer: FusedOptimizer,
        index: Sequence[Any],
        weight: Sequence[NDArray],
        held: Sequence[Any],
        steps: Sequence[Step],
        groups: Sequence[Group],
    ) -> None:
        """Keep what weights did together for their next step, unless what was kept before has never been of use."""
        key = index[0], len(index)
        last = self._standing.get(key)
        tries = 0 if last is None or last.used else last.tries + 1
        if tries > _TRIES:
            return
        with suppress(LookupError):
            found = self._standing[key] = Standing(optimizer, index, weight, held, steps, groups)
            found.tries = tries
        while len(self._standing) > _MOST:
            self._standing.pop(next(iter(self._standing)), None)

    def together(self, ctx: Context | None = None) -> int:
        """How many weights one call moves at most, to the results of a call for each in their order.

        Parameters
        ----------
        ctx : Context, optional
            Where they are; not told, on any device.

        Returns
        -------
        int
        """
        if ctx is not None and self._is_fused:
            return MOST
        # A schedule goes by the updates so far, which are those of the weights before.
        return 1 if self.optimizer.lr_scheduler is not None else max(1, self.optimizer.aggregate_num)

    def in_any_order(self, index: Sequence[Any]) -> bool:
        """Whether weights move to the same values in whatever order.

        It is known of optimizers whose step is one operator. A schedule goes by the most updates of a weight so far,
        which is the same for all if their numbers are.

        Parameters
        ----------
        index : sequence of int or str
            Which parameters, each once.

        Returns
        -------
        bool
        """
        if not self._is_fused:
            return False
        optimizer = self.optimizer
        return optimizer.lr_scheduler is None or not self.replicas and optimizer._are_even(index)

    @property
    def _is_fused(self) -> bool:
        return isinstance(self.optimizer, FusedOptimizer) and self.optimizer._is_told

    def _check(self, index: Sequence[Any], weight: Sequence[NDArray]) -> None:
        for i, w in zip(index, weight):
            if not (w.writable and _writable(self.states[i])):
                name = f"{type(self.optimizer).__name__}, parameter {i!r}: its "
                check_writable(w, name + "weight")
                raise read_only(name + "state")

    def sync_state_context(self, state: Any, context: Context) -> Any:
        """Return a state with its arrays on a device.

        Parameters
        ----------
        state : None, NDArray or tuple
            The state.
        context : Context
            The device.

        Returns
        -------
        None, NDArray or tuple
        """
        if isinstance(state, NDArray):
            return state.as_in_context(context)
        if isinstance(state, (list, tuple)):
            parts = [self.sync_state_context(part, context) for part in state]
            return tuple(parts) if isinstance(state, tuple) else parts
        return state

    @locked
    def set_states(self, states: bytes) -> None:
        """Take over states saved by `get_states`, here or in MXNet.

        Parameters
        ----------
        states : bytes
            What `get_states` returned. If it holds an optimizer, that takes the place of the present one.

        Raises
        ------
        MXNetError
            (also ValueError) if these are no states, or name classes that do not belong into them.
        """
        found, optimizer = loads(states, type(self.optimizer).__module__)
        if optimizer is not None:
            self.optimizer = optimizer
            self.aggregate_updates = optimizer.aggregate_num > 0
            if not self.replicas:
                optimizer._count_on(0)
        self.states = found
        self.states_synced = dict.fromkeys(found, False)

    def load(self, fname: str | PathLike[str], *replicas: Updater) -> None:
        """Take over the states of a file: `set_states`, whose errors then name it.

        Parameters
        ----------
        fname : str or os.PathLike
            A path or URL.
        *replicas : Updater
            Others that take over the same: a file that is read twice may be another one by then.

        Raises
        ------
        MXNetError
            As `set_states`; (also OSError) if the file cannot be read.
        """
        # States are written together with the parameters of the same name, if there are such.
        place = settle(checked(fname), f"{os.path.splitext(fname)[0]}.params")
        data = read_whole(place, what="file of optimizer states", begins=is_pickle)
        with naming(fname):
            for updater in (self, *replicas):
                updater.set_states(data)

    @locked
    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """Return the states as bytes, in the form of MXNet's.

        Parameters
        ----------
        dump_optimizer : bool
            Include the optimizer.

        Returns
        -------
        bytes

        Raises
        ------
        MXNetError
            (also TypeError) if `set_states` could not read them again, since they hold something else than numbers,
            arrays and objects of the optimizer's own module.
        """
        told = (self.states, self.optimizer) if dump_optimizer else self.states
        check_readable(told, type(self.optimizer).__module__)
        return dumps(told)


def get_updater(optimizer: Optimizer) -> Updater:
    """Make the function ``update(index, grad, weight)`` of an optimizer.

    Parameters
    ----------
    optimizer : Optimizer
        The rule.

    Returns
    -------
    Updater

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.get_updater``.

    Examples
    --------
    >>> import mxcore as mx
    >>> get_updater(mx.optimizer.Adam()).states
    {}
    """
    return Updater(optimizer)


def _numbers(optimizer: Optimizer) -> str:
    """The numbers of an optimizer, and of its schedule."""
    parts = []
    for what in (optimizer, optimizer.lr_scheduler):
        found = {k: v for k, v in getattr(what, "__dict__", {}).items() if isinstance(v, (int, float))}
        if found:
            parts.append(f"{type(what).__name__} has {', '.join(f'{k}={reprlib.repr(v)}' for k, v in found.items())}")
    return "; ".join(parts)


def _writable(state: Any) -> bool:
    if isinstance(state, NDArray):
        return state.writable
    return not isinstance(state, (list, tuple)) or all(map(_writable, state))


def _classic(array: Any) -> NDArray:
    """The array under its `mx.nd` face: the fused operators are for it."""
    face: NDArray = array.as_nd_ndarray() if hasattr(array, "as_nd_ndarray") else array
    return face
