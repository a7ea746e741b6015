"""The plain cells: RNN, LSTM and GRU."""
from __future__ import annotations

import numbers
from typing import Any

from .. import initializer, symbol
from ..base import error
from .base import BaseRNNCell, activated
from .params import RNNParams

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "states_of"]


def states_of(cell: BaseRNNCell, states: Any) -> list[Any]:
    """The states as a list of the right length.

    Raises
    ------
    MXNetError
        (also ValueError) if there are more or fewer.
    """
    wanted = len(cell.state_info)
    found = list(states) if isinstance(states, (list, tuple)) else [states]
    if len(found) != wanted:
        raise error(ValueError, f"{type(cell).__name__} has {wanted} state(s), got {len(found)}; begin_state() makes them")
    return found


def lstm_step(gates: Any, cell_state: Any, name: str, activation: Any, axis: dict[str, int]) -> tuple[Any, list[Any]]:
    """From the sum of both products, (batch, 4 * hidden), to output and states of an LSTM."""
    parts = symbol.SliceChannel(gates, num_outputs=4, name=f"{name}slice", **axis)
    enter, forget = (symbol.Activation(parts[i], act_type="sigmoid", name=name + n) for i, n in ((0, "i"), (1, "f")))
    change = activated(parts[2], activation, name=f"{name}c")
    leave = symbol.Activation(parts[3], act_type="sigmoid", name=f"{name}o")
    state = symbol._internal._plus(forget * cell_state, enter * change, name=f"{name}state")
    output = symbol._internal._mul(leave, activated(state, activation), name=f"{name}out")
    return output, [output, state]


def gru_step(i2h: Any, h2h: Any, state: Any, name: str, activation: Any, axis: dict[str, int]) -> tuple[Any, list[Any]]:
    """From the products with input and state, (batch, 3 * hidden) each, to output and state of a GRU."""
    i_reset, i_update, i_new = symbol.SliceChannel(i2h, num_outputs=3, name=f"{name}_i2h_slice", **axis)
    h_reset, h_update, h_new = symbol.SliceChannel(h2h, num_outputs=3, name=f"{name}_h2h_slice", **axis)
    reset = symbol.Activation(i_reset + h_reset, act_type="sigmoid", name=f"{name}_r_act")
    update = symbol.Activation(i_update + h_update, act_type="sigmoid", name=f"{name}_z_act")
    new = activated(i_new + reset * h_new, activation, name=f"{name}_h_act")
    output = symbol._internal._plus((1.0 - update) * new, update * state, name=f"{name}out")
    return output, [output]


class _DenseCell(BaseRNNCell):
    """A cell whose input and state are multiplied by one matrix each."""

    def __init__(self, num_hidden: int, prefix: str, params: RNNParams | None, bias_init: Any = None) -> None:
        if not isinstance(num_hidden, numbers.Integral) or num_hidden < 1:
            raise error(ValueError, f"{type(self).__name__}: num_hidden must be a whole number from 1, got {num_hidden!r}")
        super().__init__(prefix=prefix, params=params)
        self._num_hidden = num_hidden
        self._iW, self._iB, self._hW, self._hB = (
            self.params.get(n, **k) for n, k in (("i2h_weight", {}), ("i2h_bias", {"init": bias_init} if bias_init else {}),
                                                 ("h2h_weight", {}), ("h2h_bias", {})))
        self._own_params = params is None

    @property
    def state_info(self) -> list[Any]:
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"}]

    def _products(self, inputs: Any, state: Any, name: str) -> tuple[Any, Any]:
        n = self._num_hidden * self._num_gates
        return (symbol.FullyConnected(data=inputs, weight=self._iW, bias=self._iB, num_hidden=n, name=f"{name}i2h"),
                symbol.FullyConnected(data=state, weight=self._hW, bias=self._hB, num_hidden=n, name=f"{name}h2h"))


class RNNCell(_DenseCell):
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

    def __init__(self, num_hidden: int, activation: Any = "tanh", prefix: str = "rnn_", params: RNNParams | None = None) -> None:
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    @property
    def _gate_names(self) -> Any:
        return ("",)

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        state, = states_of(self, states)
        name = self._step_name()
        i2h, h2h = self._products(inputs, state, name)
        output = activated(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


class LSTMCell(_DenseCell):
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

    def __init__(self, num_hidden: int, prefix: str = "lstm_", params: RNNParams | None = None, forget_bias: float = 1.0) -> None:
        super().__init__(num_hidden, prefix, params, initializer.LSTMBias(forget_bias=forget_bias))

    @property
    def state_info(self) -> list[Any]:
        return super().state_info * 2

    @property
    def _gate_names(self) -> Any:
        return ["_i", "_f", "_c", "_o"]

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        h, c = states_of(self, states)
        name = self._step_name()
        i2h, h2h = self._products(inputs, h, name)
        return lstm_step(i2h + h2h, c, name, "tanh", {})


class GRUCell(_DenseCell):
    """Gated recurrent unit, in cuDNN's form: the reset gate is applied after the product with the state.

    Parameters
    ----------
    num_hidden : int
        Size of output and state.
    prefix : str
    params : RNNParams, optional
        Variables to share with other cells.
    """

    def __init__(self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None) -> None:
        super().__init__(num_hidden, prefix, params)

    @property
    def _gate_names(self) -> Any:
        return ["_r", "_z", "_o"]

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        state, = states_of(self, states)
        name = self._step_name()
        i2h, h2h = self._products(inputs, state, f"{name}_")
        return gru_step(i2h, h2h, state, name, "tanh", {})
