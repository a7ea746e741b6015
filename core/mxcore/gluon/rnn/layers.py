"""Whole recurrent layers on the fused operator ``RNN``: simple, LSTM, GRU."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import ndarray as nd
from ...base import asserted, error, plain
from ..block import HybridBlock
from ..utils import of_mode
from . import cells
from .containers import BidirectionalCell, HybridSequentialRNNCell
from .modifiers import DropoutCell
from .recurrent_cell import check_sizes
from .sequences import face, is_one

if TYPE_CHECKING:
    from ...context import Context
    from ...initializer import Initializer
    from ...ndarray import NDArray
    from ..parameter import Parameter
    from .recurrent_cell import RecurrentCell

__all__ = ["GRU", "LSTM", "RNN"]

#: Gates of each mode of the operator, and the cell that does the same.
_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
_LAYOUTS = ("TNC", "NTC")
#: Attributes of parameters: direction, layer, product, kind.
_NAME = re.compile(r"([lr])(\d+)_(i2h|h2h|h2r)_(weight|bias)")


def _no_state(shape: tuple[int, ...], ctx: Context, dtype: Any, **_: Any) -> Any:
    return nd.full(shape, 0, ctx, dtype)  # which takes an empty batch


class _Zeros(list[Any]):
    """States to begin with that a layer made itself: nobody wants those after the last step."""


class _RNNLayer(HybridBlock):
    """Base of the layers: their parameters, states and calls."""

    l0_i2h_weight: Parameter

    def __init__(
        self,
        hidden_size: int,
        num_layers: int,
        layout: str,
        dropout: float,
        bidirectional: bool,
        input_size: int,
        i2h_weight_initializer: Initializer | str | None,
        h2h_weight_initializer: Initializer | str | None,
        i2h_bias_initializer: Initializer | str | None,
        h2h_bias_initializer: Initializer | str | None,
        mode: str,
        projection_size: int | None = None,
        h2r_weight_initializer: Initializer | str | None = None,
        lstm_state_clip_min: float | None = None,
        lstm_state_clip_max: float | None = None,
        lstm_state_clip_nan: bool = False,
        dtype: Any = "float32",
        use_sequence_length: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if layout not in _LAYOUTS:
            raise asserted(
                ValueError, f"{type(self).__name__}: layout must be one of {' and '.join(_LAYOUTS)}, got {layout!r}"
            )
        hidden_size, num_layers = check_sizes(self, hidden_size=hidden_size, num_layers=num_layers)
        if projection_size and mode != "lstm":
            raise error(TypeError, f"{type(self).__name__}: only an LSTM takes projection_size")
        self._hidden_size, self._projection_size, self._num_layers = (
            hidden_size,
            plain(projection_size) or None,
            num_layers,
        )
        self._mode, self._layout, self._dropout, self._dir = mode, layout, dropout, 2 if bidirectional else 1
        self._input_size, self._gates = input_size, _GATES[mode]
        self._lstm_state_clip = {
            "lstm_state_clip_min": lstm_state_clip_min,
            "lstm_state_clip_max": lstm_state_clip_max,
            "lstm_state_clip_nan": lstm_state_clip_nan,
        }
        self._dtype, self._use_sequence_length = dtype, use_sequence_length
        rows, out = self._gates * hidden_size, self._out_size
        for i in range(num_layers):
            for d in self._directions:
                width = input_size if i == 0 else out * self._dir
                for name, shape, init in (
                    (f"{d}{i}_i2h_weight", (rows, width), i2h_weight_initializer),
                    (f"{d}{i}_h2h_weight", (rows, out), h2h_weight_initializer),
                    (f"{d}{i}_i2h_bias", (rows,), i2h_bias_initializer),
                    (f"{d}{i}_h2h_bias", (rows,), h2h_bias_initializer),
                    *(
                        [(f"{d}{i}_h2r_weight", (out, hidden_size), h2r_weight_initializer)]
                        if self._projection_size
                        else ()
                    ),
                ):
                    setattr(
                        self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True, dtype=dtype)
                    )

    @property
    def _directions(self) -> str:
        return "lr"[: self._dir]

    @property
    def _out_size(self) -> int:
        return self._projection_size or self._hidden_size

    def __repr__(self) -> str:
        width = self.l0_i2h_weight.shape[1] if self._num_layers else None
        more = f", num_layers={self._num_layers}" if self._num_layers != 1 else ""
        more += f", dropout={self._dropout}" if self._dropout else ""
        more += ", bidirectional" if self._dir == 2 else ""
        return f"{type(self).__name__}({width or None} -> {self._hidden_size}, {self._layout}{more})"

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Parameters under the names that MXNet's files have: those of the cells that do the same."""
        prefix += "." if prefix else ""
        found = {}
        for name, parameter in self._reg_params.items():
            parts = _NAME.fullmatch(name)
            assert parts is not None
            d, layer, product, kind = parts.groups()
            cell = f"{d}_cell." if self._dir == 2 else ""
            found[f"{prefix}_unfused.{layer}.{cell}{product}_{kind}"] = parameter
        return found

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape, layout and dtype of each state.

        Parameters
        ----------
        batch_size : int

        Returns
        -------
        list of dict
            Shapes are ``(layers * directions, batch, size)``.
        """
        layers = self._num_layers * self._dir
        sizes = [self._out_size, *([self._hidden_size] if self._mode == "lstm" else ())]
        return [{"shape": (layers, batch_size, size), "__layout__": "LNC", "dtype": self._dtype} for size in sizes]

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = nd.zeros, **kwargs: Any) -> list[Any]:
        """States to begin with.

        Parameters
        ----------
        batch_size : int
            0 where symbols are made, which find it out.
        func : callable
            Makes each: ``mx.nd.zeros``, ``mx.sym.var`` …
        **kwargs
            For `func`, as ``ctx`` and ``dtype``.

        Returns
        -------
        list of NDArray or Symbol
        """
        return [
            of_mode(func(name=f"{self.prefix}h0_{i}", **{**info, **kwargs}))
            for i, info in enumerate(self.state_info(batch_size))
        ]

    def cast(self, dtype: Any) -> None:
        super().cast(dtype)
        self._dtype = dtype

    def infer_shape(self, inputs: Any, *args: Any) -> None:
        if len(inputs.shape) != 3:
            raise error(
                ValueError,
                f"{type(self).__name__} '{self.name}': "
                f"inputs must have three axes ({self._layout}), got {inputs.shape}",
            )
        for d in self._directions:
            getattr(self, f"{d}0_i2h_weight").shape = self._gates * self._hidden_size, inputs.shape[2]

    def __call__(self, inputs: Any, states: Any = None, sequence_length: Any = None, **kwargs: Any) -> Any:  # type: ignore[override]  # their names are MXNet's
        if states is None:
            F = face(inputs)
            if F is nd:
                batch = inputs.shape[self._layout.find("N")] if inputs.ndim == 3 else 0
                states = _Zeros(self.begin_state(batch, _no_state, ctx=inputs.context, dtype=inputs.dtype))
            else:
                states = _Zeros(self.begin_state(0, func=F.zeros))
        else:
            states = [states] if is_one(states) else list(states)
        if isinstance(inputs, nd.NDArray):
            self._check(inputs, states)
        more: tuple[Any, ...] = ()
        if self._use_sequence_length:
            if sequence_length is None:
                raise error(
                    ValueError,
                    f"{type(self).__name__} '{self.name}' was made "
                    "with use_sequence_length=True: sequence_length is missing",
                )
            more = (sequence_length,)
        elif sequence_length is not None:
            raise error(
                ValueError,
                f"{type(self).__name__} '{self.name}' takes no sequence_length: make it with use_sequence_length=True",
            )
        return super().__call__(inputs, states, *more, **kwargs)

    def forward(self, x: Any, *args: Any) -> Any:
        found = super().forward(x, *args)
        return found[0] if args and isinstance(args[0], _Zeros) else found

    def _check(self, inputs: NDArray, states: list[Any]) -> None:
        what = f"{type(self).__name__} '{self.name}'"
        if inputs.ndim != 3:
            raise error(ValueError, f"{what}: inputs must have three axes ({self._layout}), got {inputs.shape}")
        width = self.l0_i2h_weight.shape[1] if self._num_layers else 0
        if width > 0 and inputs.shape[2] != width:
            raise error(
                ValueError,
                f"{what}: inputs {inputs.shape} have {inputs.shape[2]} channels, the layer was made for {width}",
            )
        batch = inputs.shape[self._layout.find("N")]
        wanted = [info["shape"] for info in self.state_info(batch)]
        got = [getattr(s, "shape", type(s).__name__) for s in states]
        if got != wanted:
            raise error(
                ValueError,
                f"{what}: states must be {', '.join(map(str, wanted))} for a batch of {batch}, got "
                f"{', '.join(map(str, got))}; "
                f"begin_state({batch}) makes them",
            )

    def hybrid_forward(  # type: ignore[override]  # parameters come as keywords, so `states` is free as a name
        self, F: Any, inputs: Any, states: Any, sequence_length: Any = None, **kwargs: Any
    ) -> Any:
        if self._layout == "NTC":
            inputs = F.swapaxes(inputs, dim1=0, dim2=1)
        order = [
            (d, i, g, t)
            for t in ("weight", "bias")
            for i in range(self._num_layers)
            for d in self._directions
            for g in ("i2h", "h2h", "h2r")
        ]
        flat = [
            F.reshape(kwargs[name], shape=(-1,)) for name in ("{}{}_{}_{}".format(*o) for o in order) if name in kwargs
        ]
        rnn = F.RNN(
            inputs,
            F._internal._rnn_param_concat(*flat, dim=0),
            *states,
            *([] if sequence_length is None else [sequence_length]),
            use_sequence_length=self._use_sequence_length,
            state_size=self._hidden_size,
            projection_size=self._projection_size,
            num_layers=self._num_layers,
            bidirectional=self._dir == 2,
            p=self._dropout,
            state_outputs=True,
            mode=self._mode,
            **self._lstm_state_clip,
        )
        outputs, *states = rnn
        return F.swapaxes(outputs, dim1=0, dim2=1) if self._layout == "NTC" else outputs, states

    def _unfuse(self) -> HybridSequentialRNNCell:
        """Cells that do the same, with the same parameters.

        Returns
        -------
        HybridSequentialRNNCell
        """
        if self._projection_size:
            raise error(
                NotImplementedError,
                f"{type(self).__name__} '{self.name}' projects its states, which no cell of gluon.rnn does; "
                "gluon.contrib.rnn.LSTMPCell is the one",
            )
        if any(v is not None and v is not False for v in self._lstm_state_clip.values()):
            raise error(
                NotImplementedError, f"{type(self).__name__} '{self.name}' clips its states, which no cell does"
            )
        make: Callable[..., RecurrentCell] = {
            "rnn_relu": lambda **k: cells.RNNCell(self._hidden_size, activation="relu", **k),
            "rnn_tanh": lambda **k: cells.RNNCell(self._hidden_size, activation="tanh", **k),
            "lstm": lambda **k: cells.LSTMCell(self._hidden_size, **k),
            "gru": lambda **k: cells.GRUCell(self._hidden_size, **k),
        }[self._mode]
        stack = HybridSequentialRNNCell(prefix=self.prefix, params=self.params)
        with stack.name_scope():
            width = self._input_size
            for i in range(self._num_layers):
                layer = [make(prefix=f"{d}{i}_", input_size=width) for d in self._directions]
                stack.add(BidirectionalCell(layer[0], layer[1]) if self._dir == 2 else layer[0])
                if self._dropout > 0 and i != self._num_layers - 1:
                    stack.add(DropoutCell(self._dropout))
                width = self._hidden_size * self._dir
        return stack


class RNN(_RNNLayer):
    r"""Simple recurrent layers: :math:`h_t = act(W_i x_t + b_i + W_h h_{t-1} + b_h)`.

    Parameters
    ----------
    hidden_size : int
        Size of the output of each direction.
    num_layers : int, default 1
    activation : {'relu', 'tanh'}, default 'relu'
    layout : {'TNC', 'NTC'}, default 'TNC'
        Time, batch and channels of inputs and outputs.
    dropout : float, default 0
        On the outputs of all layers but the last, in training.
    bidirectional : bool, default False
        Outputs of both directions are joined.
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    input_size : int, default 0
        0 takes it from the first input.
    dtype : str, default 'float32'
        Of parameters and of states to begin with.
    **kwargs
        use_sequence_length: the layer takes a third input, how many steps each item has. prefix, params.

    Notes
    -----
    Called with inputs, it gives outputs; called with inputs and states, outputs and states, ``(layers * directions,
    batch, size)``. Elman, "Finding Structure in Time" (1990). Behaviour matched: MXNet 1.9.1, which takes lengths of an
    LSTM on GPUs only.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.rnn.RNN(4, num_layers=2)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((5, 2, 3))).shape
    (5, 2, 4)
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        activation: str = "relu",
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        i2h_weight_initializer: Initializer | str | None = None,
        h2h_weight_initializer: Initializer | str | None = None,
        i2h_bias_initializer: Initializer | str | None = "zeros",
        h2h_bias_initializer: Initializer | str | None = "zeros",
        input_size: int = 0,
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        if f"rnn_{activation}" not in _GATES:
            raise error(
                ValueError, f"RNN: activation must be 'relu' or 'tanh', got {activation!r}; an RNNCell takes any"
            )
        super().__init__(
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            f"rnn_{activation}",
            dtype=dtype,
            **kwargs,
        )


class LSTM(_RNNLayer):
    r"""Layers of long short-term memory; the states are output and memory.

    Parameters
    ----------
    hidden_size : int
        Size of the memory, and of the output of each direction unless it is projected.
    num_layers : int, default 1
    layout : {'TNC', 'NTC'}, default 'TNC'
        Time, batch and channels of inputs and outputs.
    dropout : float, default 0
        On the outputs of all layers but the last, in training.
    bidirectional : bool, default False
        Outputs of both directions are joined.
    input_size : int, default 0
        0 takes it from the first input.
    i2h_weight_initializer, h2h_weight_initializer, h2r_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
        ``mx.init.LSTMBias`` begins with an open forget gate.
    projection_size : int, optional
        Outputs are brought to this size by a matrix (Sak et al., 2014).
    state_clip_min, state_clip_max : float, optional
        Limits of the memory.
    state_clip_nan : bool, default False
        NaN of the memory becomes its lower limit.
    dtype : str, default 'float32'
        Of parameters and of states to begin with.
    **kwargs
        use_sequence_length: the layer takes a third input, how many steps each item has. prefix, params.

    Notes
    -----
    Called with inputs, it gives outputs; called with inputs and states, outputs and states, ``(layers * directions,
    batch, size)``. Hochreiter and Schmidhuber, "Long Short-Term Memory" (1997). Behaviour matched: MXNet 1.9.1; what
    that does on GPUs only (lengths, clipping, training projections) works everywhere.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.rnn.LSTM(4, bidirectional=True)
    >>> layer.initialize()
    >>> outputs, states = layer(mx.nd.ones((5, 2, 3)), layer.begin_state(batch_size=2))
    >>> outputs.shape, [s.shape for s in states]
    ((5, 2, 8), [(2, 2, 4), (2, 2, 4)])
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Initializer | str | None = None,
        h2h_weight_initializer: Initializer | str | None = None,
        i2h_bias_initializer: Initializer | str | None = "zeros",
        h2h_bias_initializer: Initializer | str | None = "zeros",
        projection_size: int | None = None,
        h2r_weight_initializer: Initializer | str | None = None,
        state_clip_min: float | None = None,
        state_clip_max: float | None = None,
        state_clip_nan: bool = False,
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            "lstm",
            projection_size,
            h2r_weight_initializer,
            state_clip_min,
            state_clip_max,
            state_clip_nan,
            dtype,
            **kwargs,
        )


class GRU(_RNNLayer):
    r"""Layers of gated recurrent units, in cuDNN's form.

    Parameters
    ----------
    hidden_size : int
        Size of the output of each direction.
    num_layers : int, default 1
    layout : {'TNC', 'NTC'}, default 'TNC'
        Time, batch and channels of inputs and outputs.
    dropout : float, default 0
        On the outputs of all layers but the last, in training.
    bidirectional : bool, default False
        Outputs of both directions are joined.
    input_size : int, default 0
        0 takes it from the first input.
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    dtype : str, default 'float32'
        Of parameters and of states to begin with.
    **kwargs
        use_sequence_length: the layer takes a third input, how many steps each item has. prefix, params.

    Notes
    -----
    Called with inputs, it gives outputs; called with inputs and states, outputs and states, ``(layers * directions,
    batch, size)``. Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder" (2014). Behaviour matched:
    MXNet 1.9.1, which takes lengths of an LSTM on GPUs only.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.rnn.GRU(4, layout="NTC")
    >>> layer.initialize()
    >>> layer(mx.nd.ones((2, 5, 3))).shape
    (2, 5, 4)
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Initializer | str | None = None,
        h2h_weight_initializer: Initializer | str | None = None,
        i2h_bias_initializer: Initializer | str | None = "zeros",
        h2h_bias_initializer: Initializer | str | None = "zeros",
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            "gru",
            dtype=dtype,
            **kwargs,
        )
