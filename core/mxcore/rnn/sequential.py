"""Cells one above the other."""

from __future__ import annotations

from typing import Any

from ..base import asserted, error
from .base import BaseRNNCell
from .bidirectional import BidirectionalCell
from .container import Container
from .params import RNNParams
from .steps import states_of

__all__ = ["SequentialRNNCell"]


class SequentialRNNCell(Container):
    """A stack of cells; the states are those of all, from the lowest on.

    Parameters
    ----------
    params : RNNParams, optional
        Variables for all cells; else each brings its own.

    Examples
    --------
    >>> import mxcore as mx
    >>> stack = mx.rnn.SequentialRNNCell()
    >>> for i in range(2):
    ...     stack.add(mx.rnn.LSTMCell(4, prefix=f"l{i}_"))
    >>> outputs, states = stack.unroll(3, mx.sym.Variable("x"), merge_outputs=True)
    >>> outputs.infer_shape(x=(2, 3, 5))[1], len(states)
    ([(2, 3, 4)], 4)
    """

    def __init__(self, params: RNNParams | None = None) -> None:
        super().__init__(prefix="", params=params)
        self._override_cell_params = params is not None
        self._cells: list[BaseRNNCell] = []

    def add(self, cell: BaseRNNCell) -> None:
        """Put a cell on top.

        Parameters
        ----------
        cell : BaseRNNCell

        Raises
        ------
        MXNetError
            (also TypeError or ValueError) if it is no cell, or both it and the stack were given variables.
        """
        if not isinstance(cell, BaseRNNCell):
            raise error(TypeError, f"add: a cell of mx.rnn is needed, got {type(cell).__name__}")
        if self._override_cell_params:
            if not cell._own_params:
                raise asserted(ValueError, "add: give params to the stack or to its cells, not to both")
            cell.params._params.update(self.params._params)
        self._cells.append(cell)
        self.params._params.update(cell.params._params)

    def _shares(self, states: Any) -> list[tuple[BaseRNNCell, list[Any]]]:
        """Each cell with its states."""
        rest = iter(states_of(self, states))
        return [(cell, [next(rest) for _ in cell.state_info]) for cell in self._cells]

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        self._counter += 1
        found = []
        for cell, mine in self._shares(states):
            if isinstance(cell, BidirectionalCell):
                raise asserted(
                    ValueError,
                    "a stack with a BidirectionalCell has no single step: it needs the whole sequence; call unroll()",
                )
            inputs, mine = cell(inputs, mine)
            found += mine
        return inputs, found

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None
    ) -> tuple[Any, list[Any]]:
        self.reset()
        found: list[Any] = []
        for cell, mine in self._shares(self.begin_state() if begin_state is None else begin_state):
            inputs, mine = cell.unroll(
                length,
                inputs=inputs,
                begin_state=mine,
                layout=layout,
                merge_outputs=merge_outputs if cell is self._cells[-1] else None,
            )
            found += mine
        return inputs, found
