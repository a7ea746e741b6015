"""DenseNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import nn
from ...block import HybridBlock
from ...contrib.nn import HybridConcurrent, Identity
from .parts import Network, in_sequence, pretrained_or_not, stage, variants

if TYPE_CHECKING:
    from ....context import Context

__all__ = ["DenseNet", "get_densenet"]

#: Number of layers -> channels at the start, channels a layer adds, layers a block.
_SPEC = {
    121: (64, 32, [6, 12, 24, 16]),
    161: (96, 48, [6, 12, 36, 24]),
    169: (64, 32, [6, 12, 32, 32]),
    201: (64, 32, [6, 12, 48, 32]),
}


def _norm_conv(channels: int, kernel: int, padding: int = 0) -> tuple[HybridBlock, ...]:
    return nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(channels, kernel, padding=padding, use_bias=False)


def _dense_layer(growth_rate: int, bn_size: int, dropout: float) -> HybridConcurrent:
    """A layer whose output is put beside its input."""
    new = in_sequence(*_norm_conv(bn_size * growth_rate, 1), *_norm_conv(growth_rate, 3, 1))
    if dropout:
        new.add(nn.Dropout(dropout))
    both = HybridConcurrent(axis=1, prefix="")
    both.add(Identity(), new)
    return both


def _dense_block(
    num_layers: int, bn_size: int, growth_rate: int, dropout: float, stage_index: int
) -> nn.HybridSequential:
    """A stage of layers, each beside its input."""
    return stage(
        f"stage{stage_index}_", lambda: [_dense_layer(growth_rate, bn_size, dropout) for _ in range(num_layers)]
    )


def _transition(num_output_features: int) -> nn.HybridSequential:
    """Between stages: other channels, half the size."""
    return in_sequence(*_norm_conv(num_output_features, 1), nn.AvgPool2D(2, 2))


class DenseNet(Network):
    """DenseNet (Huang et al., 2017, arXiv:1608.06993).

    Parameters
    ----------
    num_init_features : int
        Channels of the first convolution.
    growth_rate : int
        Channels that every layer adds.
    block_config : list of int
        Number of layers a block.
    bn_size : int, default 4
        Channels inside a layer, as a multiple of `growth_rate`.
    dropout : float, default 0
    classes : int, default 1000
    **kwargs
        prefix, params.
    """

    def __init__(
        self,
        num_init_features: int,
        growth_rate: int,
        block_config: Sequence[int],
        bn_size: int = 4,
        dropout: float = 0,
        classes: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = in_sequence(
                nn.Conv2D(num_init_features, 7, 2, 3, use_bias=False),
                nn.BatchNorm(),
                nn.Activation("relu"),
                nn.MaxPool2D(3, 2, 1),
            )
            channels = num_init_features
            for i, count in enumerate(block_config, 1):
                self.features.add(_dense_block(count, bn_size, growth_rate, dropout, i))
                channels += count * growth_rate
                if i < len(block_config):
                    channels //= 2
                    self.features.add(_transition(channels))
            self.features.add(nn.BatchNorm(), nn.Activation("relu"), nn.AvgPool2D(7), nn.Flatten())
            self.output = nn.Dense(classes)


def get_densenet(
    num_layers: int, pretrained: bool = False, ctx: Context | None = None, root: str | None = None, **kwargs: Any
) -> DenseNet:
    """DenseNet by its number of layers.

    Parameters
    ----------
    num_layers : {121, 161, 169, 201}
    pretrained : bool, default False
        Load the published parameters (ImageNet).
    ctx : Context, default cpu()
        Where to put them.
    root : str, default '~/.mxnet/models'
        Folder where parameter files are kept.
    **kwargs
        classes and other arguments of the network.
    """
    return pretrained_or_not(DenseNet(*_SPEC[num_layers], **kwargs), f"densenet{num_layers}", pretrained, ctx, root)


VARIANTS = variants(__name__, "DenseNet", get_densenet, **{f"densenet{n}": (n,) for n in _SPEC})
globals().update(VARIANTS)
__all__ += VARIANTS
