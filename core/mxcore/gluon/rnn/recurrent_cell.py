"""`RecurrentCell` and `HybridRecurrentCell`: what every cell can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from numbers import Integral
from typing import TYPE_CHECKING, Any

from ... import ndarray as nd
from ..._core.state import state as thread
from ..._locks import PerThread
from ...base import asserted, error
from ..block import Block, HybridBlock
from ..utils import of_mode
from .sequences import formatted, is_one, last, masked

if TYPE_CHECKING:
    from ...ndarray import NDArray
    from ...symbol import Symbol
    from ..parameter import ParameterDict

__all__ = ["HybridRecurrentCell", "RecurrentCell", "check_features", "check_sizes", "check_states", "states_for"]

#: The key of a thread's state with the cells that it may call although modifiers use them.
FREE = "gluon.rnn.free"
#: Activations that are operators of their own.
_OPERATORS = {"tanh", "relu", "sigmoid", "softsign"}


def states_for(cell: RecurrentCell, F: Any, given: Any, inputs: Any, batch_size: int) -> Any:
    """The states given, or the cell's own to begin with, where the inputs are."""
    if given is not None:
        return given
    first = inputs if is_one(inputs) else inputs[0]
    if isinstance(first, nd.NDArray):
        with first.context:
            return cell.begin_state(func=F.zeros, batch_size=batch_size)
    return cell.begin_state(func=F.zeros, batch_size=batch_size)


def check_sizes(block: Block, **sizes: int) -> Iterable[int]:
    """The sizes as Python's numbers; refuses what are no whole numbers from 1.

    Raises
    ------
    MXNetError
        (also ValueError) that names the kind of block and the size.
    """
    for name, size in sizes.items():
        if not isinstance(size, Integral) or size < 1:
            raise error(ValueError, f"{type(block).__name__}: {name} must be a whole number from 1, got {size!r}")
    return map(int, sizes.values())


def check_features(cell: Any, inputs: Any) -> None:
    """Refuse inputs of another number of features than the cell's weights have, if that is known.

    Raises
    ------
    MXNetError
        (also ValueError) that names the cell.
    """
    if not isinstance(inputs, nd.NDArray):
        return
    wanted, found = cell.i2h_weight.shape[1], prod(inputs.shape[1:])
    if wanted > 0 and found != wanted:
        raise error(
            ValueError,
            f"{type(cell).__name__} '{cell.name}': "
            f"inputs {inputs.shape} have {found} features, the cell was made for {wanted}",
        )


def check_states(cell: RecurrentCell, inputs: Any, states: Any, spread: bool = False) -> list[Any]:
    """The states as a list, checked: number, sizes, and the batch of the inputs (with `spread`, or of one).

    Raises
    ------
    MXNetError
        (also ValueError) that names the cell.
    """
    found = [states] if is_one(states) else list(states)
    wanted = cell.state_info(0)
    if len(found) != len(wanted):
        raise error(
            ValueError,
            f"{type(cell).__name__} '{cell.name}' has {len(wanted)} state(s), "
            f"got {len(found)}; begin_state() makes them",
        )
    batch = inputs.shape[0] if isinstance(inputs, nd.NDArray) and inputs.shape else None
    for i, (state, info) in enumerate(zip(found, wanted)):
        if not isinstance(state, nd.NDArray):
            continue
        sizes = tuple(info["shape"])[1:]
        fits = state.shape[1:] == sizes
        if fits and (batch in (None, state.shape[0]) or spread and state.shape[0] == 1):
            continue
        told = f"{type(cell).__name__} '{cell.name}': state {i} must be (batch, {', '.join(map(str, sizes))})"
        if fits:
            raise error(
                ValueError,
                f"{told} with the batch of the inputs, {batch}, got {state.shape}; "
                f"begin_state(batch_size={batch}) makes states to begin with",
            )
        raise error(ValueError, f"{told}, got {state.shape}")
    return found


class RecurrentCell(Block):
    """Base of cells: one step of a recurrent network.

    A subclass has `state_info` and says in `forward` (of a `HybridRecurrentCell`, in `hybrid_forward`) how inputs and
    states give an output and new states.

    Parameters
    ----------
    prefix : str, optional
        Goes before the names of the parameters.
    params : ParameterDict, optional
        Parameters to share.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.rnn.RecurrentCell``.

    Examples
    --------
    >>> import mxcore as mx
    >>> cell = mx.gluon.rnn.LSTMCell(4)
    >>> cell.initialize()
    >>> output, states = cell(mx.nd.ones((2, 3)), cell.begin_state(batch_size=2))
    >>> outputs, states = cell.unroll(5, mx.nd.ones((2, 5, 3)), merge_outputs=True)
    >>> output.shape, outputs.shape
    ((2, 4), (2, 5, 4))
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)
        #: Whether a modifier cell uses this one, which is then not to be called by others.
        self._modified = False
        #: What a thread keeps from step to step.
        self._own = PerThread()
        self.reset()

    def reset(self) -> None:
        """Forget what was counted, and what cells keep from step to step, before another sequence is unrolled."""
        self._init_counter = -1
        self._counter = -1
        for child in self._children.values():
            # An activation, or a layer of somebody's own cell, has nothing to forget.
            if isinstance(child, RecurrentCell):
                child.reset()

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state.

        Parameters
        ----------
        batch_size : int

        Returns
        -------
        list of dict
        """
        raise NotImplementedError(f"{type(self).__name__} must define state_info(batch_size=0)")

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = nd.zeros, **kwargs: Any) -> list[Any]:
        """States to begin with.

        Parameters
        ----------
        batch_size : int
            0 where symbols are made, which find it out.
        func : callable
            Makes each: ``mx.nd.zeros``, ``mx.sym.var`` …
        **kwargs
            For `func`, as ``ctx`` and ``dtype``.

        Returns
        -------
        list of NDArray or Symbol
        """
        self._check_free()
        states = []
        for info in self.state_info(batch_size):
            self._init_counter += 1
            name = f"{self._prefix}begin_state_{self._init_counter}"
            states.append(of_mode(func(name=name, **{**(info or {}), **kwargs})))
        return states

    def _check_free(self) -> None:
        if self._modified and self not in (thread.extra.get(FREE) or ()):
            raise asserted(
                ValueError,
                f"{type(self).__name__} '{self.name}' is used by a modifier cell (as ZoneoutCell): call that instead",
            )

    def _get_activation(self, F: Any, inputs: Any, activation: str | Block, **kwargs: Any) -> Any:
        """Apply an activation, a name or a block; subclasses outside of this package call it, too."""
        if not isinstance(activation, str):
            return activation(inputs)
        return (
            getattr(F, activation)(inputs, **kwargs)
            if activation in _OPERATORS
            else F.Activation(inputs, act_type=activation, **kwargs)
        )

    def unroll(
        self,
        length: int | None,
        inputs: NDArray | Symbol | Sequence[Any],
        begin_state: Sequence[NDArray] | Symbol | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: NDArray | Symbol | None = None,
    ) -> tuple[NDArray | Symbol | list[Any], list[NDArray] | Symbol]:
        """Run the cell over a sequence.

        Parameters
        ----------
        length : int or None
            Number of steps; None where `inputs` tell it.
        inputs : NDArray, Symbol or list of them
            One array in `layout`, or one ``(batch, size)`` a step.
        begin_state : list of NDArray or Symbol, optional
            `begin_state()` otherwise.
        layout : str
            Where time and batch are: ``"NTC"`` or ``"TNC"``.
        merge_outputs : bool, optional
            True: outputs are one array in `layout`; False: a list; None: whatever is easier.
        valid_length : NDArray or Symbol, optional
            How many steps each item of the batch has, ``(batch,)``. Outputs behind are zero, states are those of the
            last one.

        Returns
        -------
        NDArray, Symbol or list of them
            The outputs.
        list of NDArray or Symbol
            The states after the last step.

        Raises
        ------
        MXNetError
            (also ValueError) if the sequence has another length, or states do not fit.
        """
        self.reset()
        inputs, axis, F, batch_size = formatted(length, inputs, layout, False)
        states = states_for(self, F, begin_state, inputs, batch_size)
        outputs, all_states = [], []
        for step in inputs:
            output, states = self(step, states)
            outputs.append(output)
            all_states.append(states)
        if valid_length is not None:
            states = [last(F, steps, valid_length) for steps in zip(*all_states)]
            outputs = masked(F, outputs, len(inputs), valid_length, axis, True)
        return formatted(len(inputs), outputs, layout, merge_outputs)[0], states

    def forward(self, inputs: Any, states: Any) -> Any:
        """One step.

        Parameters
        ----------
        inputs : NDArray or Symbol
            ``(batch, size)``.
        states : list of NDArray or Symbol

        Returns
        -------
        NDArray or Symbol
            The output.
        list of NDArray or Symbol
            The new states.
        """
        self._counter += 1
        return super().forward(inputs, states)


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """Base of cells that can be hybridised; see `RecurrentCell`.

    Parameters
    ----------
    prefix : str, optional
    params : ParameterDict, optional
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """One step, of operators of `F`; every cell defines its own."""
        raise NotImplementedError(f"{type(self).__name__} must define hybrid_forward(self, F, inputs, states)")
