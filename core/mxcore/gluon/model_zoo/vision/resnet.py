"""ResNet, versions 1 and 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ....base import error
from ... import nn
from ...block import HybridBlock
from .parts import Network, in_sequence, pretrained_or_not, stage, variants

if TYPE_CHECKING:
    from ....context import Context

__all__ = ["BasicBlockV1", "BasicBlockV2", "BottleneckV1", "BottleneckV2", "ResNetV1", "ResNetV2", "get_resnet"]


def _conv3x3(channels: int, stride: int, in_channels: int) -> nn.Conv2D:
    return nn.Conv2D(channels, 3, stride, 1, use_bias=False, in_channels=in_channels)


def _shortcut(channels: int, stride: int, in_channels: int) -> nn.Conv2D:
    return nn.Conv2D(channels, 1, stride, use_bias=False, in_channels=in_channels)


class _BlockV1(HybridBlock):
    """Layers with a short cut around them and a ReLU at the end."""

    _body: Callable[[int, int, int], tuple[HybridBlock, ...]]

    def __init__(
        self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        # Named as MXNet does: by where the layers are made, in the network's scope.
        self.body = in_sequence(*self._body(channels, stride, in_channels))
        self.downsample = in_sequence(_shortcut(channels, stride, in_channels), nn.BatchNorm()) if downsample else None

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        residual = x if self.downsample is None else self.downsample(x)
        return F.Activation(self.body(x) + residual, act_type="relu")


class BasicBlockV1(_BlockV1):
    """Two 3x3 convolutions with a short cut (He et al., 2016, arXiv:1512.03385).

    Parameters
    ----------
    channels : int
        Number of output channels.
    stride : int
    downsample : bool, default False
        Whether the short cut has a convolution, where shapes differ.
    in_channels : int, default 0
    **kwargs
        prefix, params.
    """

    @staticmethod
    def _body(channels: int, stride: int, in_channels: int) -> tuple[HybridBlock, ...]:
        return (
            _conv3x3(channels, stride, in_channels),
            nn.BatchNorm(),
            nn.Activation("relu"),
            _conv3x3(channels, 1, channels),
            nn.BatchNorm(),
        )


class BottleneckV1(_BlockV1):
    """A 3x3 convolution between two of 1x1, with a short cut; parameters as for `BasicBlockV1`."""

    @staticmethod
    def _body(channels: int, stride: int, in_channels: int) -> tuple[HybridBlock, ...]:
        inner = channels // 4
        return (
            nn.Conv2D(inner, 1, stride),
            nn.BatchNorm(),
            nn.Activation("relu"),
            _conv3x3(inner, 1, inner),
            nn.BatchNorm(),
            nn.Activation("relu"),
            nn.Conv2D(channels, 1, 1),
            nn.BatchNorm(),
        )


class _BlockV2(HybridBlock):
    """Normalisation and ReLU before every convolution, and a short cut around all but the first of them."""

    _convolutions: Callable[[int, int, int], tuple[Callable[[], HybridBlock], ...]]

    def __init__(
        self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        makers = self._convolutions(channels, stride, in_channels)
        for i, make in enumerate(makers, 1):
            setattr(self, f"bn{i}", nn.BatchNorm())
            setattr(self, f"conv{i}", make())
        self._count = len(makers)
        self.downsample = _shortcut(channels, stride, in_channels) if downsample else None

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        residual = x
        for i in range(1, self._count + 1):
            x = F.Activation(getattr(self, f"bn{i}")(x), act_type="relu")
            if i == 1 and self.downsample is not None:
                residual = self.downsample(x)
            x = getattr(self, f"conv{i}")(x)
        return x + residual


class BasicBlockV2(_BlockV2):
    """Two 3x3 convolutions with a clean short cut (He et al., 2016, arXiv:1603.05027).

    Parameters
    ----------
    channels : int
        Number of output channels.
    stride : int
    downsample : bool, default False
        Whether the short cut has a convolution, where shapes differ.
    in_channels : int, default 0
    **kwargs
        prefix, params.
    """

    @staticmethod
    def _convolutions(channels: int, stride: int, in_channels: int) -> tuple[Callable[[], HybridBlock], ...]:
        return lambda: _conv3x3(channels, stride, in_channels), lambda: _conv3x3(channels, 1, channels)


class BottleneckV2(_BlockV2):
    """A 3x3 convolution between two of 1x1, with a clean short cut; parameters as for `BasicBlockV2`."""

    @staticmethod
    def _convolutions(channels: int, stride: int, in_channels: int) -> tuple[Callable[[], HybridBlock], ...]:
        inner = channels // 4
        return (
            lambda: nn.Conv2D(inner, 1, 1, use_bias=False),
            lambda: _conv3x3(inner, stride, inner),
            lambda: nn.Conv2D(channels, 1, 1, use_bias=False),
        )


class _ResNet(Network):
    _first: Callable[[int, bool], tuple[HybridBlock, ...]]
    _last: Callable[[], tuple[HybridBlock, ...]]

    def __init__(
        self,
        block: type[HybridBlock],
        layers: Sequence[int],
        channels: Sequence[int],
        classes: int = 1000,
        thumbnail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if len(layers) != len(channels) - 1:
            raise error(
                AssertionError,
                f"{type(self).__name__}: {len(layers)} stages "
                f"need {len(layers) + 1} numbers of channels, got {len(channels)}",
            )
        with self.name_scope():
            self.features = in_sequence(*self._first(channels[0], thumbnail))
            for i, count in enumerate(layers):
                sizes = (count, channels[i + 1], 1 if i == 0 else 2, channels[i])
                self.features.add(stage(f"stage{i + 1}_", partial(self._stage, block, *sizes)))
            self.features.add(*self._last())
            self.output = nn.Dense(classes, in_units=channels[-1])

    @staticmethod
    def _stage(
        block: Callable[..., HybridBlock], count: int, channels: int, stride: int, in_channels: int
    ) -> Iterator[HybridBlock]:
        yield block(channels, stride, channels != in_channels, in_channels=in_channels, prefix="")
        for _ in range(count - 1):
            yield block(channels, 1, False, in_channels=channels, prefix="")


class ResNetV1(_ResNet):
    """ResNet version 1 (He et al., 2016, arXiv:1512.03385).

    Parameters
    ----------
    block : type
        `BasicBlockV1` or `BottleneckV1`.
    layers : list of int
        Number of blocks a stage.
    channels : list of int
        Channels at the start and of every stage.
    classes : int, default 1000
    thumbnail : bool, default False
        For images of 32 x 32: begin with a 3x3 convolution and no pooling.
    **kwargs
        prefix, params.
    """

    @staticmethod
    def _first(channels: int, thumbnail: bool) -> tuple[HybridBlock, ...]:
        if thumbnail:
            return (_conv3x3(channels, 1, 0),)
        return (
            nn.Conv2D(channels, 7, 2, 3, use_bias=False),
            nn.BatchNorm(),
            nn.Activation("relu"),
            nn.MaxPool2D(3, 2, 1),
        )

    @staticmethod
    def _last() -> tuple[HybridBlock, ...]:
        return (nn.GlobalAvgPool2D(),)


class ResNetV2(_ResNet):
    """ResNet version 2 (He et al., 2016, arXiv:1603.05027).

    Parameters
    ----------
    block : type
        `BasicBlockV2` or `BottleneckV2`.
    layers, channels, classes, thumbnail, **kwargs
        As for `ResNetV1`.
    """

    @staticmethod
    def _first(channels: int, thumbnail: bool) -> tuple[HybridBlock, ...]:
        return (nn.BatchNorm(scale=False, center=False), *ResNetV1._first(channels, thumbnail))

    @staticmethod
    def _last() -> tuple[HybridBlock, ...]:
        return nn.BatchNorm(), nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Flatten()


_BASIC, _BOTTLENECK = [64, 64, 128, 256, 512], [64, 256, 512, 1024, 2048]

#: Number of layers -> kind of block, blocks a stage, channels.
_SPEC: dict[int, tuple[str, list[int], list[int]]] = {
    18: ("basic_block", [2, 2, 2, 2], _BASIC),
    34: ("basic_block", [3, 4, 6, 3], _BASIC),
    50: ("bottle_neck", [3, 4, 6, 3], _BOTTLENECK),
    101: ("bottle_neck", [3, 4, 23, 3], _BOTTLENECK),
    152: ("bottle_neck", [3, 8, 36, 3], _BOTTLENECK),
}
#: By version.
_NETWORKS: list[type[ResNetV1 | ResNetV2]] = [ResNetV1, ResNetV2]
_BLOCKS: list[dict[str, type[HybridBlock]]] = [
    {"basic_block": BasicBlockV1, "bottle_neck": BottleneckV1},
    {"basic_block": BasicBlockV2, "bottle_neck": BottleneckV2},
]


def get_resnet(
    version: int,
    num_layers: int,
    pretrained: bool = False,
    ctx: Context | None = None,
    root: str | None = None,
    **kwargs: Any,
) -> ResNetV1 | ResNetV2:
    """ResNet by its version and number of layers.

    Parameters
    ----------
    version : {1, 2}
    num_layers : {18, 34, 50, 101, 152}
    pretrained : bool, default False
        Load the published parameters (ImageNet).
    ctx : Context, default cpu()
        Where to put them.
    root : str, default '~/.mxnet/models'
        Folder where parameter files are kept.
    **kwargs
        classes, thumbnail and other arguments of the network.
    """
    if num_layers not in _SPEC:
        raise error(AssertionError, f"Invalid number of layers: {num_layers}. Options are {list(_SPEC)}")
    if version not in (1, 2):
        raise error(AssertionError, f"Invalid resnet version: {version}. Options are 1 and 2.")
    kind, layers, channels = _SPEC[num_layers]
    net = _NETWORKS[version - 1](_BLOCKS[version - 1][kind], layers, channels, **kwargs)
    return pretrained_or_not(net, f"resnet{num_layers}_v{version}", pretrained, ctx, root)


VARIANTS = variants(__name__, "ResNet", get_resnet, **{f"resnet{n}_v{v}": (v, n) for v in (1, 2) for n in _SPEC})
globals().update(VARIANTS)
__all__ += VARIANTS
