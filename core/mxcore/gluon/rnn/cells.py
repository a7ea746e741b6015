"""The cells themselves: simple, LSTM, GRU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .recurrent_cell import HybridRecurrentCell, check_features, check_sizes, check_states

if TYPE_CHECKING:
    from ...initializer import Initializer
    from ..block import Block
    from ..parameter import Parameter, ParameterDict

__all__ = ["GRUCell", "LSTMCell", "RNNCell"]


class GatedCell(HybridRecurrentCell):
    """What the three have in common: products with input and state for some gates.

    `_gates` is the number of gates, `_states` that of states, `_axis` where gates lie one behind the other.
    """

    _gates = _states = _axis = 1
    _activation: str | Block
    i2h_weight: Parameter
    h2h_weight: Parameter
    i2h_bias: Parameter
    h2h_bias: Parameter

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Initializer | str | None = None,
        h2h_weight_initializer: Initializer | str | None = None,
        i2h_bias_initializer: Initializer | str | None = "zeros",
        h2h_bias_initializer: Initializer | str | None = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        (hidden_size,) = check_sizes(self, hidden_size=hidden_size)
        self._hidden_size, self._input_size = hidden_size, input_size
        rows = self._gates * hidden_size
        for name, shape, init in (
            ("i2h_weight", (rows, input_size), i2h_weight_initializer),
            ("h2h_weight", (rows, hidden_size), h2h_weight_initializer),
            ("i2h_bias", (rows,), i2h_bias_initializer),
            ("h2h_bias", (rows,), h2h_bias_initializer),
        ):
            setattr(self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True))

    def __repr__(self) -> str:
        shape = self.i2h_weight.shape
        act = f", {self._activation}" if self._gates == 1 else ""
        return f"{type(self).__name__}({shape[1] or None} -> {shape[0]}{act})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return [{"shape": (batch_size, self._hidden_size), "__layout__": "NC"} for _ in range(self._states)]

    def infer_shape(self, inputs: Any, *args: Any) -> None:
        self.i2h_weight.shape = self._gates * self._hidden_size, inputs.shape[-1]

    def __call__(self, inputs: Any, states: Any) -> Any:
        return super().__call__(inputs, self._fitting(inputs, states))

    def _fitting(self, inputs: Any, states: Any) -> list[Any]:
        """The states as a list, if inputs and states fit."""
        check_features(self, inputs)
        return check_states(self, inputs, states)

    def _products(
        self, F: Any, inputs: Any, state: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> tuple[Any, Any, Any]:
        """The name of the step, and the products with input and state."""
        step, rows = f"t{self._counter}_", self._gates * self._hidden_size
        return (
            step,
            F.FullyConnected(inputs, i2h_weight, i2h_bias, num_hidden=rows, name=f"{step}i2h"),
            F.FullyConnected(state, h2h_weight, h2h_bias, num_hidden=rows, name=f"{step}h2h"),
        )


class RNNCell(GatedCell):
    r"""Simple recurrent cell: :math:`h' = act(W_i x + b_i + W_h h + b_h)`.

    Parameters
    ----------
    hidden_size : int
        Size of output and state.
    activation : str or Block, default 'tanh'
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
        Of the weights and biases for input and state.
    input_size : int, default 0
        0 takes it from the first input.
    prefix : str, optional
    params : ParameterDict, optional

    Notes
    -----
    Elman, "Finding Structure in Time" (1990). Behaviour matched: MXNet 1.9.1.

    Examples
    --------
    >>> import mxcore as mx
    >>> cell = mx.gluon.rnn.RNNCell(4)
    >>> cell.initialize()
    >>> cell(mx.nd.ones((2, 3)), cell.begin_state(2))[0].shape
    (2, 4)
    """

    def __init__(
        self,
        hidden_size: int,
        activation: str | Block = "tanh",
        i2h_weight_initializer: Initializer | str | None = None,
        h2h_weight_initializer: Initializer | str | None = None,
        i2h_bias_initializer: Initializer | str | None = "zeros",
        h2h_bias_initializer: Initializer | str | None = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ) -> None:
        super().__init__(
            hidden_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            input_size,
            prefix,
            params,
        )
        self._activation = activation

    def _alias(self) -> str:
        return "rnn"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        step, i2h, h2h = self._products(F, inputs, states[0], i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        output = self._get_activation(
            F, F.elemwise_add(i2h, h2h, name=f"{step}plus0"), self._activation, name=f"{step}out"
        )
        return output, [output]


class LSTMCell(GatedCell):
    r"""Long short-term memory cell; its states are output and memory.

    Gates are in the order in, forget, new, out: :math:`c' = f c + i g`, :math:`h' = o \tanh(c')`.

    Parameters
    ----------
    hidden_size : int
        Size of output and states.
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
        ``mx.init.LSTMBias`` begins with an open forget gate.
    input_size : int, default 0
        0 takes it from the first input.
    prefix : str, optional
    params : ParameterDict, optional
    activation : str or Block, default 'tanh'
        Of the new memory and of the output.
    recurrent_activation : str or Block, default 'sigmoid'
        Of the gates.

    Notes
    -----
    Hochreiter and Schmidhuber, "Long Short-Term Memory" (1997). Behaviour matched: MXNet 1.9.1.

    Examples
    --------
    >>> import mxcore as mx
    >>> cell = mx.gluon.rnn.LSTMCell(4)
    >>> cell.initialize()
    >>> output, states = cell(mx.nd.ones((2, 3)), cell.begin_state(2))
    >>> output.shape, len(states)
    ((2, 4), 2)
    """

    _gates, _states = 4, 2

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Initializer | str | None = None,
        h2h_weight_initializer: Initializer | str | None = None,
        i2h_bias_initializer: Initializer | str | None = "zeros",
        h2h_bias_initializer: Initializer | str | None = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: ParameterDict | None = None,
        activation: str | Block = "tanh",
        recurrent_activation: str | Block = "sigmoid",
    ) -> None:
        super().__init__(
            hidden_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            input_size,
            prefix,
            params,
        )
        self._activation, self._recurrent_activation = activation, recurrent_activation

    def _alias(self) -> str:
        return "lstm"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        step, i2h, h2h = self._products(F, inputs, states[0], i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        gates = F.SliceChannel(
            F.elemwise_add(i2h, h2h, name=f"{step}plus0"), num_outputs=4, axis=self._axis, name=f"{step}slice"
        )
        enter, forget, leave = (
            self._get_activation(F, gates[i], self._recurrent_activation, name=step + n)
            for i, n in ((0, "i"), (1, "f"), (3, "o"))
        )
        new = self._get_activation(F, gates[2], self._activation, name=f"{step}c")
        memory = F.elemwise_add(
            F.elemwise_mul(forget, states[1], name=f"{step}mul0"),
            F.elemwise_mul(enter, new, name=f"{step}mul1"),
            name=f"{step}state",
        )
        output = F.elemwise_mul(
            leave, self._get_activation(F, memory, self._activation, name=f"{step}activation0"), name=f"{step}out"
        )
        return output, [output, memory]


class GRUCell(GatedCell):
    r"""Gated recurrent unit, in cuDNN's form: the reset gate is applied after the product with the state.

    Gates are in the order reset, update, new: :math:`h' = (1 - z) n + z h`.

    Parameters
    ----------
    hidden_size : int
        Size of output and state.
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    input_size : int, default 0
        0 takes it from the first input.
    prefix : str, optional
    params : ParameterDict, optional

    Notes
    -----
    Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder" (2014). Behaviour matched: MXNet 1.9.1.

    Examples
    --------
    >>> import mxcore as mx
    >>> cell = mx.gluon.rnn.GRUCell(4)
    >>> cell.initialize()
    >>> cell(mx.nd.ones((2, 3)), cell.begin_state(2))[0].shape
    (2, 4)
    """

    _gates, _activation = 3, "tanh"

    def _alias(self) -> str:
        return "gru"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        step, i2h, h2h = self._products(F, inputs, states[0], i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        i_reset, i_update, i_new = F.SliceChannel(i2h, num_outputs=3, axis=self._axis, name=f"{step}i2h_slice")
        h_reset, h_update, h_new = F.SliceChannel(h2h, num_outputs=3, axis=self._axis, name=f"{step}h2h_slice")
        reset = F.Activation(
            F.elemwise_add(i_reset, h_reset, name=f"{step}plus0"), act_type="sigmoid", name=f"{step}r_act"
        )
        update = F.Activation(
            F.elemwise_add(i_update, h_update, name=f"{step}plus1"), act_type="sigmoid", name=f"{step}z_act"
        )
        new = self._get_activation(
            F,
            F.elemwise_add(i_new, F.elemwise_mul(reset, h_new, name=f"{step}mul0"), name=f"{step}plus2"),
            self._activation,
            name=f"{step}h_act",
        )
        output = F.elemwise_add(
            F.elemwise_mul(1.0 - update, new, name=f"{step}mul1"),
            F.elemwise_mul(update, states[0], name=f"{step}mul20"),
            name=f"{step}out",
        )
        return output, [output]
