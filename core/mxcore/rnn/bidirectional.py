"""Two cells, one for each direction of time."""

from __future__ import annotations

from typing import Any

from .. import symbol
from ..base import asserted, error
from .base import BaseRNNCell
from .container import Container
from .params import RNNParams
from .sequence import normalized

__all__ = ["BidirectionalCell"]


class BidirectionalCell(Container):
    """Run one cell forward and one backward in time, and join their outputs.

    Parameters
    ----------
    l_cell, r_cell : BaseRNNCell
        Forward and backward.
    params : RNNParams, optional
        Variables for both; else each brings its own.
    output_prefix : str
        Comes before the names of the joined outputs.

    Notes
    -----
    As in MXNet 1.9.1, the states after the last step are two lists, those of `l_cell` and those of `r_cell`.

    Examples
    --------
    >>> import mxcore as mx
    >>> both = mx.rnn.BidirectionalCell(mx.rnn.GRUCell(4, prefix="l_"), mx.rnn.GRUCell(4, prefix="r_"))
    >>> both.unroll(3, mx.sym.Variable("x"), merge_outputs=True)[0].infer_shape(x=(2, 3, 5))[1]
    [(2, 3, 8)]
    """

    def __init__(
        self, l_cell: BaseRNNCell, r_cell: BaseRNNCell, params: RNNParams | None = None, output_prefix: str = "bi_"
    ) -> None:
        super().__init__("", params=params)
        self._output_prefix = output_prefix
        self._override_cell_params = params is not None
        for cell in (l_cell, r_cell):
            if not isinstance(cell, BaseRNNCell):
                raise error(TypeError, f"BidirectionalCell: two cells of mx.rnn are needed, got {type(cell).__name__}")
            if self._override_cell_params:
                if not cell._own_params:
                    raise asserted(ValueError, "BidirectionalCell: give params to it or to its cells, not to both")
                cell.params._params.update(self.params._params)
        self.params._params.update(l_cell.params._params)
        self.params._params.update(r_cell.params._params)
        self._cells = [l_cell, r_cell]

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        raise error(
            NotImplementedError,
            "BidirectionalCell has no single step: the backward cell begins at the end; call unroll()",
        )

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None
    ) -> tuple[Any, list[Any]]:
        self.reset()
        inputs, axis = normalized(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        forward, backward = self._cells
        n = len(forward.state_info)
        l_outputs, l_states = forward.unroll(
            length, inputs=inputs, begin_state=states[:n], layout=layout, merge_outputs=merge_outputs
        )
        r_outputs, r_states = backward.unroll(
            length, inputs=list(reversed(inputs)), begin_state=states[n:], layout=layout, merge_outputs=merge_outputs
        )
        if merge_outputs is None:
            merge_outputs = isinstance(l_outputs, symbol.Symbol) and isinstance(r_outputs, symbol.Symbol)
            l_outputs, _ = (
                normalized(None, l_outputs, layout, merge_outputs)
                if merge_outputs
                else _list(length, l_outputs, layout)
            )
            r_outputs, _ = (
                normalized(None, r_outputs, layout, merge_outputs)
                if merge_outputs
                else _list(length, r_outputs, layout)
            )
        after: Any = [l_states, r_states]
        if merge_outputs:
            return symbol.Concat(
                l_outputs, symbol.reverse(r_outputs, axis=axis), dim=2, name=f"{self._output_prefix}out"
            ), after
        pairs = zip(l_outputs, reversed(r_outputs))
        return [symbol.Concat(a, b, dim=1, name=f"{self._output_prefix}t{i}") for i, (a, b) in enumerate(pairs)], after


def _list(length: int, outputs: Any, layout: str) -> tuple[Any, int]:
    """One symbol a step."""
    return normalized(length, outputs, layout, False)
