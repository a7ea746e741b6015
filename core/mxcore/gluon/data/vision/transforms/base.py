"""What the transforms share: NumPy for arrays, operators for symbols."""

from __future__ import annotations

from ..... import ndarray as nd
from .....base import error
from ....block import Block, HybridBlock

__all__ = ["ImageBlock", "ImageHybridBlock", "draw", "draw_normal"]


def draw(low, high):
    """A random number that ``mxcore.random.seed`` decides."""
    if low == high:
        return low
    return float(nd.random.uniform(low, high, shape=(1,)).asscalar())


def draw_normal(scale, n):
    """Normally distributed numbers that ``mxcore.random.seed`` decides."""
    return nd.random.normal(0, scale, shape=(n,)).asnumpy()


class _OnHost:
    """A transform in NumPy: loaded images are on the host, and a chain of transforms converts only once."""

    def apply_numpy(self, image):
        """Transform a NumPy array. Every transform of this kind defines its own."""
        raise error(
            NotImplementedError, f"{type(self).__name__} does not say what it does: define apply_numpy"
        )

    def _transform(self, x):
        out = self.apply_numpy(x.asnumpy())
        return nd.array(out, ctx=x.context, dtype=out.dtype)

    def _check_image(self, image, batch=False):
        if image.ndim != 3 and not (batch and image.ndim == 4):
            axes = "(height, width, channels)" + (", or a batch of them" if batch else "")
            raise error(
                ValueError,
                f"{type(self).__name__} takes an image {axes}, got an array of shape {image.shape}",
            )


class ImageBlock(_OnHost, Block):
    """A transform of images on the host."""

    def forward(self, x):
        return self._transform(x)


class ImageHybridBlock(_OnHost, HybridBlock):
    """A transform of images on the host that becomes an operator in a graph."""

    def forward(self, x, *args):
        if isinstance(x, nd.NDArray):
            return self._transform(x)
        return super().forward(x, *args)
