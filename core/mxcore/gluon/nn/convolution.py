"""Convolutions and transposed convolutions of one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._signatures import with_defaults
from ...base import asserted, error, plain
from ..block import HybridBlock
from .dense import activation_or_none

if TYPE_CHECKING:
    from ...initializer import Initializer
    from ..parameter import Parameter, ParameterDict

__all__ = ["Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose"]

_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def spread(value: int | Sequence[int], ndim: int, what: str) -> tuple[int, ...]:
    """`value` once a dimension, if it is a single number."""
    if isinstance(value, (int, np.integer)):
        return (int(value),) * ndim
    values: tuple[int, ...] = plain(tuple(value))
    if len(values) != ndim:
        raise asserted(ValueError, f"{what} must be a number or {ndim} of them, got {values}")
    return values


def dimensions(layer: Any, layout: str) -> int:
    """How many dimensions a layer has, from its class or its layout, which is checked."""
    allowed = _LAYOUTS.get(layer._ndim, sum(_LAYOUTS.values(), ()))
    if layout not in allowed:
        raise asserted(ValueError, f"{type(layer).__name__}: layout must be one of {allowed}, got {layout!r}")
    return len(layout) - 2


def outline(layer: Any, weight: Parameter, bias: Parameter | None) -> str:
    """What a convolution shows of itself: its numbers of channels, and what is not as usual."""
    k, n = layer._kwargs, len(layer._kwargs["kernel"])
    parts = [f"{weight.shape[1] or None} -> {weight.shape[0]}", f"kernel_size={k['kernel']}", f"stride={k['stride']}"]
    parts += [f"padding={k['pad']}"] if k["pad"] != (0,) * n else []
    parts += [f"dilation={k['dilate']}"] if k["dilate"] != (1,) * n else []
    parts += [f"groups={k['num_group']}"] if k["num_group"] != 1 else []
    parts += ["bias=False"] if bias is None else []
    parts += [str(layer.act)] if layer.act is not None else []
    return f"{type(layer).__name__}({', '.join(parts)})"


class _Conv(HybridBlock):
    """All convolutions. Toolkits derive their own from it: parameters and attributes are MXNet's."""

    _ndim: int | None = None

    def __init__(
        self,
        channels: int,
        kernel_size: int | tuple[int, ...],
        strides: int | tuple[int, ...],
        padding: int | tuple[int, ...],
        dilation: int | tuple[int, ...],
        groups: int,
        layout: str,
        in_channels: int = 0,
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Initializer | str | None = None,
        bias_initializer: Initializer | str | None = "zeros",
        op_name: str = "Convolution",
        adj: int | tuple[int, ...] | None = None,
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        ndim, kind = dimensions(self, layout), type(self).__name__
        self._op_name = op_name
        self._channels = channels
        self._in_channels = in_channels
        self._layout = layout
        self._kwargs: dict[str, Any] = {
            "kernel": spread(kernel_size, ndim, f"{kind}: kernel_size"),
            "stride": spread(strides, ndim, f"{kind}: strides"),
            "dilate": spread(dilation, ndim, f"{kind}: dilation"),
            "pad": spread(padding, ndim, f"{kind}: padding"),
            "num_filter": channels,
            "num_group": groups,
            "no_bias": not use_bias,
            "layout": layout,
        }
        if adj is not None:
            self._kwargs["adj"] = spread(adj, ndim, f"{kind}: output_padding")
        with self.name_scope():
            self.weight = self.params.get(
                "weight", shape=self._weight_shape(in_channels), init=weight_initializer, allow_deferred_init=True
            )
            self.bias = (
                self.params.get("bias", shape=(channels,), init=bias_initializer, allow_deferred_init=True)
                if use_bias
                else None
            )
            self.act = activation_or_none(activation)

    def _weight_shape(self, in_channels: int) -> tuple[int, ...]:
        groups, kernel = self._kwargs["num_group"], self._kwargs["kernel"]
        if in_channels % groups or self._channels % groups:
            raise error(
                ValueError,
                f"{type(self).__name__}: {in_channels} input and {self._channels} output channels cannot be "
                f"cut into {groups} groups",
            )
        first, second = self._channels, in_channels // groups
        if self._op_name == "Deconvolution":
            first, second = in_channels, self._channels // groups
        return (first, *kernel, second) if self._layout.endswith("C") else (first, second, *kernel)

    def _alias(self) -> str:
        return "conv"

    def __repr__(self) -> str:
        return outline(self, self.weight, self.bias)

    def infer_shape(self, x: Any, *args: Any) -> None:
        if len(x.shape) != len(self._layout):
            raise error(
                ValueError,
                f"{type(self).__name__} takes input with axes {self._layout}, got an array of shape {x.shape}",
            )
        self.weight.shape = self._weight_shape(x.shape[self._layout.index("C")])

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        op = getattr(F, self._op_name)
        if bias is None:
            y = op(x, weight, name="fwd", **self._kwargs)
        else:
            y = op(x, weight, bias, name="fwd", **self._kwargs)
        return y if self.act is None else self.act(y)


class _Convolution(_Conv):
    """Convolutions, by the arguments of their layers."""

    def __init__(
        self,
        channels: int,
        kernel_size: int | tuple[int, ...],
        strides: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        layout: str = "NCW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Initializer | str | None = None,
        bias_initializer: Initializer | str | None = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            channels,
            kernel_size,
            strides,
            padding,
            dilation,
            groups,
            layout,
            in_channels,
            activation,
            use_bias,
            weight_initializer,
            bias_initializer,
            **kwargs,
        )


class Conv1D(_Convolution):
    """1-dimensional convolution.

    Parameters
    ----------
    channels : int
        Number of output channels.
    kernel_size : int or tuple of 1 int
    strides, padding, dilation : int or tuple of 1 int
    groups : int, default 1
        Number of groups into which input and output channels are cut.
    layout : {'NCW', 'NWC'}
        Order of the axes of input and output.
    activation : str, optional
        Name of an `Activation`.
    use_bias : bool, default True
    weight_initializer, bias_initializer : Initializer or str, optional
    in_channels : int, default 0
        Number of input channels; 0 takes it from the first batch.
    **kwargs
        prefix, params.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.nn.Conv1D``.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.nn.Conv1D(2, 3)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((1, 1, 5))).shape
    (1, 2, 3)
    """

    _ndim = 1


@with_defaults(strides=(1, 1), padding=(0, 0), dilation=(1, 1), layout="NCHW")
class Conv2D(_Convolution):
    """2-dimensional convolution; parameters as for `Conv1D`.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.nn.Conv2D(2, 3)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((1, 1, 5, 5))).shape
    (1, 2, 3, 3)
    """

    _ndim = 2


@with_defaults(strides=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1), layout="NCDHW")
class Conv3D(_Convolution):
    """3-dimensional convolution; parameters as for `Conv1D`.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.nn.Conv3D(2, 3)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((1, 1, 5, 5, 5))).shape
    (1, 2, 3, 3, 3)
    """

    _ndim = 3


class _Transposed(_Conv):
    """Transposed convolutions, by the arguments of their layers."""

    def __init__(
        self,
        channels: int,
        kernel_size: int | tuple[int, ...],
        strides: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        layout: str = "NCW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Initializer | str | None = None,
        bias_initializer: Initializer | str | None = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            channels,
            kernel_size,
            strides,
            padding,
            dilation,
            groups,
            layout,
            in_channels,
            activation,
            use_bias,
            weight_initializer,
            bias_initializer,
            "Deconvolution",
            output_padding,
            **kwargs,
        )


class Conv1DTranspose(_Transposed):
    """1-dimensional transposed convolution.

    Parameters
    ----------
    channels : int
        Number of output channels.
    kernel_size : int or tuple of 1 int
    strides, padding, output_padding, dilation : int or tuple of 1 int
    groups : int, default 1
        Number of groups into which input and output channels are cut.
    layout : {'NCW', 'NWC'}
        Order of the axes of input and output.
    activation : str, optional
        Name of an `Activation`.
    use_bias : bool, default True
    weight_initializer, bias_initializer : Initializer or str, optional
    in_channels : int, default 0
        Number of input channels; 0 takes it from the first batch.
    **kwargs
        prefix, params.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.nn.Conv1DTranspose``.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.nn.Conv1DTranspose(2, 3)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((1, 1, 5))).shape
    (1, 2, 7)
    """

    _ndim = 1


@with_defaults(strides=(1, 1), padding=(0, 0), output_padding=(0, 0), dilation=(1, 1), layout="NCHW")
class Conv2DTranspose(_Transposed):
    """2-dimensional transposed convolution; parameters as for `Conv1DTranspose`.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.nn.Conv2DTranspose(2, 3)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((1, 1, 5, 5))).shape
    (1, 2, 7, 7)
    """

    _ndim = 2


@with_defaults(strides=(1, 1, 1), padding=(0, 0, 0), output_padding=(0, 0, 0), dilation=(1, 1, 1), layout="NCDHW")
class Conv3DTranspose(_Transposed):
    """3-dimensional transposed convolution; parameters as for `Conv1DTranspose`.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.nn.Conv3DTranspose(2, 3)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((1, 1, 5, 5, 5))).shape
    (1, 2, 7, 7, 7)
    """

    _ndim = 3
