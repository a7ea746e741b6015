"""Layers that normalize."""

from __future__ import annotations

from typing import Any

from mxcore.layouts import spread
from mxcore.plugin import Call, Params, Spec

from .common import Array, Outs, binds, kernel_for, wide

#: Elements of a channel that a block takes at least; blocks that all channels together are worth.
_SHARE, _BLOCKS = 4096, 1024
#: Threads of a block; elements that one reads at once of a channel; planes that it has at least.
_THREADS, _CHUNK, _EACH = 256, 16, 4


def _divisor(n: int) -> tuple[int, int]:
    """What a kernel divides by `n` with: a factor and a shift, for numbers below 2^31."""
    shift = (n - 1).bit_length()
    return (((1 << shift) - n) << 32) // n + 1, shift


class _Channels:
    """Sizes of (outer, channels, inner), and how each channel's elements are shared by blocks.

    Attributes
    ----------
    n : int
        Elements of a channel.
    share, parts : int
        How many of these a block has, and how many blocks share a channel.
    """

    def __init__(self, k: Call, shape: tuple[int, ...], axis: int, dtype: Any) -> None:
        self.outer, self.channels, self.inner = spread(shape, axis)
        self.k, self.dtype, self.n, plane = k, dtype, self.outer * self.inner, self.channels * self.inner
        #: Elements that are read at once.
        self.together = 16 // dtype.itemsize
        if plane % self.together:
            self.together = 1
        self.vectors = plane // self.together
        self.by_columns = self.together > 1 and self.inner <= _THREADS
        if self.by_columns:
            # Whole channels, as many as there are threads for.
            self.beside = min(self.inner * (_THREADS // self.inner), -(-self.vectors // self.inner) * self.inner)
            columns, rows = -(-self.vectors // self.beside), _THREADS // self.beside
            most = max(1, min(self.outer // (rows * _EACH), _BLOCKS // columns))
            self.planes = -(-self.outer // most)
            self.share = self.planes * self.inner
        else:
            most = max(1, min(self.n // _SHARE, _BLOCKS // max(self.channels, 1)))
            self.share = -(-self.n // most // _CHUNK) * _CHUNK  # which no part of several elements crosses
        self.parts = -(-self.n // self.share)

    def kernel(self, name: str) -> Any:
        return kernel_for(self.k, "batch_norm", name, self.dtype)

    def room(self, like: Array, n: int = 1) -> Array:
        """A place for a statistic of each channel, `n` times."""
        return self.k.device.empty((n, self.channels), like.dtype, self.k.ctx.device_id)

    def each(self, name: str, *given: Any) -> None:
        """Launch a kernel over all elements, whose threads have the same places of some planes."""
        columns = -(-self.vectors // _THREADS)
        rows = max(1, min(-(-self.outer // _EACH), 2 * _BLOCKS // columns))
        values = *given[:-1], self.outer, self.channels, self.inner, given[-1]
        self.kernel(name).launch((columns, rows, 1), (_THREADS, 1, 1), values)

    def shared(self, what: str, *values: Any) -> None:
        """Launch the kernel of a statistic, of which `parts` blocks share a channel."""
        if self.by_columns:
            sizes = self.outer, self.channels, self.inner, self.beside, self.planes
            grid = -(-self.vectors // self.beside), self.parts, 1
            self.kernel(f"column_{what}").launch(grid, (_THREADS, 1, 1), (*values, *sizes))
            return
        by_parts = self.together > 1 and self.inner % self.together == 0
        given = *values, self.n, self.share, self.channels, self.inner, *_divisor(self.inner), by_parts
        threads = _THREADS if self.share > _THREADS * _CHUNK else _THREADS // 2
        self.kernel(f"channel_{what}").launch((self.channels, self.parts, 1), (threads, 1, 1), given)


def _batch_norm(
    k: Call,
    p: Params,
    outs: Outs,
    data: Array,
    gamma: Array,
    beta: Array,
    moving_mean: Array,
    moving_var: Array,
    *,
    positive: bool = False,
) -> None:
    c = _Channels(k, data.shape, p.axis, data.dtype)
    mean, inv = (c.room(gamma) if o is None else o for o in outs[1:3])
    if k.is_train and not p.use_global_stats and data.size:
        means, squares = c.room(gamma, c.parts), c.room(gamma, c.parts)
        c.shared("moments", data, means, squares)
        sizes = c.n, c.channels, c.share, c.parts, p.eps
        c.kernel("finish_moments").rows(c.channels, 1, means, squares, mean, inv, *sizes)
    else:
        c.kernel("moving_moments").each(c.channels, moving_mean, moving_var, mean, inv, c.channels, p.eps)
    if outs[0] is not None:
        scale = None if p.fix_gamma else gamma
        c.each("normalize", data, scale, beta, mean, inv, outs[0], positive)


def _counted(p: Params, data: Spec, *rest: Spec) -> bool:
    """Whether there is something, and 32 bits count the elements of a channel and of a plane."""
    outer, channels, inner = spread(data.shape, p.axis)
    return data.size > 0 and outer * inner < 2**30 and channels * inner < 2**30


@binds("BatchNorm", when=_counted)
def _plain(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
    _batch_norm(k, p, outs, *ins)


@binds("_contrib_BatchNormWithReLU", when=_counted)
def _with_relu(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
    _batch_norm(k, p, outs, *ins, positive=True)


def _by_batch(p: Params, *specs: Spec) -> bool:
    return not p.use_global_stats and _counted(p, *specs)


@binds("_backward_BatchNorm", when=_by_batch)
def _backward_batch_norm(
    k: Call,
    p: Params,
    outs: Outs,
    dy: Array,
    data: Array,
    gamma: Array,
    mean: Array,
    inv: Array,
    moving_mean: Array,
    moving_var: Array,
    relu: Array | None = None,
) -> None:
    c = _Channels(k, data.shape, p.axis, data.dtype)
    if not k.is_train:
        mean, inv = c.room(gamma), c.room(gamma)
        c.kernel("moving_moments").each(c.channels, moving_mean, moving_var, mean, inv, c.channels, p.eps)
    sums, products = c.room(gamma, c.parts), c.room(gamma, c.parts)
    c.shared("products", dy, relu, data, mean, inv, sums, products)
    given = sums, products, outs[1], outs[2], c.channels, c.parts, p.fix_gamma
    moved = (outs[3], outs[4]) if k.is_train else (None, None)
    c.kernel("finish_products").rows(c.channels, 1, *given, *moved, mean, inv, p.momentum, p.eps)
    if outs[0] is not None:
        scale, share = None if p.fix_gamma else gamma, 1 / c.n if k.is_train else 0.0
        c.each("data_gradient", dy, relu, data, scale, mean, inv, sums, products, outs[0], share)


@binds("_backward_contrib_BatchNormWithReLU", when=_by_batch)
def _backward_with_relu(
    k: Call,
    p: Params,
    outs: Outs,
    dy: Array,
    out: Array,
    data: Array,
    gamma: Array,
    mean: Array,
    inv: Array,
    moving_mean: Array,
    moving_var: Array,
) -> None:
    _backward_batch_norm(k, p, outs, dy, data, gamma, mean, inv, moving_mean, moving_var, out)


# -- rows --------------------------------------------------------------------------------------------------------------
def _normalize_rows(
    k: Call, p: Params, outs: Outs, data: Array, gamma: Array, beta: Array, rows: int, by_row: bool
) -> None:
    n = data.size // rows
    run = kernel_for(k, "layer_norm", "normalize_rows", data.dtype)
    run.kept_rows(rows, n, 1, data, gamma, beta, *outs, rows, n, by_row, gamma.size, p.eps)


def _rows_backward(
    k: Call,
    p: Params,
    outs: Outs,
    dy: Array,
    data: Array,
    gamma: Array,
    mean: Array,
    std: Array,
    rows: int,
    by_row: bool,
) -> None:
    n, index = data.size // rows, k.ctx.device_id
    again = data.dtype.itemsize == 2  # a rounded mean may be as far off as the values of a row differ
    if again:
        mean, std = (k.device.empty((rows,), wide(data.dtype), index) for _ in range(2))
    places, columns = gamma.size, -(-n * data.dtype.itemsize // (32 * 16))
    parts = rows // places if by_row else max(1, min(rows // 64, _BLOCKS // columns))
    share = -(-rows // parts)
    parts = parts if by_row else -(-rows // share)
    sums, products = (k.device.empty((parts, places), wide(data.dtype), index) for _ in range(2))
    kept = (sums, products) if by_row else (None, None)
    run = kernel_for(k, "layer_norm", "rows_backward", data.dtype)
    given = dy, data, gamma, mean, std, outs[0], *kept, rows, n, by_row, places, again, p.eps
    run.kept_rows(rows, n, 2, *given)
    if not by_row:
        found = kernel_for(k, "layer_norm", "places_backward", data.dtype)
        given = dy, data, mean, std, sums, products, rows, n, share
        found.launch((columns, parts, 1), (32, 8, 1), given)
    finish = kernel_for(k, "layer_norm", "finish_places", data.dtype)
    finish.columns(places, sums, products, outs[1], outs[2], places, parts)


def _filled(p: Params, data: Spec, *rest: Spec) -> bool:
    return data.size > 0


def _last(p: Params, data: Spec, *rest: Spec) -> bool:
    return data.size > 0 and p.axis % data.ndim == data.ndim - 1


@binds("LayerNorm", when=_last)
def _layer_norm(k: Call, p: Params, outs: Outs, data: Array, gamma: Array, beta: Array) -> None:
    _normalize_rows(k, p, outs, data, gamma, beta, data.size // data.shape[-1], False)


@binds("_backward_LayerNorm", when=lambda p, dy, data, *rest: _last(p, data))
def _backward_layer_norm(
    k: Call, p: Params, outs: Outs, dy: Array, data: Array, gamma: Array, mean: Array, std: Array
) -> None:
    _rows_backward(k, p, outs, dy, data, gamma, mean, std, data.size // data.shape[-1], False)


@binds("GroupNorm", when=_filled)
@binds("InstanceNorm", when=_filled)
def _by_row(k: Call, p: Params, outs: Outs, data: Array, gamma: Array, beta: Array) -> None:
    _normalize_rows(k, p, outs, data, gamma, beta, data.shape[0] * gamma.size, True)


@binds("_backward_GroupNorm", when=_filled)
@binds("_backward_InstanceNorm", when=_filled)
def _backward_by_row(
    k: Call, p: Params, outs: Outs, dy: Array, data: Array, gamma: Array, mean: Array, std: Array
) -> None:
    _rows_backward(k, p, outs, dy, data, gamma, mean, std, data.shape[0] * gamma.size, True)
