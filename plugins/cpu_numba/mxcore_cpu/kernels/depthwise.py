"""Convolution of each channel with filters of its own: direct loops, one plane at a time."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..jit import REORDER, kernel
from ._arrays import flat, writable
from .columns import U, fill, inside

__all__ = ["data_gradient", "fits", "forward", "weight_gradient"]


def fits(g: Sequence[int], weight_shape: Sequence[int], groups: int) -> bool:
    """Tell whether this is a convolution with one input channel per group (more than one group)."""
    return groups > 1 and groups == g[0] and weight_shape[0] > 0


@kernel(threshold=1 << 15)
def _forward(first, last, g, times, x, weight, bias, y):
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    taps = kd * kh * kw
    for plane in range(first, last):
        f = plane % (c * times)
        x0 = plane // times * d * h * w
        y0 = plane * od * oh * ow
        fill(y, y0, od * oh * ow, bias[f] if bias.size > 0 else x.dtype.type(0))
        for t in range(taps):
            e, b, a = t % kw, t // kw % kh, t // kw // kh
            v = weight[f * taps + t]
            left, right = inside(e * dw - pw, sw, w, ow)
            for i in range(od):
                iz = i * sd - pd + a * dd
                for j in range(oh):
                    iy = j * sh - ph + b * dh
                    if 0 <= iz < d and 0 <= iy < h:
                        s = U(x0 + (iz * h + iy) * w + e * dw - pw)
                        q = U(y0 + (i * oh + j) * ow)
                        if sw == 1:
                            for z in range(U(left), U(right)):
                                y[q + z] += v * x[s + z]
                        else:
                            for z in range(U(left), U(right)):
                                y[q + z] += v * x[s + z * U(sw)]


@kernel(threshold=1 << 15)
def _data_gradient(first, last, g, times, dy, weight, bias, dx):
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    taps = kd * kh * kw
    for plane in range(first, last):
        x0 = plane * d * h * w
        fill(dx, x0, d * h * w, bias[plane % c] if bias.size > 0 else dx.dtype.type(0))
        for m in range(times):
            f = plane % c * times + m
            y0 = (plane * times + m) * od * oh * ow
            for t in range(taps):
                e, b, a = t % kw, t // kw % kh, t // kw // kh
                v = weight[f * taps + t]
                left, right = inside(e * dw - pw, sw, w, ow)
                for i in range(od):
                    iz = i * sd - pd + a * dd
                    for j in range(oh):
                        iy = j * sh - ph + b * dh
                        if 0 <= iz < d and 0 <= iy < h:
                            s = U(x0 + (iz * h + iy) * w + e * dw - pw)
                            q = U(y0 + (i * oh + j) * ow)
                            if sw == 1:
                                for z in range(U(left), U(right)):
                                    dx[s + z] += v * dy[q + z]
                            else:
                                for z in range(U(left), U(right)):
                                    dx[s + z * U(sw)] += v * dy[q + z]


@kernel(threshold=1 << 15, fastmath=REORDER)
def _weight_gradient(first, last, g, times, n, x, dy, out):
    c, d, h, w, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, od, oh, ow = g
    taps = kd * kh * kw
    for f in range(first, last):
        for t in range(taps):
            e, b, a = t % kw, t // kw % kh, t // kw // kh
            left, right = inside(e * dw - pw, sw, w, ow)
            total = x.dtype.type(0)
            for image in range(n):
                x0 = (image * c + f // times) * d * h * w
                y0 = (image * c * times + f) * od * oh * ow
                for i in range(od):
                    iz = i * sd - pd + a * dd
                    for j in range(oh):
                        iy = j * sh - ph + b * dh
                        if 0 <= iz < d and 0 <= iy < h:
                            s = U(x0 + (iz * h + iy) * w + e * dw - pw)
                            q = U(y0 + (i * oh + j) * ow)
                            for z in range(U(left), U(right)):
                                total += dy[q + z] * x[s + z * U(sw)]
            out[f * taps + t] = total


def _optional(bias: np.ndarray | None, dtype: np.dtype) -> np.ndarray:
    return np.empty(0, dtype) if bias is None else flat(bias)


def forward(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, y: np.ndarray,
            g: tuple[int, ...]) -> None:
    """Write the convolution of each channel with its own filters; `g` as in :mod:`.columns`."""
    times = weight.shape[0] // g[0]
    with writable(y) as (out,):
        _forward.run(_forward.workers(y.size * weight[0].size), x.shape[0] * weight.shape[0], g, times,
                     flat(x), flat(weight), _optional(bias, x.dtype), out.reshape(-1))


def data_gradient(dy: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, dx: np.ndarray,
                  g: tuple[int, ...]) -> None:
    """Write the gradient with respect to the data (or a transposed convolution, which may have a bias)."""
    times = weight.shape[0] // g[0]
    with writable(dx) as (out,):
        _data_gradient.run(_data_gradient.workers(dy.size * weight[0].size), dx.shape[0] * g[0], g, times,
                           flat(dy), flat(weight), _optional(bias, dy.dtype), out.reshape(-1))


def weight_gradient(x: np.ndarray, dy: np.ndarray, d_weight: np.ndarray, g: tuple[int, ...]) -> None:
    """Write the gradient with respect to the filters."""
    times = d_weight.shape[0] // g[0]
    with writable(d_weight) as (out,):
        _weight_gradient.run(_weight_gradient.workers(dy.size * d_weight[0].size), d_weight.shape[0], g,
                             times, x.shape[0], flat(x), flat(dy), out.reshape(-1))
