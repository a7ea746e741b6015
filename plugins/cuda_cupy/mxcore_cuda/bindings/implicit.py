"""Convolutions as products of tiles that are gathered where they are multiplied (`kernels/implicit.cu`).

No columns are written: images and filters are brought into an order with the channels last, and that is all the memory
that is needed.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mxcore.plugin import Call

from ..blas import allows_tf32
from ..drivers import driver
from ..dtypes import HALVES, name_of
from .common import Array, kernel_for, wide
from .geometry import Geometry

__all__ = ["Last", "Tiles", "data_gradient", "forward", "takes", "weight_gradient"]

#: Bytes that one step of a tile takes of a row: channels are filled up to a multiple of them with zeros.
_ROW = 64
#: Channels and filters of a group from which on it is worth that filling up.
_LEAST = 16
#: Bytes of a number -> threads of a block.
_THREADS = {2: 256, 4: 128}
#: Bytes of a number -> rows of a tile of outputs (filters, or channels backward) -> windows that it has.
_WINDOWS = {2: {128: 128, 64: 256}, 4: {128: 128, 64: 128}}
#: Numbers of filters that a tile of their gradient has.
_NUMBERS = 128
#: Multiprocessors that tiles are spread over: those of an H100. Only speed depends on it.
_PROCESSORS = 132
#: Blocks that the gradient of filters is divided into, by windows, and the fewest windows of one. Both are the same
#: everywhere, for sums depend on them.
_BLOCKS, _SHARE = 264, 512
#: In float32: the share of a tile's rows that are filled, the most rows, and the tiles for each multiprocessor, with
#: which tiles are faster than columns, whose product cuBLAS does faster.
_FULL, _ROWS, _EACH = 0.7, 256, 2
#: The oldest GPUs that have the instructions.
_CAPABLE = 80
#: Convolutions of which is remembered what was worked out.
_MOST = 1024


class Tiles(NamedTuple):
    """Products of filters and what windows see, for all windows, or backward for all elements of the images.

    Attributes
    ----------
    rows : int
        Of a group's products.
    windows : int
        Of one phase: backward, elements that different filters reach are apart.
    parts : int
        Phases of all groups.
    """

    rows: int
    windows: int
    parts: int

    @classmethod
    def of(cls, g: Geometry, back: bool) -> Tiles:
        """Those of a convolution."""
        if not back:
            return cls(g.filters // g.groups, g.images * g.plane, g.groups)
        apart = math.prod(-(-n // s) for n, s in zip(g.image, g.stride))
        return cls(g.channels // g.groups, g.images * apart, g.groups * math.prod(g.stride))

    def number(self, tall: int, size: int) -> int:
        """Tiles of a part, of a height, for numbers of so many bytes."""
        return -(-self.rows // tall) * -(-self.windows // _WINDOWS[size][tall])

    def tall(self, size: int) -> int:
        """The height with which a multiprocessor is done soonest; low tiles take a little longer."""
        rounds = {t: -(-self.number(t, size) * self.parts // _PROCESSORS) for t in _WINDOWS[size]}
        return min(rounds, key=lambda t: rounds[t] * (t + 20) * _WINDOWS[size][t])

    def pay(self) -> bool:
        """Whether they do in float32."""
        return self.rows <= _ROWS and self.number(self.tall(4), 4) * self.parts >= _EACH * _PROCESSORS


def takes(g: Geometry, dtype: Any, index: int, piece: str) -> bool:
    """Whether a piece of a convolution (forward, data, weight) is computed here: the one rule for which that pays.

    Half precision always; float32, which tensor cores do not multiply exactly, where cuBLAS does not make up for the
    columns.
    """
    return _taken(g, dtype, index, piece) and not (dtype == np.float32 and allows_tf32())


@lru_cache(_MOST)
def _taken(g: Geometry, dtype: Any, index: int, piece: str) -> bool:
    return (
        name_of(dtype) in (*HALVES, "float32")
        and len(g.image) <= 2
        and not g.whole
        and min(g.channels, g.filters) // g.groups >= _LEAST
        and g.groups * math.prod(g.stride) < 1 << 16
        and _largest(g) < 1 << 31
        and driver().capability(index) >= _CAPABLE
        and (dtype != np.float32 or g.groups > 1 or _pays(g, piece))
    )


def _pays(g: Geometry, piece: str) -> bool:
    """Whether float32 does."""
    tiles = Tiles.of(g, piece == "data")
    full = tiles.rows / (-(-tiles.rows // 64) * 64)
    return full >= _FULL and (math.prod(g.kernel) > 1 if piece == "weight" else tiles.pay())


def _largest(g: Geometry) -> int:
    """Elements of the largest array with its channels filled up: they are counted in 32 bits."""
    rows = g.images * math.prod(g.image), g.images * g.plane, max(g.channels, g.filters) * math.prod(g.kernel)
    return (max(rows) + _ROW) * (max(g.channels, g.filters) + g.groups * _ROW)


def _last(k: Call, x: Array, images: int, channels: int) -> Array:
    """An array of (images, channels, places) as (images, places, channels filled up)."""
    places = x.size // (images * channels)
    step = _ROW // x.dtype.itemsize
    depth = -(-channels // step) * step
    out = k.device.empty((images, places, depth), x.dtype, k.ctx.device_id)
    blocks = images * -(-depth // 64) * -(-places // 64)
    kernel_for(k, "implicit", "to_last", x.dtype).blocks(blocks, x, out, channels, places, depth)
    return out


class Last:
    """The gradient of outputs with its channels last: both gradients of a call want it, and the first one makes it."""

    def __init__(self, k: Call, g: Geometry) -> None:
        self.k, self.g = k, g
        self.made: Array | None = None

    def __call__(self, dy: Array) -> Array:
        if self.made is None:
            self.made = _last(self.k, dy, self.g.images * self.g.groups, self.g.filters // self.g.groups)
        return self.made


class Launch(NamedTuple):
    """How a kernel is launched for a convolution: what the host works out once."""

    kernel: str
    grid: tuple[int, int, int]
    threads: int
    rows: int
    windows: tuple[int, ...]
    parts: int = 1
    share: int = 0

    def run(self, k: Call, dtype: Any, *values: Any) -> None:
        """Do it; the sizes of windows come last."""
        kernel_for(k, "implicit", self.kernel, dtype).launch(self.grid, (self.threads, 1, 1), (*values, *self.windows))


def _windows(g: Geometry) -> tuple[int, ...]:
    """Those of two axes, as the kernels take them."""
    return tuple(n for i, n in enumerate(g.windows) if i % 3)


@lru_cache(_MOST)
def _gathering(g: Geometry, size: int, back: bool) -> Launch:
    tiles = Tiles.of(g, back)
    tall = tiles.tall(size)
    grid = tiles.number(tall, size), tiles.parts, 1
    return Launch(f"gather_{tall}", grid, _THREADS[size], tiles.rows, _windows(g))


@lru_cache(_MOST)
def _weighing(g: Geometry, size: int, depth: int) -> Launch:
    m, total = g.filters // g.groups, g.images * g.plane
    tall = min((128, 64), key=lambda t: -(-m // t) * t)
    tiles = -(-m // tall) * -(-math.prod(g.kernel) * depth // _NUMBERS)
    share = -(-total // max(1, min(_BLOCKS // (tiles * g.groups), total // _SHARE)))
    parts = -(-total // share)
    return Launch(f"weigh_{tall}", (tiles, g.groups, parts), _THREADS[size], m, _windows(g), parts, share)


def _gather(k: Call, g: Geometry, filters: Array, seen: Array, bias: Array | None, out: Array, back: bool) -> None:
    launch = _gathering(g, out.dtype.itemsize, back)
    launch.run(k, out.dtype, filters, seen, bias, out, g.images, g.groups, launch.rows, seen.shape[2], back)


def forward(k: Call, g: Geometry, x: Array, weight: Array, bias: Array | None, y: Array) -> None:
    """Write the outputs."""
    channels = g.channels // g.groups
    filters, seen = _last(k, weight, g.filters, channels), _last(k, x, g.images * g.groups, channels)
    _gather(k, g, filters, seen, bias, y, False)


def data_gradient(k: Call, g: Geometry, dy: Array, weight: Array, dx: Array) -> None:
    """Write the gradient of images; `dy` has its channels last."""
    _gather(k, g, _last(k, weight, g.groups, g.filters // g.groups), dy, None, dx, True)


def weight_gradient(k: Call, g: Geometry, dy: Array, x: Array, d_weight: Array) -> None:
    """Write the gradient of filters: sums over shares of all windows, added up in their order; `dy` likewise."""
    channels, places = g.channels // g.groups, math.prod(g.kernel)
    seen = _last(k, x, g.images * g.groups, channels)
    depth = seen.shape[2]
    launch = _weighing(g, x.dtype.itemsize, depth)
    found = k.device.empty((launch.parts, g.filters, places, depth), wide(x.dtype), k.ctx.device_id)
    values = dy, seen, found, g.images, g.groups, launch.rows, dy.shape[2], depth, launch.share
    launch.run(k, x.dtype, *values)
    add = kernel_for(k, "implicit", "add_parts", x.dtype)
    add.each(d_weight.size, found, d_weight, launch.parts, g.filters, channels, places, depth)
