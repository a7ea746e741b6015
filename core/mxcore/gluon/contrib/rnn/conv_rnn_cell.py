"""Recurrent cells whose products are convolutions, in one to three dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....base import asserted, error
from ....ndarray import NDArray
from ...nn.convolution import spread
from ...rnn.cells import GatedCell, GRUCell, LSTMCell, RNNCell
from ...rnn.recurrent_cell import HybridRecurrentCell, check_sizes, check_states

if TYPE_CHECKING:
    from ....initializer import Initializer
    from ...block import Block
    from ...parameter import ParameterDict

__all__ = [
    "Conv1DGRUCell",
    "Conv1DLSTMCell",
    "Conv1DRNNCell",
    "Conv2DGRUCell",
    "Conv2DLSTMCell",
    "Conv2DRNNCell",
    "Conv3DGRUCell",
    "Conv3DLSTMCell",
    "Conv3DRNNCell",
]

#: Layouts by number of dimensions, those of the operator: channels first, channels last.
_LAYOUTS = {1: ("NCW",), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


class _ConvCell(GatedCell):
    """Convolutions in the place of matrices, mixed into a cell that says what is done with the products."""

    _dims = 0

    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: int | tuple[int, ...],
        h2h_kernel: int | tuple[int, ...],
        i2h_pad: int | tuple[int, ...] = 0,
        i2h_dilate: int | tuple[int, ...] = 1,
        h2h_dilate: int | tuple[int, ...] = 1,
        i2h_weight_initializer: Initializer | str | None = None,
        h2h_weight_initializer: Initializer | str | None = None,
        i2h_bias_initializer: Initializer | str | None = "zeros",
        h2h_bias_initializer: Initializer | str | None = "zeros",
        conv_layout: str | None = None,
        activation: str | Block = "tanh",
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ) -> None:
        HybridRecurrentCell.__init__(self, prefix=prefix, params=params)
        (hidden_channels,) = check_sizes(self, hidden_channels=hidden_channels)
        name, dims = type(self).__name__, self._dims
        layout = conv_layout or _LAYOUTS[dims][0]
        if layout not in _LAYOUTS[dims]:
            raise error(ValueError, f"{name}: conv_layout must be one of {', '.join(_LAYOUTS[dims])}, got {layout!r}")
        if len(input_shape) != dims + 1:
            raise error(
                ValueError, f"{name}: input_shape must be {layout[1:]}, without the batch, got {tuple(input_shape)}"
            )

        def each(value: int | tuple[int, ...], what: str) -> tuple[int, ...]:
            return spread(value, dims, f"{name}: {what}")

        i2h_kernel, h2h_kernel = each(i2h_kernel, "i2h_kernel"), each(h2h_kernel, "h2h_kernel")
        i2h_pad, i2h_dilate, h2h_dilate = (
            each(i2h_pad, "i2h_pad"),
            each(i2h_dilate, "i2h_dilate"),
            each(h2h_dilate, "h2h_dilate"),
        )
        if any(k % 2 == 0 for k in h2h_kernel):
            raise asserted(
                ValueError, f"{name}: h2h_kernel must be odd, so that states keep their size, got {h2h_kernel}"
            )
        self._input_shape, self._conv_layout, self._activation = tuple(input_shape), layout, activation
        self._recurrent_activation = "sigmoid"
        self._axis = layout.find("C")
        self._hidden_size = hidden_channels
        channels = input_shape[self._axis - 1]
        sizes = input_shape[1:] if self._axis == 1 else input_shape[:-1]
        inside = tuple(n + 2 * p - d * (k - 1) for n, p, d, k in zip(sizes, i2h_pad, i2h_dilate, i2h_kernel))
        if min(inside) < 1:
            raise error(
                ValueError,
                f"{name}: a kernel {i2h_kernel} dilated by {i2h_dilate} "
                f"leaves nothing of an input {tuple(input_shape)}",
            )
        self._state_shape = self._placed(hidden_channels, inside)
        h2h_pad = tuple(d * (k - 1) // 2 for d, k in zip(h2h_dilate, h2h_kernel))
        rows = self._gates * hidden_channels
        self._conv = {
            "i2h": {"kernel": i2h_kernel, "pad": i2h_pad, "dilate": i2h_dilate},
            "h2h": {"kernel": h2h_kernel, "pad": h2h_pad, "dilate": h2h_dilate},
        }
        for label, shape, init in (
            ("i2h_weight", (rows, *self._placed(channels, i2h_kernel)), i2h_weight_initializer),
            ("h2h_weight", (rows, *self._placed(hidden_channels, h2h_kernel)), h2h_weight_initializer),
            ("i2h_bias", (rows,), i2h_bias_initializer),
            ("h2h_bias", (rows,), h2h_bias_initializer),
        ):
            setattr(self, label, self.params.get(label, shape=shape, init=init, allow_deferred_init=True))

    def _fitting(self, inputs: Any, states: Any) -> list[Any]:
        if isinstance(inputs, NDArray) and inputs.shape[1:] != self._input_shape:
            sizes = ", ".join(map(str, self._input_shape))
            raise error(
                ValueError,
                f"{type(self).__name__} '{self.name}': inputs must be "
                f"(batch, {sizes}), as input_shape says, got {inputs.shape}",
            )
        found = check_states(self, inputs, states, spread=True)
        if isinstance(inputs, NDArray):
            return [
                s.broadcast_to((len(inputs), *s.shape[1:])) if isinstance(s, NDArray) and len(s) == 1 else s
                for s in found
            ]
        return found

    def _placed(self, channels: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
        return (channels, *sizes) if self._axis == 1 else (*sizes, channels)

    def __repr__(self) -> str:
        shape = self.i2h_weight.shape
        return f"{type(self).__name__}({shape[self._axis]} -> {shape[0]}, {self._activation}, {self._conv_layout})"

    def _alias(self) -> str:
        return "conv_" + super()._alias()

    def state_info(self, batch_size: int = 0) -> list[Any]:
        return [
            {"shape": (batch_size, *self._state_shape), "__layout__": self._conv_layout} for _ in range(self._states)
        ]

    def infer_shape(self, *args: Any) -> None:
        """Nothing is open: `input_shape` tells all."""

    def _products(
        self, F: Any, inputs: Any, state: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        step, rows = f"t{self._counter}_", self._gates * self._hidden_size
        return (
            step,
            *(
                F.Convolution(
                    x, weight, bias, num_filter=rows, layout=self._conv_layout, name=step + name, **self._conv[name]
                )
                for name, x, weight, bias in (
                    ("i2h", inputs, i2h_weight, i2h_bias),
                    ("h2h", state, h2h_weight, h2h_bias),
                )
            ),
        )


_DOC = """{kind} cell in {dims} dimension{s} whose products are convolutions.

    Parameters
    ----------
    input_shape : tuple of int
        Of one input without the batch, in `conv_layout`.
    hidden_channels : int
        Channels of output and state{states}.
    i2h_kernel, h2h_kernel : int or tuple of int
        Of the convolutions of input and state; the latter odd.
    i2h_pad, i2h_dilate, h2h_dilate : int or tuple of int
        Margins of the input, and distances inside of the kernels; the state's margins keep its size.
    i2h_weight_initializer, h2h_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
    conv_layout : {{{layouts}}}
        Channels first by default.
    activation : str or Block, default 'tanh'
    prefix : str, optional
    params : ParameterDict, optional

    Raises
    ------
    MXNetError
        (also ValueError) if shapes, kernels and layout do not fit together.

    Notes
    -----
    Shi et al., "Convolutional LSTM Network" (2015). Behaviour matched: MXNet 1.9.1.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.gluon.contrib import rnn
    >>> cell = rnn.Conv{dims}D{short}Cell({shape}, hidden_channels=4, i2h_kernel=3, h2h_kernel=3, i2h_pad=1)
    >>> cell.initialize()
    >>> cell.unroll(2, mx.nd.ones({batch}), merge_outputs=True)[0].shape
    {out}
    """


def _cell(dims: int, base: type[GatedCell], short: str, kind: str) -> Any:
    """One of the nine classes."""
    shape = (2, *(6,) * dims)
    doc = _DOC.format(
        kind=kind,
        dims=dims,
        s="s" * (dims > 1),
        states="s" * (short == "LSTM"),
        layouts=", ".join(map(repr, _LAYOUTS[dims])),
        short=short,
        shape=shape,
        batch=(1, 2, *shape),
        out=(1, 2, 4, *shape[1:]),
    )
    name = f"Conv{dims}D{short}Cell"
    return type(name, (_ConvCell, base), {"__doc__": doc, "__module__": __name__, "_dims": dims})


Conv1DRNNCell, Conv2DRNNCell, Conv3DRNNCell = (_cell(n, RNNCell, "RNN", "Simple recurrent") for n in (1, 2, 3))
Conv1DLSTMCell, Conv2DLSTMCell, Conv3DLSTMCell = (
    _cell(n, LSTMCell, "LSTM", "Long short-term memory") for n in (1, 2, 3)
)
Conv1DGRUCell, Conv2DGRUCell, Conv3DGRUCell = (_cell(n, GRUCell, "GRU", "Gated recurrent") for n in (1, 2, 3))
