"""SqueezeNet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....base import error
from ... import nn
from ...contrib.nn import HybridConcurrent
from .parts import Network, in_sequence, pretrained_or_not, variants

if TYPE_CHECKING:
    from ....context import Context

__all__ = ["SqueezeNet", "get_squeezenet"]

#: Version -> first convolution (channels, kernel), then fire modules by their squeezed channels; 'P' is a
#: pooling.
_VERSIONS: dict[str, tuple[tuple[int, int], list[Any]]] = {
    "1.0": ((96, 7), ["P", 16, 16, 32, "P", 32, 48, 48, 64, "P", 64]),
    "1.1": ((64, 3), ["P", 16, 16, "P", 32, 32, "P", 48, 48, 64, 64]),
}


def _conv(channels: int, kernel: int, padding: int = 0) -> nn.HybridSequential:
    return in_sequence(nn.Conv2D(channels, kernel, padding=padding), nn.Activation("relu"))


def _fire(squeezed: int) -> nn.HybridSequential:
    """Squeeze the channels, then expand them fourfold by convolutions of 1x1 and of 3x3."""
    squeeze = _conv(squeezed, 1)
    expand = HybridConcurrent(axis=1, prefix="")
    expand.add(_conv(4 * squeezed, 1), _conv(4 * squeezed, 3, 1))
    return in_sequence(squeeze, expand)


class SqueezeNet(Network):
    """SqueezeNet (Iandola et al., 2016, arXiv:1602.07360).

    Parameters
    ----------
    version : {'1.0', '1.1'}
        1.1 needs less than half the work.
    classes : int, default 1000
    **kwargs
        prefix, params.
    """

    def __init__(self, version: str, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if version not in _VERSIONS:
            raise error(AssertionError, f"Unsupported SqueezeNet version {version}: 1.0 or 1.1 expected")
        (channels, kernel), modules = _VERSIONS[version]
        with self.name_scope():
            self.features = in_sequence(nn.Conv2D(channels, kernel, 2), nn.Activation("relu"))
            for m in modules:
                self.features.add(nn.MaxPool2D(3, 2, ceil_mode=True) if m == "P" else _fire(m))
            self.features.add(nn.Dropout(0.5))
            self.output = in_sequence(nn.Conv2D(classes, 1), nn.Activation("relu"), nn.AvgPool2D(13), nn.Flatten())


def get_squeezenet(
    version: str, pretrained: bool = False, ctx: Context | None = None, root: str | None = None, **kwargs: Any
) -> SqueezeNet:
    """SqueezeNet by its version.

    Parameters
    ----------
    version : {'1.0', '1.1'}
    pretrained : bool, default False
        Load the published parameters (ImageNet).
    ctx : Context, default cpu()
        Where to put them.
    root : str, default '~/.mxnet/models'
        Folder where parameter files are kept.
    **kwargs
        classes and other arguments of the network.
    """
    return pretrained_or_not(SqueezeNet(version, **kwargs), f"squeezenet{version}", pretrained, ctx, root)


VARIANTS = variants(
    __name__, "SqueezeNet", get_squeezenet, **{f"squeezenet{v.replace('.', '_')}": (v,) for v in _VERSIONS}
)
globals().update(VARIANTS)
__all__ += VARIANTS
