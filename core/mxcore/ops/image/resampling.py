"""Resizing as two products with matrices, a row of weights for each new pixel: OpenCV's five methods anywhere."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

__all__ = ["apply", "matrices", "new_size"]


_NEAREST, _LINEAR, _CUBIC, _AREA, _LANCZOS = range(5)


def new_size(size: tuple[int, ...], keep_ratio: bool, height: int, width: int) -> tuple[int, int]:
    """(height, width) that MXNet's ``size`` and ``keep_ratio`` mean for an image."""
    if len(size) not in (1, 2) or min(size) < 1:
        raise ValueError(f"size must be one positive number or (width, height), got {size}")
    if len(size) == 2:
        return size[1], size[0]
    s = size[0]
    if not keep_ratio:
        return s, s
    return (s, width * s // height) if height < width else (height * s // width, s)


def _cubic(t: Any) -> Any:
    """Weights of four neighbours at a distance `t` from the second."""
    a = -0.75

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    w = np.stack([far(t + 1), near(t), near(1 - t)], 1)
    return np.concatenate([w, 1 - w.sum(1, keepdims=True)], 1)


def _lanczos(t: Any) -> Any:
    """Weights of eight neighbours at a distance `t` from the fourth."""
    x = t[:, None] - np.arange(-3, 5)
    w = np.sinc(x) * np.sinc(x / 4)
    return w / w.sum(1, keepdims=True)


@functools.lru_cache(64)
def _weights(old: int, new: int, method: int, shrinks: bool) -> np.ndarray[Any, Any]:
    """Weights (new, old) of one axis; `shrinks`: both axes do."""
    scale, at = old / new, np.arange(new)
    rows: np.ndarray[Any, Any] = np.zeros((new, old))
    if method == _NEAREST:
        rows[at, np.minimum(np.floor(at * scale).astype(int), old - 1)] = 1
        return rows
    if method == _AREA and shrinks:
        cell = np.arange(old)
        overlap = np.minimum(cell + 1, (at + 1)[:, None] * scale) - np.maximum(cell, at[:, None] * scale)
        rows = np.clip(overlap, 0, None)
        rows /= rows.sum(1, keepdims=True)
        return rows
    if method == _AREA:
        first = np.floor(at * scale).astype(int)
        t = (at + 1) - (first + 1) / scale
        t = np.where(t <= 0, 0, t - np.floor(t))
    else:
        place = (at + 0.5) * scale - 0.5
        first = np.floor(place).astype(int)
        t = place - first
    taps, begin = {_CUBIC: (_cubic(t), -1), _LANCZOS: (_lanczos(t), -3)}.get(method) or (np.stack([1 - t, t], 1), 0)
    for j in range(taps.shape[1]):
        np.add.at(rows, (at, np.clip(first + begin + j, 0, old - 1)), taps[:, j])
    return rows


def matrices(xp: Any, old: tuple[int, int], new: tuple[int, int], method: int, dtype: Any) -> tuple[Any, Any]:
    """The matrices for heights and for widths."""
    shrinks = new[0] <= old[0] and new[1] <= old[1]
    y, x = (xp.asarray(_weights(a, b, method, shrinks).astype(dtype)) for a, b in zip(old, new))
    return y, x


def apply(xp: Any, y: Any, x: Any, image: Any) -> Any:
    """Multiply the heights and widths of images (..., height, width, channels)."""
    *lead, h, w, c = image.shape
    image = xp.matmul(y, image.reshape(*lead, h, w * c)).reshape(*lead, y.shape[0], w, c)
    return xp.matmul(x, image)
