"""The sizes of a convolution, as its ways of computing it want them."""

from __future__ import annotations

import math
from typing import NamedTuple

from mxcore.layouts import axes
from mxcore.plugin import Params

from .common import Array, three

__all__ = ["Geometry", "geometry"]


class Geometry(NamedTuple):
    """Sizes of a convolution; the arguments that its kernels share are `windows`."""

    images: int
    channels: int
    filters: int
    groups: int
    image: tuple[int, ...]
    out: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilate: tuple[int, ...]

    @property
    def windows(self) -> tuple[int, ...]:
        return (
            *three(self.image), *three(self.out), *three(self.kernel), *three(self.stride),
            *three(self.pad, 0), *three(self.dilate),
        )  # fmt: skip

    @property
    def plane(self) -> int:
        """Windows of an image."""
        return math.prod(self.out)

    @property
    def depth(self) -> int:
        """Numbers that a window of one group holds."""
        return self.channels // self.groups * math.prod(self.kernel)

    @property
    def direct(self) -> bool:
        """Whether each channel has filters of its own."""
        return self.groups == self.channels > 1

    @property
    def whole(self) -> bool:
        """Whether the image is its own columns."""
        return {*self.kernel, *self.stride} == {1} and not any(self.pad)


def geometry(p: Params, x: Array, y: Array, filters: int) -> Geometry:
    """Of a convolution from `x` to `y`."""
    n = x.ndim - 2
    return Geometry(
        x.shape[0], x.shape[1], filters, p.num_group, x.shape[2:], y.shape[2:], tuple(p.kernel),
        axes(p.stride, n, 1), axes(p.pad, n, 0), axes(p.dilate, n, 1),
    )  # fmt: skip
