"""All layers and steps in one operator."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

from .. import initializer, ndarray, symbol
from ..base import asserted, error, plain
from ..initializer.fused_rnn import GATES
from .base import BaseRNNCell
from .basic import GRUCell, LSTMCell, RNNCell
from .bidirectional import BidirectionalCell
from .dropout import DropoutCell
from .params import RNNParams
from .sequence import normalized
from .sequential import SequentialRNNCell
from .steps import states_of

__all__ = ["FusedRNNCell"]


class FusedRNNCell(BaseRNNCell):
    """Several layers of RNN, LSTM or GRU as one operator `RNN`, whose weights are one vector.

    Parameters
    ----------
    num_hidden : int
        Size of the states, and of the output for each direction.
    num_layers : int
        Number of layers.
    mode : {'lstm', 'gru', 'rnn_tanh', 'rnn_relu'}
        Kind of cell.
    bidirectional : bool
        Whether there is a second direction.
    dropout : float
        Dropout of what goes from layer to layer.
    get_next_state : bool
        Give the states after the last step too.
    forget_bias : float
        What the biases of the forget gates of an LSTM begin with.
    prefix : str, optional
        ``'<mode>_'`` unless told.
    params : RNNParams, optional

    Raises
    ------
    MXNetError
        (also ValueError) if the mode is unknown.

    Examples
    --------
    >>> import mxcore as mx
    >>> cell = mx.rnn.FusedRNNCell(4, num_layers=2, mode="lstm")
    >>> outputs, states = cell.unroll(3, mx.sym.Variable("x"), layout="TNC")
    >>> outputs.infer_shape(x=(3, 2, 5))[:2]
    ([(3, 2, 5), (336,)], [(3, 2, 4)])
    """

    def __init__(
        self,
        num_hidden: int,
        num_layers: int = 1,
        mode: str = "lstm",
        bidirectional: bool = False,
        dropout: float = 0.0,
        get_next_state: bool = False,
        forget_bias: float = 1.0,
        prefix: str | None = None,
        params: RNNParams | None = None,
    ) -> None:
        if mode not in GATES:
            raise error(ValueError, f"FusedRNNCell: mode must be one of {', '.join(GATES)}, not {mode!r}")
        super().__init__(prefix=f"{mode}_" if prefix is None else prefix, params=params)
        num_hidden, num_layers = plain((num_hidden, num_layers))
        self._num_hidden, self._num_layers, self._mode = num_hidden, num_layers, mode
        self._bidirectional, self._dropout, self._get_next_state = bidirectional, dropout, get_next_state
        self._directions = ["l", "r"] if bidirectional else ["l"]
        init = initializer.FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias)
        self._parameter = self._params.get("parameters", init=init)

    @property
    def state_info(self) -> list[Any]:
        n = 2 if self._mode == "lstm" else 1
        return [
            {"shape": (len(self._directions) * self._num_layers, 0, self._num_hidden), "__layout__": "LNC"}
            for _ in range(n)
        ]

    @property
    def _gate_names(self) -> Any:
        return list(GATES[self._mode])

    # -- weights -----------------------------------------------------------------------------------------------
    def _parts(self, num_input: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Name and shape of each part of the vector, in its order: all weights, then all biases."""
        h = self._num_hidden
        blocks = [
            (f"{self._prefix}{d}{layer}", num_input if layer == 0 else len(self._directions) * h)
            for layer in range(self._num_layers)
            for d in self._directions
        ]
        for where, width in blocks:
            for group, n in (("i2h", width), ("h2h", h)):
                yield from ((f"{where}_{group}{gate}_weight", (h, n)) for gate in self._gate_names)
        for where, _ in blocks:
            for group in ("i2h", "h2h"):
                yield from ((f"{where}_{group}{gate}_bias", (h,)) for gate in self._gate_names)

    def _slice_weights(self, arr: Any, li: int, lh: int) -> dict[str, Any]:
        """Views of the parts of the vector, by name; `li` is the size of the input, `lh` that of the state."""
        found, start = {}, 0
        for name, shape in self._parts(li):
            stop = start + math.prod(shape)
            found[name], start = arr[start:stop].reshape(shape), stop
        return found

    def unpack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        """Split the vector into one array a layer, direction, product and gate: ``<prefix>l0_i2h_i_weight`` …

        Parameters
        ----------
        args : dict of str to NDArray

        Returns
        -------
        dict of str to NDArray

        Raises
        ------
        MXNetError
            (also ValueError) if the vector is missing, or its length fits no size of the input.
        """
        args = dict(args)
        arr = self._taken(args, self._parameter.name, "unpack_weights")
        h, b = self._num_hidden, len(self._directions)
        width = arr.size / (b * h * self._num_gates) - (self._num_layers - 1) * (h + b * h + 2) - h - 2
        if width < 1 or width != int(width):
            raise asserted(
                ValueError,
                f"unpack_weights: {arr.size} numbers in {self._parameter.name!r} fit no {self._mode} of "
                f"{self._num_layers} layers, {b} directions and {h} hidden units",
            )
        args.update((name, part.copy()) for name, part in self._slice_weights(arr, int(width), h).items())
        return args

    def pack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        """Join the arrays of `unpack_weights` into the vector again.

        Parameters
        ----------
        args : dict of str to NDArray

        Returns
        -------
        dict of str to NDArray

        Raises
        ------
        MXNetError
            (also ValueError) if one is missing or has a shape that does not fit.
        """
        args = dict(args)
        first = f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"
        if first not in args:
            self._taken(args, first, "pack_weights")  # an error
        w0 = args[first]
        if len(w0.shape) != 2:
            raise error(ValueError, f"pack_weights: {first!r} has shape {w0.shape}, (hidden, input) is needed")
        parts = []
        for name, shape in self._parts(w0.shape[1]):
            part = self._taken(args, name, "pack_weights")
            if tuple(part.shape) != shape:
                raise error(ValueError, f"pack_weights: {name!r} has shape {tuple(part.shape)}, {shape} is needed")
            parts.append(part.reshape((-1,)))
        args[self._parameter.name] = ndarray.concat(*parts, dim=0)
        return args

    # -- graphs ------------------------------------------------------------------------------------------------
    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        raise error(
            NotImplementedError,
            "FusedRNNCell has no single step: one operator computes the whole sequence; call unroll(), or "
            "unfuse() for cells with steps",
        )

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None
    ) -> tuple[Any, list[Any]]:
        self.reset()
        inputs, axis = normalized(length, inputs, layout, True)
        if axis == 1:
            warnings.warn("FusedRNNCell: layout 'NTC' swaps axes before and after; 'TNC' is faster", stacklevel=2)
            inputs = symbol.swapaxes(inputs, dim1=0, dim2=1)
        states = states_of(self, self.begin_state() if begin_state is None else begin_state)
        named = dict(zip(("state", "state_cell"), states))
        rnn = symbol.RNN(
            data=inputs,
            parameters=self._parameter,
            state_size=self._num_hidden,
            num_layers=self._num_layers,
            bidirectional=self._bidirectional,
            p=self._dropout,
            state_outputs=self._get_next_state,
            mode=self._mode,
            name=f"{self._prefix}rnn",
            **named,
        )
        outputs, after = rnn, []
        if self._get_next_state:
            outputs, *after = list(rnn)
            for state in after:
                state._set_attr(__layout__="LNC")
        if axis == 1:
            outputs = symbol.swapaxes(outputs, dim1=0, dim2=1)
        outputs, _ = normalized(length, outputs, layout, merge_outputs)
        return outputs, after

    def unfuse(self) -> SequentialRNNCell:
        """The same network as a stack of single cells; the weights of `unpack_weights` fit it after its `pack_weights`.

        Returns
        -------
        SequentialRNNCell
        """
        kinds: dict[str, Any] = {
            "lstm": LSTMCell,
            "gru": GRUCell,
            "rnn_tanh": lambda h, prefix: RNNCell(h, activation="tanh", prefix=prefix),
            "rnn_relu": lambda h, prefix: RNNCell(h, activation="relu", prefix=prefix),
        }
        make = kinds[self._mode]
        stack = SequentialRNNCell()
        for i in range(self._num_layers):
            cells = [make(self._num_hidden, prefix=f"{self._prefix}{d}{i}_") for d in self._directions]
            stack.add(
                BidirectionalCell(cells[0], cells[1], output_prefix=f"{self._prefix}bi_l{i}_")
                if self._bidirectional
                else cells[0]
            )
            if self._dropout > 0 and i != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{self._prefix}_dropout{i}_"))
        return stack
