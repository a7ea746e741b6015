"""Contributed convolutions, as ``mxnet.gluon.contrib.cnn``: their windows are bent by offsets that they learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._signatures import with_defaults
from ...base import error
from ..block import HybridBlock
from ..nn.convolution import outline, spread
from ..nn.dense import activation_or_none

if TYPE_CHECKING:
    from ...initializer import Initializer
    from ..parameter import Parameter, ParameterDict

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]


class DeformableConvolution(HybridBlock):
    """2-dimensional convolution over windows whose places are moved by offsets.

    A plain convolution over the same input learns them.

    Parameters
    ----------
    channels : int
        Number of output channels.
    kernel_size, strides, padding, dilation : int or (int, int)
    groups : int, default 1
        Number of groups into which input and output channels are cut.
    num_deformable_group : int, default 1
        Number of groups of input channels with offsets of their own.
    layout : {'NCHW'}
    use_bias : bool, default True
    in_channels : int, default 0
        Number of input channels; 0 takes it from the first batch.
    activation : str, optional
        Name of an `Activation`.
    weight_initializer, bias_initializer : Initializer or str, optional
    offset_weight_initializer, offset_bias_initializer : Initializer or str, default 'zeros'
        Of the convolution that gives the offsets: with zeros the layer begins as a plain one.
    offset_use_bias : bool, default True
    op_name : str
        The operator.
    adj : int or (int, int), optional
        For transposed convolutions, of which there is no deformable one: leave it out.
    prefix, params
        See `Block`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.contrib.cnn.DeformableConvolution``. Source: Dai et al., "Deformable
    convolutional networks", 2017.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.contrib.cnn.DeformableConvolution(4, 3, padding=1)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((1, 2, 5, 6))).shape
    (1, 4, 5, 6)
    """

    offset_weight: Parameter
    offset_bias: Parameter | None
    deformable_conv_weight: Parameter
    deformable_conv_bias: Parameter | None

    #: Channels of the plain convolution for each place of a window: two coordinates, and maybe a weight.
    _values = 2
    #: Which parameters are made first, those of the plain convolution (1) or the layer's own (-1): so they stand in
    #: files.
    _order = 1

    def __init__(
        self,
        channels: int,
        kernel_size: int | tuple[int, int] = (1, 1),
        strides: int | tuple[int, int] = (1, 1),
        padding: int | tuple[int, int] = (0, 0),
        dilation: int | tuple[int, int] = (1, 1),
        groups: int = 1,
        num_deformable_group: int = 1,
        layout: str = "NCHW",
        use_bias: bool = True,
        in_channels: int = 0,
        activation: str | None = None,
        weight_initializer: Initializer | str | None = None,
        bias_initializer: Initializer | str | None = "zeros",
        offset_weight_initializer: Initializer | str | None = "zeros",
        offset_bias_initializer: Initializer | str | None = "zeros",
        offset_use_bias: bool = True,
        op_name: str = "DeformableConvolution",
        adj: int | tuple[int, int] | None = None,
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        kind = type(self).__name__
        if layout != "NCHW":
            raise error(ValueError, f"{kind}: layout must be 'NCHW', got {layout!r}")
        if adj is not None:
            raise error(
                ValueError,
                f"{kind}: adj is for transposed convolutions, of which there is no deformable one; got {adj!r}",
            )
        self._channels, self._in_channels, self._op = channels, in_channels, op_name
        kernel = spread(kernel_size, 2, f"{kind}: kernel_size")
        common = {
            "kernel": kernel,
            "stride": spread(strides, 2, f"{kind}: strides"),
            "dilate": spread(dilation, 2, f"{kind}: dilation"),
            "pad": spread(padding, 2, f"{kind}: padding"),
            "num_group": groups,
            "layout": layout,
        }
        self._offset_split = 2 * kernel[0] * kernel[1] * num_deformable_group
        offsets = self._values * kernel[0] * kernel[1] * num_deformable_group
        for what, n in (("input", in_channels), ("output", channels), ("offset", offsets)):
            if n % groups:
                raise error(ValueError, f"{kind}: {n} {what} channels cannot be cut into {groups} groups")
        self._kwargs_offset = {**common, "num_filter": offsets, "no_bias": not offset_use_bias}
        self._kwargs = {
            **common,
            "num_filter": channels,
            "no_bias": not use_bias,
            "num_deformable_group": num_deformable_group,
        }

        def parameter(name: str, shape: tuple[int, ...], init: Any, wanted: bool = True) -> Parameter | None:
            return self.params.get(name, shape=shape, init=init, allow_deferred_init=True) if wanted else None

        own = (
            ("offset", offsets, offset_weight_initializer, offset_bias_initializer, offset_use_bias),
            ("deformable_conv", channels, weight_initializer, bias_initializer, use_bias),
        )
        with self.name_scope():
            for name, n, init, bias_init, biased in own[:: self._order]:
                setattr(self, f"{name}_weight", parameter(f"{name}_weight", (n, in_channels // groups, *kernel), init))
                setattr(self, f"{name}_bias", parameter(f"{name}_bias", (n,), bias_init, biased))
            self.act = activation_or_none(activation)

    def _alias(self) -> str:
        return "deformable_conv"

    def __repr__(self) -> str:
        return outline(self, self.deformable_conv_weight, self.deformable_conv_bias)

    def infer_shape(self, x: Any, *args: Any) -> None:
        if len(x.shape) != 4:
            raise error(
                ValueError, f"{type(self).__name__} takes input with axes NCHW, got an array of shape {x.shape}"
            )
        groups = self._kwargs["num_group"]
        for p in (self.offset_weight, self.deformable_conv_weight):
            p.shape = (p.shape[0], x.shape[1] // groups, *p.shape[2:])

    def _bent(self, F: Any, values: Any) -> tuple[Any, ...]:
        """What the operator takes behind its data: the offsets."""
        return (values,)

    def hybrid_forward(
        self,
        F: Any,
        x: Any,
        offset_weight: Any,
        deformable_conv_weight: Any,
        offset_bias: Any = None,
        deformable_conv_bias: Any = None,
    ) -> Any:
        values = F.Convolution(
            x, offset_weight, *(() if offset_bias is None else (offset_bias,)), **self._kwargs_offset
        )
        bias = () if deformable_conv_bias is None else (deformable_conv_bias,)
        y = getattr(F.contrib, self._op)(
            x, *self._bent(F, values), deformable_conv_weight, *bias, name="fwd", **self._kwargs
        )
        return y if self.act is None else self.act(y)


@with_defaults(op_name="ModulatedDeformableConvolution")
class ModulatedDeformableConvolution(DeformableConvolution):
    """2-dimensional convolution over windows whose places are moved by offsets and weighed by masks.

    A plain convolution over the same input learns both.

    Parameters
    ----------
    channels, kernel_size, strides, padding, dilation, groups, num_deformable_group, layout, use_bias, in_channels,
    activation
        As for `DeformableConvolution`.
    weight_initializer, bias_initializer, offset_weight_initializer, offset_bias_initializer, offset_use_bias, op_name,
    adj
        As for `DeformableConvolution`.
    prefix, params
        See `Block`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.contrib.cnn.ModulatedDeformableConvolution``: masks lie between 0 and 2, and
    begin at 1. Source: Zhu et al., "Deformable ConvNets v2", 2018.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.contrib.cnn.ModulatedDeformableConvolution(4, 3, padding=1)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((1, 2, 5, 6))).shape
    (1, 4, 5, 6)
    """

    _values = 3
    _order = -1

    def _alias(self) -> str:
        return "modulated_deformable_conv"

    def _bent(self, F: Any, values: Any) -> tuple[Any, ...]:
        offset = F.slice_axis(values, axis=1, begin=0, end=self._offset_split)
        mask = F.slice_axis(values, axis=1, begin=self._offset_split, end=None)
        return offset, F.sigmoid(mask) * 2
