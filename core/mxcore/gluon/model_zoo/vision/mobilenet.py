"""MobileNet, versions 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ... import nn
from ...block import HybridBlock
from .parts import Network, conv_norm, in_sequence, pretrained_or_not, stage, variants

if TYPE_CHECKING:
    from ....context import Context

__all__ = ["MobileNet", "MobileNetV2", "get_mobilenet", "get_mobilenet_v2"]

#: Version 1: (output channels, stride) of every depthwise separable convolution.
_V1 = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]

#: Version 2: (expansion, output channels, number of blocks, stride of the first).
_V2 = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]

_MULTIPLIERS = (1.0, 0.75, 0.5, 0.25)


class RELU6(HybridBlock):
    """ReLU that ends at 6."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.clip(x, 0, 6, name="relu6")


class LinearBottleneck(HybridBlock):
    """The block of version 2: expand, convolve channel by channel, project; with a short cut where it fits.

    Parameters
    ----------
    in_channels, channels : int
        Channels of input and output.
    t : int
        Expansion.
    stride : int
    **kwargs
        prefix, params.
    """

    def __init__(self, in_channels: int, channels: int, t: int, stride: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_shortcut = stride == 1 and in_channels == channels
        inner = in_channels * t
        with self.name_scope():
            self.out = in_sequence(
                *conv_norm(inner, act=RELU6),
                *conv_norm(inner, 3, stride, 1, groups=inner, act=RELU6),
                *conv_norm(channels, act=None),
            )

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        out = self.out(x)
        return F.elemwise_add(out, x) if self.use_shortcut else out


class MobileNet(Network):
    """MobileNet (Howard et al., 2017, arXiv:1704.04861).

    Parameters
    ----------
    multiplier : float, default 1.0
        Factor on the numbers of channels.
    classes : int, default 1000
    **kwargs
        prefix, params.
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            channels = int(32 * multiplier)
            self.features = in_sequence(*conv_norm(channels, 3, 2, 1))
            for out, stride in _V1:
                self.features.add(*conv_norm(channels, 3, stride, 1, groups=channels))
                channels = int(out * multiplier)
                self.features.add(*conv_norm(channels))
            self.features.add(nn.GlobalAvgPool2D(), nn.Flatten())
            self.output = nn.Dense(classes)


class MobileNetV2(Network):
    """MobileNet version 2 (Sandler et al., 2018, arXiv:1801.04381).

    Parameters
    ----------
    multiplier : float, default 1.0
        Factor on the numbers of channels.
    classes : int, default 1000
    **kwargs
        prefix, params.
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = stage("features_", lambda: self._features(multiplier))
            self.output = stage(
                "output_", lambda: (nn.Conv2D(classes, 1, use_bias=False, prefix="pred_"), nn.Flatten())
            )

    @staticmethod
    def _features(multiplier: float) -> Iterator[HybridBlock]:
        channels = int(32 * multiplier)
        yield from conv_norm(channels, 3, 2, 1, act=RELU6)
        for t, out, count, stride in _V2:
            out = int(out * multiplier)
            for i in range(count):
                yield LinearBottleneck(channels, out, t, stride if i == 0 else 1)
                channels = out
        yield from conv_norm(int(1280 * max(multiplier, 1.0)), act=RELU6)
        yield nn.GlobalAvgPool2D()


def _label(multiplier: float) -> str:
    """``'1.0'``, ``'0.75'``: the multiplier in the names of files."""
    return f"{multiplier:.2f}".removesuffix("0")


def get_mobilenet(
    multiplier: float, pretrained: bool = False, ctx: Context | None = None, root: str | None = None, **kwargs: Any
) -> MobileNet:
    """MobileNet by its multiplier.

    Parameters
    ----------
    multiplier : float
        Published for 1.0, 0.75, 0.5 and 0.25.
    pretrained : bool, default False
        Load the published parameters (ImageNet).
    ctx : Context, default cpu()
        Where to put them.
    root : str, default '~/.mxnet/models'
        Folder where parameter files are kept.
    **kwargs
        classes and other arguments of the network.
    """
    net = MobileNet(multiplier, **kwargs)
    return pretrained_or_not(net, f"mobilenet{_label(multiplier)}", pretrained, ctx, root)


def get_mobilenet_v2(
    multiplier: float, pretrained: bool = False, ctx: Context | None = None, root: str | None = None, **kwargs: Any
) -> MobileNetV2:
    """MobileNet version 2 by its multiplier; parameters as for `get_mobilenet`."""
    net = MobileNetV2(multiplier, **kwargs)
    return pretrained_or_not(net, f"mobilenetv2_{_label(multiplier)}", pretrained, ctx, root)


def _names(stem: str) -> dict[str, tuple[float]]:
    return {f"{stem}{_label(m).replace('.', '_')}": (m,) for m in _MULTIPLIERS}


VARIANTS = {
    **variants(__name__, "MobileNet", get_mobilenet, **_names("mobilenet")),
    **variants(__name__, "MobileNet version 2", get_mobilenet_v2, **_names("mobilenet_v2_")),
}
globals().update(VARIANTS)
__all__ += VARIANTS
