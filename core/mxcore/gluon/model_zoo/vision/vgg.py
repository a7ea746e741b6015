"""VGG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .... import initializer
from ... import nn
from ...block import HybridBlock
from .parts import Network, in_sequence, pretrained_or_not, variants

if TYPE_CHECKING:
    from ....context import Context

__all__ = ["VGG", "get_vgg"]

#: Number of layers -> convolutions a stage.
_CHANNELS = [64, 128, 256, 512, 512]
_SPEC = {
    11: ([1, 1, 2, 2, 2], _CHANNELS),
    13: ([2, 2, 2, 2, 2], _CHANNELS),
    16: ([2, 2, 3, 3, 3], _CHANNELS),
    19: ([2, 2, 4, 4, 4], _CHANNELS),
}


class VGG(Network):
    """VGG (Simonyan and Zisserman, 2015, arXiv:1409.1556).

    Parameters
    ----------
    layers : list of int
        Number of convolutions a stage.
    filters : list of int
        Number of channels a stage.
    classes : int, default 1000
    batch_norm : bool, default False
    **kwargs
        prefix, params.
    """

    def __init__(
        self,
        layers: Sequence[int],
        filters: Sequence[int],
        classes: int = 1000,
        batch_norm: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = in_sequence(*self._convolutions(layers, filters, batch_norm))
            for _ in range(2):
                self.features.add(nn.Dense(4096, activation="relu", weight_initializer="normal"), nn.Dropout(0.5))
            self.output = nn.Dense(classes, weight_initializer="normal")

    @staticmethod
    def _convolutions(layers: Sequence[int], filters: Sequence[int], batch_norm: bool) -> Iterator[HybridBlock]:
        init = initializer.Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
        for count, channels in zip(layers, filters):
            for _ in range(count):
                yield nn.Conv2D(channels, 3, padding=1, weight_initializer=init)
                if batch_norm:
                    yield nn.BatchNorm()
                yield nn.Activation("relu")
            yield nn.MaxPool2D(strides=2)


def get_vgg(
    num_layers: int, pretrained: bool = False, ctx: Context | None = None, root: str | None = None, **kwargs: Any
) -> VGG:
    """VGG by its number of layers.

    Parameters
    ----------
    num_layers : {11, 13, 16, 19}
    pretrained : bool, default False
        Load the published parameters (ImageNet).
    ctx : Context, default cpu()
        Where to put them.
    root : str, default '~/.mxnet/models'
        Folder where parameter files are kept.
    **kwargs
        batch_norm, classes and other arguments of the network.
    """
    net = VGG(*_SPEC[num_layers], **kwargs)
    name = f"vgg{num_layers}{'_bn' if kwargs.get('batch_norm') else ''}"
    return pretrained_or_not(net, name, pretrained, ctx, root)


def _vgg(num_layers: int, batch_norm: bool, **kwargs: Any) -> VGG:
    if batch_norm:
        kwargs["batch_norm"] = True
    return get_vgg(num_layers, **kwargs)


VARIANTS = variants(
    __name__, "VGG", _vgg, **{f"vgg{n}": (n, False) for n in _SPEC}, **{f"vgg{n}_bn": (n, True) for n in _SPEC}
)
globals().update(VARIANTS)
__all__ += VARIANTS
