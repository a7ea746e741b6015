"""Dropout between cells."""

from __future__ import annotations

import numbers
from typing import Any

from .. import symbol
from ..base import asserted
from .base import BaseRNNCell
from .params import RNNParams
from .sequence import normalized

__all__ = ["DropoutCell"]


class DropoutCell(BaseRNNCell):
    """Dropout of the input; a cell without states.

    Parameters
    ----------
    dropout : float
        Share of values that become 0 in training.
    prefix : str
    params : RNNParams, optional

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.rnn.DropoutCell(0.5).unroll(3, mx.sym.Variable("x"))[0].infer_shape(x=(2, 3, 4))[1]
    [(2, 3, 4)]
    """

    def __init__(self, dropout: float, prefix: str = "dropout_", params: RNNParams | None = None) -> None:
        super().__init__(prefix, params)
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout < 1:
            raise asserted(ValueError, f"DropoutCell: dropout must be a number from 0 to below 1, got {dropout!r}")
        self.dropout = dropout

    @property
    def state_info(self) -> list[Any]:
        return []

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        return (symbol.Dropout(data=inputs, p=self.dropout) if self.dropout > 0 else inputs), states

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None
    ) -> tuple[Any, list[Any]]:
        self.reset()
        inputs, _ = normalized(length, inputs, layout, merge_outputs)
        if isinstance(inputs, symbol.Symbol):  # one node for all steps
            return self(inputs, [])
        return super().unroll(length, inputs, begin_state=begin_state, layout=layout, merge_outputs=merge_outputs)
