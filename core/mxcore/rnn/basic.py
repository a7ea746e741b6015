"""The plain cells: RNN, LSTM and GRU."""

from __future__ import annotations

import numbers
from typing import Any

from .. import initializer, symbol
from ..base import error
from .base import BaseRNNCell
from .params import RNNParams
from .steps import GRUStep, LSTMStep, SimpleStep

__all__ = ["GRUCell", "LSTMCell", "RNNCell"]


class _DenseCell(BaseRNNCell):
    """A cell whose input and state are multiplied by one matrix each."""

    _activation: Any = "tanh"
    _axis: dict[str, int] = {}
    _num_hidden: int
    _iW: symbol.Symbol
    _iB: symbol.Symbol
    _hW: symbol.Symbol
    _hB: symbol.Symbol

    def __init__(self, num_hidden: int, prefix: str, params: RNNParams | None, bias_init: Any = None) -> None:
        if not isinstance(num_hidden, numbers.Integral) or num_hidden < 1:
            raise error(
                ValueError, f"{type(self).__name__}: num_hidden must be a whole number from 1, got {num_hidden!r}"
            )
        super().__init__(prefix=prefix, params=params)
        self._num_hidden = int(num_hidden)
        self._iW, self._iB, self._hW, self._hB = (
            self.params.get(n, **k)
            for n, k in (
                ("i2h_weight", {}),
                ("i2h_bias", {"init": bias_init} if bias_init else {}),
                ("h2h_weight", {}),
                ("h2h_bias", {}),
            )
        )
        self._own_params = params is None

    @property
    def state_info(self) -> list[Any]:
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"}]

    def _products(self, inputs: Any, state: Any, name: str) -> tuple[Any, Any]:
        n = self._num_hidden * self._num_gates
        return (
            symbol.FullyConnected(data=inputs, weight=self._iW, bias=self._iB, num_hidden=n, name=f"{name}i2h"),
            symbol.FullyConnected(data=state, weight=self._hW, bias=self._hB, num_hidden=n, name=f"{name}h2h"),
        )


class RNNCell(SimpleStep, _DenseCell):
    """The simple cell: ``act(W x + R h + b)``.

    Parameters
    ----------
    num_hidden : int
        Size of output and state.
    activation : str or callable
        A name of the operator Activation, or a function of a symbol.
    prefix : str
    params : RNNParams, optional
        Variables to share with other cells.

    Examples
    --------
    >>> import mxcore as mx
    >>> out, states = mx.rnn.RNNCell(4).unroll(2, mx.sym.Variable("x"))
    >>> out[1].infer_shape(x=(3, 2, 5))[1]
    [(3, 4)]
    """

    def __init__(
        self, num_hidden: int, activation: Any = "tanh", prefix: str = "rnn_", params: RNNParams | None = None
    ) -> None:
        super().__init__(num_hidden, prefix, params)
        self._activation = activation


class LSTMCell(LSTMStep, _DenseCell):
    """Long short-term memory; its states are output and cell.

    Parameters
    ----------
    num_hidden : int
        Size of output and states.
    prefix : str
    params : RNNParams, optional
        Variables to share with other cells.
    forget_bias : float
        What the bias of the forget gate begins with.

    Examples
    --------
    >>> import mxcore as mx
    >>> out, (h, c) = mx.rnn.LSTMCell(4)(mx.sym.Variable("x"), [mx.sym.Variable("h"), mx.sym.Variable("c")])
    >>> c.infer_shape(x=(3, 5), h=(3, 4))[1]
    [(3, 4)]
    """

    def __init__(
        self, num_hidden: int, prefix: str = "lstm_", params: RNNParams | None = None, forget_bias: float = 1.0
    ) -> None:
        super().__init__(num_hidden, prefix, params, initializer.LSTMBias(forget_bias=forget_bias))


class GRUCell(GRUStep, _DenseCell):
    """Gated recurrent unit, in cuDNN's form: the reset gate is applied after the product with the state.

    Parameters
    ----------
    num_hidden : int
        Size of output and state.
    prefix : str
    params : RNNParams, optional
        Variables to share with other cells.

    Examples
    --------
    >>> import mxcore as mx
    >>> out, states = mx.rnn.GRUCell(4).unroll(2, mx.sym.Variable("x"), merge_outputs=True)
    >>> out.infer_shape(x=(3, 2, 5))[1], len(states)
    ([(3, 2, 4)], 1)
    """

    def __init__(self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None) -> None:
        super().__init__(num_hidden, prefix, params)

    def _products(self, inputs: Any, state: Any, name: str) -> tuple[Any, Any]:
        return super()._products(inputs, state, f"{name}_")  # MXNet's names of this cell
