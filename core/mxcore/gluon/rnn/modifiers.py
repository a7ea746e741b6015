"""Cells that change what another cell does, and dropout between cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Number
from typing import TYPE_CHECKING, Any

from ... import ndarray as nd
from ..._core.state import state
from ..._scopes import Scope
from ...base import asserted, error
from ..block.seen import as_seen_by
from .containers import BidirectionalCell, SequentialRNNCell
from .recurrent_cell import FREE, HybridRecurrentCell, RecurrentCell
from .sequences import formatted, is_one, masked

if TYPE_CHECKING:
    from ..parameter import ParameterDict

__all__ = ["DropoutCell", "ModifierCell", "ResidualCell", "ZoneoutCell"]


class DropoutCell(HybridRecurrentCell):
    """Dropout on the inputs, in training; it has no state.

    Parameters
    ----------
    rate : float
        Share of values that become zero.
    axes : tuple of int, default ()
        Axes along which values are dropped together.
    prefix : str, optional
    params : ParameterDict, optional

    Notes
    -----
    Behaviour matched: MXNet 1.9.1. A sequence that is one array is dropped at once.

    Examples
    --------
    >>> import mxcore as mx
    >>> cell = mx.gluon.rnn.DropoutCell(0.5)
    >>> cell(mx.nd.ones((2, 3)), [])[0].shape
    (2, 3)
    """

    def __init__(
        self, rate: float, axes: tuple[int, ...] = (), prefix: str | None = None, params: ParameterDict | None = None
    ) -> None:
        super().__init__(prefix, params)
        if not isinstance(rate, Number):
            raise asserted(TypeError, f"DropoutCell: rate must be a number, got {type(rate).__name__}")
        self._rate, self._axes = rate, axes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rate={self._rate}, axes={self._axes})"

    def state_info(self, batch_size: int = 0) -> list[Any]:
        return []

    def _alias(self) -> str:
        return "dropout"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        if self._rate > 0:
            inputs = F.Dropout(inputs, p=self._rate, axes=self._axes, name=f"t{self._counter}_fwd")
        return inputs, states

    def unroll(
        self,
        length: int | None,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, Any]:
        self.reset()
        inputs, _, F, _ = formatted(length, inputs, layout, merge_outputs)
        if is_one(inputs):
            output, states = self.hybrid_forward(as_seen_by(type(self), F), inputs, begin_state or [])
            return output, states
        return super().unroll(
            length, inputs, begin_state=begin_state, layout=layout, merge_outputs=merge_outputs, valid_length=None
        )


class ModifierCell(HybridRecurrentCell):
    """Base of cells around another, whose parameters and states they use.

    Parameters
    ----------
    base_cell : RecurrentCell
        From then on only the modifier is to be called.

    Examples
    --------
    >>> import mxcore as mx
    >>> class Double(mx.gluon.rnn.ModifierCell):
    ...     def hybrid_forward(self, F, inputs, states):
    ...         output, states = self.base_cell(inputs, states)
    ...         return 2 * output, states
    >>> cell = Double(mx.gluon.rnn.RNNCell(4))
    >>> cell.initialize()
    >>> cell(mx.nd.ones((2, 3)), cell.begin_state(batch_size=2))[0].shape
    (2, 4)
    """

    def __init__(self, base_cell: RecurrentCell) -> None:
        if not isinstance(base_cell, RecurrentCell):
            raise error(
                TypeError,
                f"{type(self).__name__} goes around a cell: base_cell must be a RecurrentCell, got "
                f"{type(base_cell).__name__}",
            )
        if base_cell._modified:
            raise asserted(
                ValueError,
                f"{type(base_cell).__name__} '{base_cell.name}' "
                "is used by a modifier cell already; one cell cannot be used twice",
            )
        base_cell._modified = True
        super().__init__(prefix=base_cell.prefix + self._alias(), params=None)
        self.base_cell = base_cell

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_cell!r})"

    @property
    def params(self) -> ParameterDict:
        return self.base_cell.params

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return self.base_cell.state_info(batch_size)

    def begin_state(  # type: ignore[override]  # names only but for `func`, as in MXNet
        self, func: Callable[..., Any] = nd.zeros, **kwargs: Any
    ) -> list[Any]:
        """States to begin with, those of the base cell; see `RecurrentCell.begin_state`."""
        self._check_free()
        with Unwrapped(self.base_cell):
            return self.base_cell.begin_state(func=func, **kwargs)

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define hybrid_forward(self, F, inputs, states)")


class Unwrapped(Scope):
    """A cell that this thread may call inside, though a modifier uses it."""

    def __init__(self, cell: RecurrentCell) -> None:
        self.cell = cell

    def _values(self) -> Iterable[tuple[dict[str, Any], str, Any]]:
        return ((state.extra, FREE, (*(state.extra.get(FREE) or ()), self.cell)),)


class ZoneoutCell(ModifierCell):
    """Keep some values of the step before, at random, in training.

    Parameters
    ----------
    base_cell : RecurrentCell
        A cell that can be stepped: no bidirectional one.
    zoneout_outputs, zoneout_states : float, default 0
        Share of values kept.

    Notes
    -----
    Krueger et al., "Zoneout: Regularizing RNNs by Randomly Preserving Hidden Activations" (2017). Behaviour matched:
    MXNet 1.9.1.

    Examples
    --------
    >>> import mxcore as mx
    >>> cell = mx.gluon.rnn.ZoneoutCell(mx.gluon.rnn.RNNCell(4), zoneout_states=0.2)
    >>> cell.initialize()
    >>> cell.unroll(5, mx.nd.ones((2, 5, 3)), merge_outputs=True)[0].shape
    (2, 5, 4)
    """

    def __init__(self, base_cell: RecurrentCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0) -> None:
        cells = base_cell._children.values() if isinstance(base_cell, SequentialRNNCell) else (base_cell,)
        if any(isinstance(c, BidirectionalCell) for c in cells):
            raise asserted(
                ValueError,
                "ZoneoutCell: a BidirectionalCell has no steps to change; put ZoneoutCell around the cells in it",
            )
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out={self.zoneout_outputs}, p_state={self.zoneout_states}, {self.base_cell!r})"

    def _alias(self) -> str:
        return "zoneout"

    def reset(self) -> None:
        super().reset()
        self._own.output = None

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        def kept(share: Any, new: Any, old: Any) -> Any:
            return F.where(F.Dropout(F.ones_like(new), p=share), new, old) if share else new

        with Unwrapped(self.base_cell):
            output, new_states = self.base_cell(inputs, states)
        before = getattr(self._own, "output", None)
        before = F.zeros_like(output) if before is None else before
        output = kept(self.zoneout_outputs, output, before)
        new_states = [kept(self.zoneout_states, new, old) for new, old in zip(new_states, states)]
        self._own.output = output
        return output, new_states


class ResidualCell(ModifierCell):
    """Add the input to the output of a cell; both have one size.

    Parameters
    ----------
    base_cell : RecurrentCell

    Notes
    -----
    Wu et al., "Google's Neural Machine Translation System" (2016). Behaviour matched: MXNet 1.9.1.

    Examples
    --------
    >>> import mxcore as mx
    >>> cell = mx.gluon.rnn.ResidualCell(mx.gluon.rnn.GRUCell(3))
    >>> cell.initialize()
    >>> cell.unroll(5, mx.nd.ones((2, 5, 3)), merge_outputs=True)[0].shape
    (2, 5, 3)
    """

    def __init__(self, base_cell: RecurrentCell) -> None:
        super().__init__(base_cell)

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        with Unwrapped(self.base_cell):
            output, states = self.base_cell(inputs, states)
        return self._added(F, output, inputs, name=f"t{self._counter}_fwd"), states

    def _added(self, F: Any, output: Any, inputs: Any, **kwargs: Any) -> Any:
        """The sum; the cell is named if the two do not fit."""
        if isinstance(output, nd.NDArray) and output.shape != inputs.shape:
            raise error(
                ValueError,
                f"{type(self).__name__} '{self.name}' adds its inputs to the outputs of {self.base_cell!r}: "
                f"inputs {inputs.shape}, outputs {output.shape}",
            )
        return F.elemwise_add(output, inputs, **kwargs)

    def unroll(
        self,
        length: int | None,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, Any]:
        self.reset()
        with Unwrapped(self.base_cell):
            outputs, states = self.base_cell.unroll(
                length,
                inputs=inputs,
                begin_state=begin_state,
                layout=layout,
                merge_outputs=merge_outputs,
                valid_length=valid_length,
            )
        merge = is_one(outputs) if merge_outputs is None else merge_outputs
        inputs, axis, F, _ = formatted(length, inputs, layout, merge)
        if valid_length is not None:
            inputs = masked(F, inputs, length, valid_length, axis, merge)
        if merge:
            return self._added(F, outputs, inputs), states
        return [self._added(F, a, b) for a, b in zip(outputs, inputs)], states
