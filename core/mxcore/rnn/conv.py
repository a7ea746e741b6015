"""Cells whose products are convolutions: states are images."""

from __future__ import annotations

import functools
from typing import Any

from .. import symbol
from ..base import asserted, plain
from .base import BaseRNNCell
from .params import RNNParams
from .steps import GRUStep, LSTMStep, SimpleStep

__all__ = ["BaseConvRNNCell", "ConvGRUCell", "ConvLSTMCell", "ConvRNNCell"]

_leaky = functools.partial(symbol.LeakyReLU, act_type="leaky", slope=0.2)


class BaseConvRNNCell(BaseRNNCell):
    """Base of the convolutional cells.

    Parameters
    ----------
    input_shape : tuple of int
        Shape of the input of a step, such as (1, channels, height, width); the batch may be anything.
    num_hidden : int
        Channels of output and state.
    h2h_kernel, h2h_dilate : tuple of int
        Kernel, of odd sizes, and dilation of the convolution of the state; its padding keeps the size.
    i2h_kernel, i2h_stride, i2h_pad, i2h_dilate : tuple of int
        The convolution of the input.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer : str or Initializer
    activation : str or callable
    prefix : str, optional
        That of the class, such as ``'ConvLSTM_'``, unless told.
    params : RNNParams, optional
    conv_layout : str
        ``'NCHW'`` or ``'NHWC'``.

    Raises
    ------
    MXNetError
        (also ValueError) for a kernel of even size, or an input shape that the convolution does not fit.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.rnn.ConvRNNCell(input_shape=(1, 3, 9, 9), num_hidden=4, i2h_stride=(2, 2)).state_info[0]["shape"]
    (0, 4, 5, 5)
    """

    _default_prefix = ""

    def __init__(
        self,
        input_shape: Any,
        num_hidden: int,
        h2h_kernel: Any = (3, 3),
        h2h_dilate: Any = (1, 1),
        i2h_kernel: Any = (3, 3),
        i2h_stride: Any = (1, 1),
        i2h_pad: Any = (1, 1),
        i2h_dilate: Any = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        activation: Any = _leaky,
        prefix: str | None = None,
        params: RNNParams | None = None,
        conv_layout: str = "NCHW",
    ) -> None:
        if any(k % 2 == 0 for k in h2h_kernel):
            raise asserted(
                ValueError,
                f"{type(self).__name__}: h2h_kernel must have odd sizes, so that the state keeps its own, "
                f"got {tuple(h2h_kernel)}",
            )
        super().__init__(prefix=self._default_prefix if prefix is None else prefix, params=params)
        self._num_hidden, self._activation, self._conv_layout = plain(num_hidden), activation, conv_layout
        pad = tuple(d * (k - 1) // 2 for k, d in zip(h2h_kernel, h2h_dilate))
        self._h2h = {"kernel": h2h_kernel, "stride": (1,) * len(h2h_kernel), "pad": pad, "dilate": h2h_dilate}
        self._i2h = {"kernel": i2h_kernel, "stride": i2h_stride, "pad": i2h_pad, "dilate": i2h_dilate}
        get = self._params.get
        self._iW, self._iB = get("i2h_weight", init=i2h_weight_initializer), get("i2h_bias", init=i2h_bias_initializer)
        self._hW, self._hB = get("h2h_weight", init=h2h_weight_initializer), get("h2h_bias", init=h2h_bias_initializer)
        probe = symbol.Convolution(
            symbol.Variable("data"), num_filter=num_hidden, layout=conv_layout, name="i2h", **self._i2h
        )
        self._state_shape = (0, *probe.infer_shape(data=tuple(input_shape))[1][0][1:])

    @property
    def state_info(self) -> list[Any]:
        return [{"shape": self._state_shape, "__layout__": self._conv_layout}]

    @property
    def _axis(self) -> dict[str, int]:
        return {"axis": self._conv_layout.find("C")}

    def _conv_forward(self, inputs: Any, states: Any, name: str) -> tuple[Any, Any]:
        """The convolutions of input and state."""
        return self._products(inputs, states[0], name)

    def _products(self, inputs: Any, state: Any, name: str) -> tuple[Any, Any]:
        n, layout = self._num_hidden * self._num_gates, self._conv_layout
        return (
            symbol.Convolution(inputs, self._iW, self._iB, num_filter=n, layout=layout, name=f"{name}i2h", **self._i2h),
            symbol.Convolution(state, self._hW, self._hB, num_filter=n, layout=layout, name=f"{name}h2h", **self._h2h),
        )


class ConvRNNCell(SimpleStep, BaseConvRNNCell):
    """The simple cell with convolutions; parameters as in `BaseConvRNNCell`.

    Examples
    --------
    >>> import mxcore as mx
    >>> out, states = mx.rnn.ConvRNNCell((1, 3, 8, 8), 4).unroll(2, mx.sym.Variable("x"))
    >>> out[1].infer_shape(x=(5, 2, 3, 8, 8))[1]
    [(5, 4, 8, 8)]
    """

    _default_prefix = "ConvRNN_"


class ConvLSTMCell(LSTMStep, BaseConvRNNCell):
    """An LSTM with convolutions; parameters as in `BaseConvRNNCell`, its states are output and cell.

    Examples
    --------
    >>> import mxcore as mx
    >>> out, states = mx.rnn.ConvLSTMCell((1, 3, 8, 8), 4).unroll(2, mx.sym.Variable("x"))
    >>> out[1].infer_shape(x=(5, 2, 3, 8, 8))[1], len(states)
    ([(5, 4, 8, 8)], 2)
    """

    _default_prefix = "ConvLSTM_"


class ConvGRUCell(GRUStep, BaseConvRNNCell):
    """A GRU with convolutions; parameters as in `BaseConvRNNCell`.

    Examples
    --------
    >>> import mxcore as mx
    >>> out, states = mx.rnn.ConvGRUCell((1, 3, 8, 8), 4).unroll(2, mx.sym.Variable("x"))
    >>> out[1].infer_shape(x=(5, 2, 3, 8, 8))[1]
    [(5, 4, 8, 8)]
    """

    _default_prefix = "ConvGRU_"

    @property
    def _axis(self) -> dict[str, int]:
        # As in MXNet, which cuts along axis 1 in any layout.
        return {} if self._conv_layout.find("C") == 1 else super()._axis
