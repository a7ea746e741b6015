"""Convolutions as products of tiles that are gathered where they are multiplied (`kernels/implicit.cu`).

No columns are written: images and filters are brought into an order with the channels last, and that is all the memory
that is needed.
"""

from __future__ import annotations

import math
from typing import Any

from mxcore.plugin import Call

from ..drivers import driver
from ..launching import Kernel
from .common import Array, kernel_for, wide
from .geometry import Geometry

__all__ = ["Seen", "data_gradient", "forward", "takes", "weight_gradient"]

#: Bytes that one step of a tile takes of a row: channels are filled up to a multiple of them with zeros.
_ROW = 64
#: Channels and filters of a group from which on it is worth that filling up.
_LEAST = 16
#: Rows of a tile of outputs -> windows that it has; and how many numbers of filters one of their gradient has.
_WINDOWS, _NUMBERS = {64: 256, 128: 128}, 128
#: Blocks that the gradient of filters is divided into, by windows: a GPU runs so many at once. And the fewest windows of
#: one. Both are the same everywhere, for sums depend on them.
_BLOCKS, _SHARE = 264, 512
#: The oldest GPUs that have the instructions.
_CAPABLE = 80


def takes(g: Geometry, dtype: Any, index: int) -> bool:
    """Whether a convolution is computed here: the one rule for which that pays."""
    return (
        str(dtype) in ("float16", "float32")
        and len(g.image) <= 2
        and not g.whole
        and min(g.channels, g.filters) // g.groups >= _LEAST
        and g.groups * math.prod(g.stride) < 1 << 16
        and _most(g) < 1 << 31
        and driver().capability(index) >= _CAPABLE
    )


def _most(g: Geometry) -> int:
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


class Seen:
    """The gradient of outputs with its channels last: both gradients of a call want it, and the first one makes it."""

    def __init__(self, k: Call, g: Geometry) -> None:
        self.k, self.g = k, g
        self.made: Array | None = None

    def __call__(self, dy: Array) -> Array:
        if self.made is None:
            self.made = _last(self.k, dy, self.g.images * self.g.groups, self.g.filters // self.g.groups)
        return self.made


def _tall(m: int) -> int:
    """How many rows tiles have: few where many would be empty."""
    return min((128, 64), key=lambda t: -(-m // t) * t)


def _windows(g: Geometry) -> tuple[int, ...]:
    """Those of two axes, as the kernels take them."""
    return tuple(n for i, n in enumerate(g.windows) if i % 3)


def _gather(k: Call, g: Geometry, filters: Array, seen: Array, bias: Array | None, out: Array, back: bool) -> None:
    """Launch over the tiles of all outputs; those a stride apart, which the same filters reach, by themselves."""
    m = (g.channels if back else g.filters) // g.groups
    phases, size = (g.stride, g.image) if back else ((1,), g.out)
    places = g.images * math.prod(-(-n // s) for n, s in zip(size, g.stride if back else (1,) * len(size)))
    run, tall = _of(k, "gather", m, out.dtype)
    grid = -(-m // tall) * -(-places // _WINDOWS[tall]), g.groups * math.prod(phases), 1
    values = filters, seen, bias, out, g.images, g.groups, m, seen.shape[2], back, *_windows(g)
    run.launch(grid, (run.threads, 1, 1), values)


def _of(k: Call, name: str, m: int, dtype: Any) -> tuple[Kernel, int]:
    tall = _tall(m)
    return kernel_for(k, "implicit", f"{name}_{tall}", dtype), tall


def forward(k: Call, g: Geometry, x: Array, weight: Array, bias: Array | None, y: Array) -> None:
    """Write the outputs."""
    channels = g.channels // g.groups
    filters, seen = _last(k, weight, g.filters, channels), _last(k, x, g.images * g.groups, channels)
    _gather(k, g, filters, seen, bias, y, False)


def data_gradient(k: Call, g: Geometry, dy: Array, weight: Array, dx: Array) -> None:
    """Write the gradient of images; `dy` has its channels last."""
    _gather(k, g, _last(k, weight, g.groups, g.filters // g.groups), dy, None, dx, True)


def weight_gradient(k: Call, g: Geometry, dy: Array, x: Array, d_weight: Array) -> None:
    """Write the gradient of filters, whose sums over shares of all windows are added up in their order; `dy` likewise."""
    m, channels, places = g.filters // g.groups, g.channels // g.groups, math.prod(g.kernel)
    seen = _last(k, x, g.images * g.groups, channels)
    depth_m, depth, total = dy.shape[2], seen.shape[2], g.images * g.plane
    run, tall = _of(k, "weigh", m, x.dtype)
    tiles = -(-m // tall) * -(-places * depth // _NUMBERS)
    parts = max(1, min(_BLOCKS // (tiles * g.groups), total // _SHARE))
    share = -(-total // parts)
    parts = -(-total // share)
    found = k.device.empty((parts, g.filters, places, depth), wide(x.dtype), k.ctx.device_id)
    values = dy, seen, found, g.images, g.groups, m, depth_m, depth, share, *_windows(g)
    run.launch((tiles, g.groups, parts), (run.threads, 1, 1), values)
    add = kernel_for(k, "implicit", "add_parts", x.dtype)
    add.each(d_weight.size, found, d_weight, parts, g.filters, channels, places, depth)
