"""Convolution and its transpose, of one to three dimensions.

By cuDNN where it is there and supports it, else by tiles that are gathered where they are multiplied, or by columns
and products of matrices; filters of single channels directly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mxcore.layouts import channels_first
from mxcore.plugin import Call, Params, Spec

from .. import dnn
from ..blas import Matrix, multiply
from . import implicit
from .common import Array, Outs, binds, countable, kernel_for
from .geometry import Geometry, geometry

#: Bytes of columns at a time: of as many images as fit, one at least.
_COLUMNS = 1 << 28
#: Windows of an image below which those of all images lie beside each other: matrices of few columns are slow.
_FEW = 512
#: Products that one number of a share of the weights' gradient is the sum of, where images lie beside each other.
_SUMS = 2048


class _Columns:
    """What windows see, of some images at a time and a group.

    In memory of its own, image by image or, where they have few windows, all beside each other; or the images
    themselves.
    """

    def __init__(self, k: Call, g: Geometry, dtype: Any, most: int = 1 << 30) -> None:
        self.k, self.g, self.dtype = k, g, dtype
        size = max(1, g.depth * g.plane * np.dtype(dtype).itemsize)  # of an image's columns
        self.together = min(most, max(1, min(g.images, _COLUMNS // size)))
        self.beside = self.together > 1 and g.plane < _FEW
        shape = (self.together, g.depth, g.plane)
        own = self.beside or not g.whole
        self.memory = k.device.empty(shape, dtype, k.ctx.device_id) if own else None

    def parts(self) -> list[tuple[int, int, int]]:
        """(first image, number of images, group) of each piece of work."""
        g = self.g
        return [
            (first, min(self.together, g.images - first), group)
            for first in range(0, g.images, self.together)
            for group in range(g.groups)
        ]

    def stack(self, n: int) -> tuple[int, int]:
        """Of some images: how many matrices their columns are, and how many columns each has."""
        return (1, n * self.g.plane) if self.beside else (n, self.g.plane)

    def _image(self, first: int, group: int) -> tuple[int, int, int]:
        g = self.g
        plane, channels = math.prod(g.image), g.channels // g.groups
        return first * g.channels * plane + group * channels * plane, channels, g.channels * plane

    def _steps(self, n: int) -> tuple[int, int]:
        """Elements from one row to the next, and from one image to the next."""
        g = self.g
        return (n * g.plane, g.plane) if self.beside else (g.plane, g.depth * g.plane)

    def of(self, x: Array, first: int, n: int, group: int) -> Matrix:
        """The columns of some images: a row for each number that windows see."""
        g, (offset, channels, step) = self.g, self._image(first, group)
        if self.memory is not None:
            run = kernel_for(self.k, "convolution", "to_columns", self.dtype)
            planes = n * channels, g.plane
            run.planes(*planes, run.at(x, offset), self.memory, planes[0], channels, step, *self._steps(n), *g.windows)
        return self.place(x, first, n, group)

    def place(self, x: Array, first: int, n: int, group: int) -> Matrix:
        """Where the columns of some images are, or are computed."""
        if self.memory is None:
            offset, _, step = self._image(first, group)
            return Matrix(x, self.g.plane, step=step, offset=offset)
        row, image = self._steps(n)
        return Matrix(self.memory, row, step=image)

    def add_up(self, x: Array, first: int, n: int, group: int) -> None:
        """Write the images whose windows the columns hold, unless these are the images."""
        if self.memory is None:
            return
        g, (offset, channels, step) = self.g, self._image(first, group)
        run = kernel_for(self.k, "convolution", "from_columns", self.dtype)
        planes = n * channels, math.prod(g.image)
        run.planes(*planes, self.memory, run.at(x, offset), planes[0], channels, step, *self._steps(n), *g.windows)

    def _filters(self, first: int, group: int) -> tuple[int, int]:
        """The filters of a group, and where they begin in the output of an image."""
        g = self.g
        each = g.filters // g.groups
        return each, (first * g.filters + group * each) * g.plane

    def filters(self, y: Array, first: int, n: int, group: int, read: bool) -> Matrix:
        """What some images have of a group's filters, in the same order: read from `y`, or a place to be written."""
        g, (each, offset) = self.g, self._filters(first, group)
        if not self.beside:
            return Matrix(y, g.plane, step=g.filters * g.plane, offset=offset)
        near = self.k.device.empty((each, n * g.plane), self.dtype, self.k.ctx.device_id)
        if read:
            run = kernel_for(self.k, "convolution", "by_channels", self.dtype)
            run.planes(n * each, g.plane, run.at(y, offset), near, n * each, each, g.filters * g.plane, g.plane)
        return Matrix(near, n * g.plane)

    def write(self, near: Matrix, bias: Array | None, y: Array, first: int, n: int, group: int) -> None:
        """Bring what was computed beside each other, with its bias, to where it belongs."""
        g, (each, offset) = self.g, self._filters(first, group)
        run = kernel_for(self.k, "convolution", "by_images", self.dtype)
        of = None if bias is None else run.at(bias, group * each)
        run.planes(n * each, g.plane, near.array, of, run.at(y, offset), n * each, each, g.filters * g.plane, g.plane)


def _by_cudnn(
    k: Call, p: Params, kind: dnn.Kind, g: Geometry, a: Array, b: Array, out: Array, ours: Callable[[], None]
) -> bool:
    """Have it computed by cuDNN; False if it is not, or if `ours` is faster."""
    if p.cudnn_off or g.direct or not (a.size and b.size):
        return False
    shapes = (g.images, g.channels, *g.image), (g.filters, g.channels // g.groups, *g.kernel), (
        g.images, g.filters, *g.out,
    )  # fmt: skip
    convolution = dnn.Convolution(*shapes, g.pad, g.stride, g.dilate, g.groups)
    return dnn.convolve(
        k.device,
        k.ctx.device_id,
        kind,
        convolution,
        out.dtype,
        a,
        b,
        out,
        ours,
        tune=p.cudnn_tune,
        workspace=p.workspace,
    )


def _forward(k: Call, p: Params, g: Geometry, x: Array, weight: Array, bias: Array | None, y: Array) -> None:
    if not y.size:
        return
    if not _by_cudnn(k, p, dnn.FORWARD, g, x, weight, y, partial(_own_forward, k, g, x, weight, None, y)):
        _own_forward(k, g, x, weight, bias, y)
    elif bias is not None:
        _bias(k, "add_channels", bias, y)


def _own_forward(k: Call, g: Geometry, x: Array, weight: Array, bias: Array | None, y: Array) -> None:
    index, filters = k.ctx.device_id, g.filters // g.groups
    if g.direct:
        planes = g.images * g.filters
        run = kernel_for(k, "convolution", "depthwise", y.dtype)
        run.planes(planes, g.plane, x, weight, bias, y, planes, g.filters, filters, *g.windows)
        return
    if implicit.takes(g, y.dtype, index, "forward"):
        implicit.forward(k, g, x, weight, bias, y)
        return
    columns = _Columns(k, g, y.dtype)
    if bias is not None and not columns.beside:
        _bias(k, "fill_channels", bias, y)
    beta = 0.0 if bias is None or columns.beside else 1.0
    for first, n, group in columns.parts():
        w = Matrix(weight, g.depth, offset=group * filters * g.depth)
        seen, out = columns.of(x, first, n, group), columns.filters(y, first, n, group, False)
        batch, wide = columns.stack(n)
        multiply(y.dtype, index, filters, wide, g.depth, w, seen, out, batch=batch, beta=beta)
        if columns.beside:
            columns.write(out, bias, y, first, n, group)


def _data_gradient(
    k: Call, p: Params, g: Geometry, dy: Array, weight: Array, dx: Array, last: implicit.Last | None = None
) -> None:
    """Also the transposed convolution."""
    if not dx.size:
        return
    if not dy.size:
        dx[...] = 0
        return
    ours = partial(_own_data_gradient, k, g, dy, weight, dx)
    if not _by_cudnn(k, p, dnn.DATA, g, weight, dy, dx, ours):
        ours(last)


def _own_data_gradient(
    k: Call, g: Geometry, dy: Array, weight: Array, dx: Array, last: implicit.Last | None = None
) -> None:
    index, filters = k.ctx.device_id, g.filters // g.groups
    if g.direct:
        run = kernel_for(k, "convolution", "depthwise_data", dx.dtype)
        planes = g.images * g.channels
        run.planes(planes, math.prod(g.image), dy, weight, dx, planes, g.filters, filters, *g.windows)
        return
    if implicit.takes(g, dx.dtype, index, "data"):
        implicit.data_gradient(k, g, (last or implicit.Last(k, g))(dy), weight, dx)
        return
    columns = _Columns(k, g, dx.dtype)
    for first, n, group in columns.parts():
        w = Matrix(weight, g.depth, True, offset=group * filters * g.depth)
        place, out = columns.place(dx, first, n, group), columns.filters(dy, first, n, group, True)
        batch, wide = columns.stack(n)
        multiply(dx.dtype, index, g.depth, wide, filters, w, out, place, batch=batch)
        columns.add_up(dx, first, n, group)


def _weight_gradient(
    k: Call, p: Params, g: Geometry, dy: Array, x: Array, d_weight: Array, last: implicit.Last | None = None
) -> None:
    if not d_weight.size:
        return
    if not dy.size:
        d_weight[...] = 0
        return
    ours = partial(_own_weight_gradient, k, g, dy, x, d_weight)
    if not _by_cudnn(k, p, dnn.FILTER, g, x, dy, d_weight, ours):
        ours(last)


def _own_weight_gradient(
    k: Call, g: Geometry, dy: Array, x: Array, d_weight: Array, last: implicit.Last | None = None
) -> None:
    index, filters = k.ctx.device_id, g.filters // g.groups
    if g.direct:
        run = kernel_for(k, "convolution", "depthwise_weight", x.dtype)
        run.blocks(d_weight.size, dy, x, d_weight, g.images, g.filters, filters, *g.windows)
        return
    if implicit.takes(g, x.dtype, index, "weight"):
        implicit.weight_gradient(k, g, (last or implicit.Last(k, g))(dy), x, d_weight)
        return
    # Each image's share by itself, or that of a few beside each other, then all of them summed up in one order.
    share, size = filters * g.depth, x.dtype.itemsize
    columns = _Columns(k, g, x.dtype, max(1, _COLUMNS // (g.groups * share * size)))
    shares = k.device.empty((columns.together, g.groups * share), x.dtype, index)
    total = kernel_for(k, "rows", "sum_rows", x.dtype)
    for first, n, group in columns.parts():
        seen, out = columns.of(x, first, n, group), columns.filters(dy, first, n, group, True)
        few = 1
        if columns.beside:
            few = max(m for m in range(1, n + 1) if n % m == 0 and (m == 1 or m * g.plane <= _SUMS))
            seen, out = seen._replace(step=few * g.plane), out._replace(step=few * g.plane)
        place = Matrix(shares, g.depth, step=g.groups * share, offset=group * share)
        seen = seen._replace(transposed=True)
        multiply(x.dtype, index, filters, g.depth, few * g.plane, out, seen, place, batch=n // few)
        if group == g.groups - 1:
            total.columns(g.groups * share, shares, d_weight, n // few, g.groups * share, first > 0)


def _bias(k: Call, name: str, bias: Array, y: Array) -> None:
    """Fill all channels with their biases, or add these."""
    planes, size = y.shape[0] * y.shape[1], math.prod(y.shape[2:])
    kernel_for(k, "convolution", name, y.dtype).planes(planes, size, bias, y, planes, y.shape[1], size)


def _bias_gradient(k: Call, dy: Array, d_bias: Array) -> None:
    images, channels, plane = dy.shape[0], dy.shape[1], math.prod(dy.shape[2:])
    run = kernel_for(k, "convolution", "sum_channels", dy.dtype)
    run.blocks(channels, dy, d_bias, images, channels, plane)


def _fits(p: Params, data: Spec, *rest: Spec) -> bool:
    return channels_first(p) and 3 <= data.ndim <= 5 and countable(data)


@binds("Convolution_v1", when=_fits)
@binds("Convolution", when=_fits)
def _convolution(k: Call, p: Params, outs: Outs, data: Array, weight: Array, bias: Array | None = None) -> None:
    _forward(k, p, geometry(p, data, outs[0], weight.shape[0]), data, weight, bias, outs[0])


@binds("_backward_Convolution", when=_fits)
def _backward_convolution(k: Call, p: Params, outs: Outs, dy: Array, data: Array, weight: Array) -> None:
    g = geometry(p, data, dy, weight.shape[0])
    last = implicit.Last(k, g)
    if outs[0] is not None:
        _data_gradient(k, p, g, dy, weight, outs[0], last)
    if outs[1] is not None:
        _weight_gradient(k, p, g, dy, data, outs[1], last)
    if not p.no_bias and outs[2] is not None:
        _bias_gradient(k, dy, outs[2])


# The target shape of a transposed convolution may be given; only one that follows from pad and adj maps here.
def _transposed(p: Params, data: Spec, *rest: Spec) -> bool:
    return _fits(p, data) and not p.target_shape


@binds("Deconvolution", when=_transposed)
def _deconvolution(k: Call, p: Params, outs: Outs, data: Array, weight: Array, bias: Array | None = None) -> None:
    out = outs[0]
    _data_gradient(k, p, geometry(p, out, data, weight.shape[0]), data, weight, out)
    if bias is not None:
        _bias(k, "add_channels", bias, out)


@binds("_backward_Deconvolution", when=_transposed)
def _backward_deconvolution(k: Call, p: Params, outs: Outs, dy: Array, data: Array, weight: Array) -> None:
    g = geometry(p, dy, data, weight.shape[0])
    if outs[0] is not None:
        _forward(k, p, g, dy, weight, None, outs[0])
    if outs[1] is not None:
        _weight_gradient(k, p, g, data, dy, outs[1])
    if not p.no_bias and outs[2] is not None:
        _bias_gradient(k, dy, outs[2])
