"""Variational dropout, the projected LSTM cell, and a loop that a graph unrolls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....base import asserted, error
from ...rnn.containers import BidirectionalCell, SequentialRNNCell
from ...rnn.modifiers import ModifierCell, Unwrapped
from ...rnn.recurrent_cell import HybridRecurrentCell, check_features, check_sizes, check_states
from ...rnn.sequences import face, formatted, is_one, masked, time_axis

if TYPE_CHECKING:
    from ....initializer import Initializer
    from ....ndarray import NDArray
    from ....symbol import Symbol
    from ...parameter import Parameter, ParameterDict
    from ...rnn.recurrent_cell import RecurrentCell

__all__ = ["LSTMPCell", "VariationalDropoutCell", "dynamic_unroll"]


class VariationalDropoutCell(ModifierCell):
    """Dropout on inputs, first state and outputs of a cell, with the same mask in every step of a sequence.

    Parameters
    ----------
    base_cell : RecurrentCell
    drop_inputs, drop_states, drop_outputs : float, default 0
        Shares of values that become zero, in training.

    Notes
    -----
    Gal and Ghahramani, "A Theoretically Grounded Application of Dropout in Recurrent Neural Networks" (2016). Behaviour
    matched: MXNet 1.9.1. `reset`, which `unroll` calls, lets masks be drawn anew.

    Examples
    --------
    >>> import mxcore as mx
    >>> cell = mx.gluon.contrib.rnn.VariationalDropoutCell(mx.gluon.rnn.LSTMCell(4), drop_inputs=0.3, drop_states=0.3)
    >>> cell.initialize()
    >>> cell.unroll(5, mx.nd.ones((2, 5, 3)), merge_outputs=True)[0].shape
    (2, 5, 4)
    """

    def __init__(
        self, base_cell: RecurrentCell, drop_inputs: float = 0.0, drop_states: float = 0.0, drop_outputs: float = 0.0
    ) -> None:
        cells = base_cell._children.values() if isinstance(base_cell, SequentialRNNCell) else (base_cell,)
        if drop_states and any(isinstance(c, BidirectionalCell) for c in cells):
            raise asserted(
                ValueError,
                "VariationalDropoutCell: a BidirectionalCell has no steps, "
                "so none whose states could be dropped; put it around the cells",
            )
        super().__init__(base_cell)
        self.drop_inputs, self.drop_states, self.drop_outputs = drop_inputs, drop_states, drop_outputs

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out = {self.drop_outputs}, p_state = {self.drop_states})"

    def _alias(self) -> str:
        return "vardrop"

    def reset(self) -> None:
        super().reset()
        #: Masks of this sequence, by what they are for.
        self._own.masks = {}

    def _dropped(self, F: Any, what: str, share: float, x: Any) -> Any:
        if not share:
            return x
        masks = self._own.__dict__.setdefault("masks", {})
        if what not in masks:
            masks[what] = F.Dropout(F.ones_like(x), p=share)
        return x * masks[what]

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        states = [self._dropped(F, "states", self.drop_states, states[0]), *states[1:]]
        with Unwrapped(self.base_cell):
            output, states = self.base_cell(self._dropped(F, "inputs", self.drop_inputs, inputs), states)
        return self._dropped(F, "outputs", self.drop_outputs, output), states

    def unroll(
        self,
        length: int | None,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, Any]:
        """Run the cell over a sequence; see `RecurrentCell.unroll`."""
        if self.drop_states:
            return super().unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)
        # What is dropped outside of the steps is dropped at once, along the axis of time.
        self.reset()
        inputs, axis, F, _ = formatted(length, inputs, layout, True)
        with Unwrapped(self.base_cell):
            outputs, states = self.base_cell.unroll(
                length,
                self._along(F, self.drop_inputs, inputs, axis),
                begin_state,
                layout,
                merge_outputs=True,
                valid_length=valid_length,
            )
        outputs = self._along(F, self.drop_outputs, outputs, axis)
        merge = isinstance(merge_outputs, bool) and not merge_outputs
        return formatted(length, outputs, layout, False)[0] if merge else outputs, states

    @staticmethod
    def _along(F: Any, share: float, x: Any, axis: int) -> Any:
        return F.Dropout(x, p=share, axes=(axis,)) if share else x


class LSTMPCell(HybridRecurrentCell):
    """Long short-term memory cell whose output is projected to another size.

    Parameters
    ----------
    hidden_size : int
        Size of the memory.
    projection_size : int
        Size of the output.
    i2h_weight_initializer, h2h_weight_initializer, h2r_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    input_size : int, default 0
        0 takes it from the first input.
    prefix : str, optional
    params : ParameterDict, optional

    Notes
    -----
    Sak et al., "Long Short-Term Memory Based Recurrent Neural Network Architectures for Large Vocabulary Speech
    Recognition" (2014). Behaviour matched: MXNet 1.9.1.

    Examples
    --------
    >>> import mxcore as mx
    >>> cell = mx.gluon.contrib.rnn.LSTMPCell(8, 3)
    >>> cell.initialize()
    >>> output, states = cell(mx.nd.ones((2, 5)), cell.begin_state(2))
    >>> output.shape, [s.shape for s in states]
    ((2, 3), [(2, 3), (2, 8)])
    """

    i2h_weight: Parameter

    def __init__(
        self,
        hidden_size: int,
        projection_size: int,
        i2h_weight_initializer: Initializer | str | None = None,
        h2h_weight_initializer: Initializer | str | None = None,
        h2r_weight_initializer: Initializer | str | None = None,
        i2h_bias_initializer: Initializer | str | None = "zeros",
        h2h_bias_initializer: Initializer | str | None = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        hidden_size, projection_size = check_sizes(self, hidden_size=hidden_size, projection_size=projection_size)
        self._hidden_size, self._projection_size, self._input_size = hidden_size, projection_size, input_size
        for name, shape, init in (
            ("i2h_weight", (4 * hidden_size, input_size), i2h_weight_initializer),
            ("h2h_weight", (4 * hidden_size, projection_size), h2h_weight_initializer),
            ("h2r_weight", (projection_size, hidden_size), h2r_weight_initializer),
            ("i2h_bias", (4 * hidden_size,), i2h_bias_initializer),
            ("h2h_bias", (4 * hidden_size,), h2h_bias_initializer),
        ):
            setattr(self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True))

    def __repr__(self) -> str:
        rows, width = self.i2h_weight.shape
        return f"{type(self).__name__}({width or None} -> {rows} -> {self._projection_size})"

    def _alias(self) -> str:
        return "lstmp"

    def state_info(self, batch_size: int = 0) -> list[Any]:
        return [{"shape": (batch_size, n), "__layout__": "NC"} for n in (self._projection_size, self._hidden_size)]

    def infer_shape(self, inputs: Any, *args: Any) -> None:
        self.i2h_weight.shape = 4 * self._hidden_size, inputs.shape[-1]

    def __call__(self, inputs: Any, states: Any) -> Any:
        check_features(self, inputs)
        return super().__call__(inputs, check_states(self, inputs, states, spread=True))

    def hybrid_forward(
        self,
        F: Any,
        inputs: Any,
        states: Any,
        i2h_weight: Any,
        h2h_weight: Any,
        h2r_weight: Any,
        i2h_bias: Any,
        h2h_bias: Any,
    ) -> Any:
        step, rows = f"t{self._counter}_", 4 * self._hidden_size
        i2h = F.FullyConnected(inputs, i2h_weight, i2h_bias, num_hidden=rows, name=f"{step}i2h")
        h2h = F.FullyConnected(states[0], h2h_weight, h2h_bias, num_hidden=rows, name=f"{step}h2h")
        gates = F.SliceChannel(i2h + h2h, num_outputs=4, name=f"{step}slice")
        enter, forget, leave = (
            F.Activation(gates[i], act_type="sigmoid", name=step + n) for i, n in ((0, "i"), (1, "f"), (3, "o"))
        )
        memory = F.elemwise_add(
            forget * states[1], enter * F.Activation(gates[2], act_type="tanh", name=f"{step}c"), name=f"{step}state"
        )
        hidden = F.elemwise_mul(leave, F.Activation(memory, act_type="tanh"), name=f"{step}hidden")
        output = F.FullyConnected(hidden, h2r_weight, num_hidden=self._projection_size, no_bias=True, name=f"{step}out")
        return output, [output, memory]


def dynamic_unroll(
    cell: RecurrentCell,
    inputs: NDArray | Symbol,
    begin_state: Sequence[NDArray] | Symbol,
    drop_inputs: float = 0,
    drop_outputs: float = 0,
    layout: str = "TNC",
    valid_length: NDArray | Symbol | None = None,
) -> tuple[NDArray | Symbol, list[NDArray] | Symbol]:
    """Run a cell over a sequence with ``foreach``: the graph holds one step, whatever the length.

    Parameters
    ----------
    cell : RecurrentCell
    inputs : NDArray or Symbol
        A sequence in `layout`.
    begin_state : list of NDArray or Symbol
        States to begin with.
    drop_inputs, drop_outputs : float
        Shares of inputs and outputs that become zero, the same ones in all steps, in training.
    layout : {'TNC', 'NTC'}
    valid_length : NDArray or Symbol, optional
        How many steps each item of the batch has, ``(batch,)``. Outputs behind are zero, states are those of the last
        one.

    Returns
    -------
    NDArray or Symbol
        The outputs, in `layout`.
    list of NDArray or Symbol
        The states after the last step.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.gluon.contrib.rnn.rnn_cell import dynamic_unroll
    >>> cell = mx.gluon.rnn.LSTMCell(4)
    >>> cell.initialize()
    >>> dynamic_unroll(cell, mx.nd.ones((5, 2, 3)), cell.begin_state(2))[0].shape
    (5, 2, 4)
    """
    F, axis = face(inputs), time_axis(layout)
    if begin_state is None:
        raise error(TypeError, "dynamic_unroll: begin_state must be given; cell.begin_state(batch_size=...) makes it")
    states = [begin_state] if is_one(begin_state) else list(begin_state)
    if axis == 1:
        inputs = F.swapaxes(inputs, dim1=0, dim2=1)
    if drop_inputs:
        inputs = F.Dropout(inputs, p=drop_inputs, axes=(0,))

    def step(x: Any, states: Any) -> Any:
        if valid_length is None:
            return cell(x, states)
        *old, count = states
        output, new = cell(x, old)
        goes_on = F.broadcast_greater(valid_length, count)
        return output, [*(F.where(goes_on, a, b) for a, b in zip(new, old)), count + 1]

    if valid_length is not None:
        states.append(F.zeros((1,), **({"ctx": inputs.context} if hasattr(inputs, "context") else {})))
    outputs, states = F.contrib.foreach(step, inputs, states)
    if drop_outputs:
        outputs = F.Dropout(outputs, p=drop_outputs, axes=(0,))
    if valid_length is not None:
        outputs, states = masked(F, outputs, None, valid_length, 0, True), states[:-1]
    return F.swapaxes(outputs, dim1=0, dim2=1) if axis == 1 else outputs, states
