"""Inception v3."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import nn
from ...block import HybridBlock
from ...contrib.nn import HybridConcurrent
from .parts import Network, conv_norm, in_sequence, pretrained_or_not

if TYPE_CHECKING:
    from ....context import Context

__all__ = ["Inception3", "inception_v3"]


def _conv(
    channels: int, kernel: int | tuple[int, int] = 1, stride: int = 1, pad: int | tuple[int, int] = 0
) -> nn.HybridSequential:
    return in_sequence(*conv_norm(channels, kernel, stride, pad, epsilon=0.001))


def _beside(*branches: HybridBlock, prefix: str = "") -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix=prefix)
    out.add(*branches)
    return out


def _branch(*convolutions: Any, pool: str | None = None) -> nn.HybridSequential:
    """Pooling, if any, and convolutions given as (channels, kernel, stride, padding)."""
    pools: Any = {None: (), "avg": ((nn.AvgPool2D, 3, 1, 1),), "max": ((nn.MaxPool2D, 3, 2, 0),)}[pool]
    return in_sequence(*(kind(*args) for kind, *args in pools), *(_conv(*c) for c in convolutions))


def _split() -> HybridConcurrent:
    """A 3x3 convolution as one of 1x3 beside one of 3x1."""
    return _beside(_branch((384, (1, 3), 1, (0, 1))), _branch((384, (3, 1), 1, (1, 0))))


_WIDE, _HIGH = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))


def _a(pooled: int) -> Callable[[], tuple[HybridBlock, ...]]:
    return lambda: (
        _branch((64,)),
        _branch((48,), (64, 5, 1, 2)),
        _branch((64,), (96, 3, 1, 1), (96, 3, 1, 1)),
        _branch((pooled,), pool="avg"),
    )


def _b() -> tuple[HybridBlock, ...]:
    return (_branch((384, 3, 2)), _branch((64,), (96, 3, 1, 1), (96, 3, 2)), _branch(pool="max"))


def _c(n: int) -> Callable[[], tuple[HybridBlock, ...]]:
    return lambda: (
        _branch((192,)),
        _branch((n,), (n, *_WIDE), (192, *_HIGH)),
        _branch((n,), (n, *_HIGH), (n, *_WIDE), (n, *_HIGH), (192, *_WIDE)),
        _branch((192,), pool="avg"),
    )


def _d() -> tuple[HybridBlock, ...]:
    return (
        _branch((192,), (320, 3, 2)),
        _branch((192,), (192, *_WIDE), (192, *_HIGH), (192, 3, 2)),
        _branch(pool="max"),
    )


def _e() -> tuple[HybridBlock, ...]:
    return (
        _branch((320,)),
        in_sequence(_branch((384,)), _split()),
        in_sequence(_branch((448,), (384, 3, 1, 1)), _split()),
        _branch((192,), pool="avg"),
    )


_BLOCKS: list[tuple[str, Callable[[], tuple[HybridBlock, ...]]]] = [
    ("A1_", _a(32)),
    ("A2_", _a(64)),
    ("A3_", _a(64)),
    ("B_", _b),
    ("C1_", _c(128)),
    ("C2_", _c(160)),
    ("C3_", _c(160)),
    ("C4_", _c(192)),
    ("D_", _d),
    ("E1_", _e),
    ("E2_", _e),
]


class Inception3(Network):
    """Inception v3, for images of 299 x 299 (Szegedy et al., 2016, arXiv:1512.00567).

    Parameters
    ----------
    classes : int, default 1000
    **kwargs
        prefix, params.
    """

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = in_sequence(
                _conv(32, 3, 2),
                _conv(32, 3),
                _conv(64, 3, 1, 1),
                nn.MaxPool2D(3, 2),
                _conv(80, 1),
                _conv(192, 3),
                nn.MaxPool2D(3, 2),
            )
            for prefix, branches in _BLOCKS:
                block = _beside(prefix=prefix)
                with block.name_scope():
                    block.add(*branches())
                self.features.add(block)
            self.features.add(nn.AvgPool2D(8), nn.Dropout(0.5))
            self.output = nn.Dense(classes)


def inception_v3(
    pretrained: bool = False, ctx: Context | None = None, root: str | None = None, **kwargs: Any
) -> Inception3:
    """Inception v3.

    Parameters
    ----------
    pretrained : bool, default False
        Load the published parameters (ImageNet).
    ctx : Context, default cpu()
        Where to put them.
    root : str, default '~/.mxnet/models'
        Folder where parameter files are kept.
    **kwargs
        classes and other arguments of the network.
    """
    return pretrained_or_not(Inception3(**kwargs), "inceptionv3", pretrained, ctx, root)
