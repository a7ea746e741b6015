"""Cells that change what another cell does: zoneout and residual connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import symbol
from ..base import asserted, error
from .base import BaseRNNCell
from .bidirectional import BidirectionalCell
from .fused import FusedRNNCell
from .params import RNNParams
from .sequence import normalized
from .sequential import SequentialRNNCell

__all__ = ["ModifierCell", "ResidualCell", "ZoneoutCell"]


class ModifierCell(BaseRNNCell):
    """Base of cells around another, whose variables and states they use.

    Parameters
    ----------
    base_cell : BaseRNNCell
        From then on its `begin_state` is that of the modifier.

    Examples
    --------
    >>> import mxcore as mx
    >>> class Double(mx.rnn.ModifierCell):
    ...     def __call__(self, inputs, states):
    ...         output, states = self.base_cell(inputs, states)
    ...         return 2 * output, states
    >>> outputs, states = Double(mx.rnn.RNNCell(4)).unroll(2, mx.sym.Variable("x"))
    >>> outputs[1].infer_shape(x=(3, 2, 5))[1]
    [(3, 4)]
    """

    def __init__(self, base_cell: BaseRNNCell) -> None:
        if not isinstance(base_cell, BaseRNNCell):
            raise error(
                TypeError, f"{type(self).__name__}: base_cell must be a cell of mx.rnn, got {type(base_cell).__name__}"
            )
        super().__init__()
        base_cell._modified = True
        self.base_cell = base_cell

    @property
    def params(self) -> RNNParams:
        self._own_params = False
        return self.base_cell.params

    @property
    def state_info(self) -> list[Any]:
        return self.base_cell.state_info

    def begin_state(self, init_sym: Callable[..., Any] = symbol.zeros, **kwargs: Any) -> list[Any]:  # type: ignore[override]
        """States to begin with, those of the base cell.

        Parameters
        ----------
        init_sym : callable
            Makes each, as `func` in the base cell's method; `func` is taken, too.
        **kwargs
            Given to it.

        Returns
        -------
        list of Symbol
        """
        if self._modified:
            return super().begin_state(**kwargs)  # an error
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(func=kwargs.pop("func", init_sym), **kwargs)
        finally:
            self.base_cell._modified = True

    def unpack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        return self.base_cell.pack_weights(args)

    def reset(self) -> None:
        super().reset()
        if hasattr(self, "base_cell"):
            self.base_cell.reset()


class ZoneoutCell(ModifierCell):
    """Keep some values of the step before, at random, in training.

    Parameters
    ----------
    base_cell : BaseRNNCell
        A cell with a step: no fused or bidirectional one.
    zoneout_outputs, zoneout_states : float
        Share of values kept.

    Notes
    -----
    Krueger et al., "Zoneout" (ICLR 2017). Behaviour matched: MXNet 1.9.1.

    Examples
    --------
    >>> import mxcore as mx
    >>> cell = mx.rnn.ZoneoutCell(mx.rnn.RNNCell(4), zoneout_outputs=0.5)
    >>> cell.unroll(2, mx.sym.Variable("x"), merge_outputs=True)[0].infer_shape(x=(3, 2, 5))[1]
    [(3, 2, 4)]
    """

    def __init__(self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0) -> None:
        if isinstance(base_cell, FusedRNNCell):
            raise asserted(ValueError, "ZoneoutCell: a FusedRNNCell has no steps to change; call unfuse() on it first")
        if isinstance(base_cell, BidirectionalCell) or (
            isinstance(base_cell, SequentialRNNCell) and any(isinstance(c, BidirectionalCell) for c in base_cell._cells)
        ):
            raise asserted(
                ValueError,
                "ZoneoutCell: a BidirectionalCell has no steps to change; put ZoneoutCell around the cells in it",
            )
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states
        self.prev_output: Any = None

    def reset(self) -> None:
        super().reset()
        self.prev_output = None

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        def kept(share: float, new: Any, old: Any) -> Any:
            return symbol.where(symbol.Dropout(symbol.ones_like(new), p=share), new, old)

        output, new_states = self.base_cell(inputs, states)
        before = self.prev_output if self.prev_output is not None else symbol.zeros((0, 0))
        if self.zoneout_outputs:
            output = kept(self.zoneout_outputs, output, before)
        if self.zoneout_states:
            new_states = [kept(self.zoneout_states, new, old) for new, old in zip(new_states, states)]
        self.prev_output = output
        return output, new_states


class ResidualCell(ModifierCell):
    """Add the input to the output of a cell; both have one size.

    Parameters
    ----------
    base_cell : BaseRNNCell

    Notes
    -----
    Wu et al., "Google's Neural Machine Translation System" (2016). Behaviour matched: MXNet 1.9.1.

    Examples
    --------
    >>> import mxcore as mx
    >>> outputs, states = mx.rnn.ResidualCell(mx.rnn.GRUCell(5)).unroll(2, mx.sym.Variable("x"), merge_outputs=True)
    >>> outputs.infer_shape(x=(3, 2, 5))[1]
    [(3, 2, 5)]
    """

    def __init__(self, base_cell: BaseRNNCell) -> None:
        super().__init__(base_cell)

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        output, states = self.base_cell(inputs, states)
        return _sum(output, inputs), states

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None
    ) -> tuple[Any, list[Any]]:
        self.reset()
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(
                length, inputs=inputs, begin_state=begin_state, layout=layout, merge_outputs=merge_outputs
            )
        finally:
            self.base_cell._modified = True
        merge = isinstance(outputs, symbol.Symbol) if merge_outputs is None else merge_outputs
        inputs, _ = normalized(length, inputs, layout, merge)
        if merge:
            return _sum(outputs, inputs), states
        return [_sum(out, x) for out, x in zip(outputs, inputs)], states


def _sum(output: Any, inputs: Any) -> Any:
    return symbol.elemwise_add(output, inputs, name=f"{output.name}_plus_residual")
