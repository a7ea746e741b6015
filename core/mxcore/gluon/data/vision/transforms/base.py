"""What the transforms share: they are operators, in eager calls as in graphs."""

from __future__ import annotations

from typing import Any

from ..... import ndarray as nd
from .....base import error
from ....block import Block, HybridBlock
from ....block.seen import as_seen_by

__all__ = ["ImageBlock", "ImageHybridBlock", "draw"]


def draw(low: float, high: float) -> float:
    """A random number that ``mxcore.random.seed`` decides."""
    if low == high:
        return low
    return float(nd.random.uniform(low, high, shape=(1,)).asscalar())


class _OfImages:
    """A transform of images, of batches of them too if `_batches`."""

    _batches = False

    def _check_image(self, image: nd.NDArray) -> None:
        n = len(image.shape)
        if n != 3 and not (self._batches and n == 4):
            axes = "(height, width, channels)" + (", or a batch of them" if self._batches else "")
            raise error(ValueError, f"{type(self).__name__} takes an image {axes}, got an array of shape {image.shape}")


class ImageBlock(_OfImages, Block):
    """A transform that looks at its image's size, and so takes arrays only."""


class ImageHybridBlock(_OfImages, HybridBlock):
    """A transform that is one operator or a few."""

    def forward(self, x: Any, *args: Any) -> Any:
        if args or not isinstance(x, nd.NDArray) or self._active:
            return super().forward(x, *args)
        self._check_image(x)
        return self.hybrid_forward(as_seen_by(type(self), nd), x)
