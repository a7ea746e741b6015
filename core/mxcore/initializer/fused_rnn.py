"""The packed parameters of a fused RNN."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..base import error
from ..ndarray import NDArray
from .base import InitDesc, Initializer, create

#: Mode of the operator RNN -> endings of the gates' names, in the order of the packed vector.
GATES = {"rnn_relu": ("",), "rnn_tanh": ("",), "lstm": ("_i", "_f", "_c", "_o"), "gru": ("_r", "_z", "_o")}


class FusedRNN(Initializer):
    """Fill the one vector of all parameters of an `RNN` operator, part by part.

    Parameters
    ----------
    init : Initializer, str or None
        Initializer (or its JSON) of the weights and biases, each under a name like ``l0_i2h_f_weight``; the
        network's initializer if None.
    num_hidden : int
        Size of the hidden state.
    num_layers : int
        Number of layers.
    mode : {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'}
        Kind of RNN.
    bidirectional : bool
        Whether there is a second direction.
    forget_bias : float
        Bias of the forget gates of an LSTM.

    Raises
    ------
    MXNetError
        (also ValueError) if the mode is unknown or the vector's length fits no input size.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.FusedRNN``.

    Examples
    --------
    >>> import mxcore as mx
    >>> a = mx.nd.zeros(4 * 2 * (3 + 2 + 2))
    >>> init = FusedRNN(mx.init.One(), num_hidden=2, num_layers=1, mode="lstm", forget_bias=5.0)
    >>> mx.init.One()(mx.init.InitDesc("lstm_parameters", {"__init__": init.dumps()}), a)
    >>> a.asnumpy()[-8:]
    array([0., 0., 5., 5., 0., 0., 0., 0.], dtype=float32)
    """

    def __init__(
        self,
        init: Any,
        num_hidden: int,
        num_layers: int,
        mode: str,
        bidirectional: bool = False,
        forget_bias: float = 1.0,
    ) -> None:
        if mode not in GATES:
            raise error(ValueError, f"mode must be one of {', '.join(GATES)}, not {mode!r}")
        if isinstance(init, str):
            init = create(init)
        super().__init__(
            init=None if init is None else init.dumps(),
            num_hidden=num_hidden,
            num_layers=num_layers,
            mode=mode,
            bidirectional=bidirectional,
            forget_bias=forget_bias,
        )
        self._init = init
        self._num_hidden = num_hidden
        self._num_layers = num_layers
        self._mode = mode
        self._bidirectional = bidirectional
        self._forget_bias = forget_bias

    def _init_weight(self, desc: str, arr: NDArray) -> None:
        global_init = getattr(desc, "global_init", None)
        start = 0
        for name, shape in self._parts(arr.size, desc):
            stop = start + math.prod(shape)
            part = arr[start:stop].reshape(shape)  # shares memory with arr
            start = stop
            if self._mode == "lstm" and name.endswith("_f_bias"):
                part[:] = self._forget_bias
                continue
            init = global_init if self._init is None else self._init
            if init is None:
                raise error(ValueError, f"FusedRNN without init needs the network's initializer for {desc}")
            init(InitDesc(name, global_init=global_init), part)

    def _parts(self, size: int, desc: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield name and shape of every part of the packed vector: first all weights, then all biases."""
        gates, hidden, layers = GATES[self._mode], self._num_hidden, self._num_layers
        directions = ("l", "r") if self._bidirectional else ("l",)
        a_layer = len(directions) * len(gates) * hidden
        inputs = size / a_layer - (layers - 1) * (hidden * (len(directions) + 1) + 2) - hidden - 2
        if inputs < 1 or inputs != int(inputs):
            raise error(
                ValueError,
                f"{desc}: {size} parameters fit no {self._mode} of {layers} layers, "
                f"{len(directions)} directions and {hidden} hidden units",
            )
        for layer in range(layers):
            width = int(inputs) if layer == 0 else len(directions) * hidden
            for d in directions:
                for kind, n in (("i2h", width), ("h2h", hidden)):
                    yield from ((f"{d}{layer}_{kind}{gate}_weight", (hidden, n)) for gate in gates)
        for layer in range(layers):
            for d in directions:
                for kind in ("i2h", "h2h"):
                    yield from ((f"{d}{layer}_{kind}{gate}_bias", (hidden,)) for gate in gates)
