"""Windows on arrays, and the convolution and its two adjoints as matrix products over them.

Three functions do the work: `conv_forward`, `conv_data` and `conv_weight`. They take channels-first arrays, and pieces
of the batch, so that the gathered windows stay small.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any

from ..common.rules import size_of

__all__ = ["Geometry", "PIECE", "conv_data", "conv_forward", "conv_weight", "geometry", "padded", "windows"]


#: Elements of gathered windows at a time: enough for BLAS to be busy, few enough to stay near the processor.
PIECE = 1 << 21


class Geometry:
    """How windows lie on an array: kernel, stride, dilation, padding of each dimension; groups of channels."""

    __slots__ = ("kernel", "stride", "dilate", "pad", "groups", "extent")

    def __init__(
        self,
        kernel: tuple[int, ...],
        stride: tuple[int, ...],
        dilate: tuple[int, ...],
        pad: tuple[int, ...],
        groups: int,
    ) -> None:
        n = len(kernel)
        if not 1 <= n <= 3:
            raise ValueError(f"kernel {kernel} must have 1, 2 or 3 dimensions")
        self.kernel, self.groups = kernel, groups
        self.stride, self.dilate, self.pad = stride or (1,) * n, dilate or (1,) * n, pad or (0,) * n
        for name, v, low in (
            ("kernel", kernel, 1),
            ("stride", self.stride, 1),
            ("dilate", self.dilate, 1),
            ("pad", self.pad, 0),
        ):
            if len(v) != n or min(v) < low:
                raise ValueError(
                    f"{name} {v} must be {n} numbers of at least {low}, as kernel {kernel} has {n} dimensions"
                )
        #: Length that a dilated kernel covers.
        self.extent = tuple(d * (k - 1) + 1 for k, d in zip(kernel, self.dilate))

    def out(self, spatial: tuple[int, ...]) -> tuple[int, ...]:
        """Number of windows per dimension; -1 stays unknown."""
        sizes = []
        for i, (n, e, s, p) in enumerate(zip(spatial, self.extent, self.stride, self.pad)):
            if n != -1 and n + 2 * p < e:
                raise ValueError(
                    f"the kernel covers {e} in spatial dimension {i}, the padded data has only {n + 2 * p}"
                )
            sizes.append(-1 if n == -1 else (n + 2 * p - e) // s + 1)
        return tuple(sizes)


@lru_cache(512)
def geometry(
    kernel: tuple[int, ...], stride: tuple[int, ...], dilate: tuple[int, ...], pad: tuple[int, ...], groups: int = 1
) -> Geometry:
    """The (cached) geometry of an operator's parameters; empty tuples stand for ones and zeros."""
    return Geometry(kernel, stride, dilate, pad, groups)


def windows(g: Geometry, out: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """For each place in the kernel, in row-major order: its index, and what all windows see there."""
    for at in product(*map(range, g.kernel)):
        yield at, tuple(slice(i * d, i * d + s * (n - 1) + 1, s) for i, d, s, n in zip(at, g.dilate, g.stride, out))


def padded(xp: Any, x: Any, before: tuple[int, ...], after: tuple[int, ...], value: Any = 0) -> Any:
    """`x` with its spatial dimensions (all after the second) lengthened."""
    if not any(before) and not any(after):
        return x
    full = xp.full((*x.shape[:2], *(b + n + a for b, n, a in zip(before, x.shape[2:], after))), value, x.dtype)
    full[(slice(None),) * 2 + tuple(slice(b, b + n) for b, n in zip(before, x.shape[2:]))] = x
    return full


def _pieces(n: int, each: int) -> Iterator[slice]:
    """Cut a batch of `n` samples, each of `each` elements of windows."""
    step = max(1, PIECE // max(each, 1))
    return (slice(i, min(i + step, n)) for i in range(0, n, step))


def _gather(xp: Any, x: Any, g: Geometry, out: tuple[int, ...]) -> Any:
    """Windows of a piece (n, C, *S) as a matrix per group: (groups, C/groups * kernel, n * out)."""
    x = padded(xp, x, g.pad, g.pad).swapaxes(0, 1)
    c, n = x.shape[:2]
    cols = xp.empty((c, *g.kernel, n, *out), x.dtype)
    for at, see in windows(g, out):
        cols[(slice(None),) + at] = x[(slice(None),) * 2 + see]
    return cols.reshape(g.groups, c // g.groups * size_of(g.kernel), n * size_of(out))


def _flat(x: Any, groups: int) -> Any:
    """A piece (n, F, *O) as a matrix per group: (groups, F/groups, n * out)."""
    n, f = x.shape[:2]
    return x.swapaxes(0, 1).reshape(groups, f // groups, n * size_of(x.shape[2:]))


def _matrices(w: Any, groups: int) -> Any:
    return w.reshape(groups, w.shape[0] // groups, size_of(w.shape[1:]))


def conv_forward(xp: Any, x: Any, w: Any, g: Geometry, bias: Any = None) -> Any:
    """Convolve (N, C, *S) with (F, C/groups, *kernel) to (N, F, *O)."""
    n, f = x.shape[0], w.shape[0]
    out = g.out(x.shape[2:])
    y = xp.empty((n, f, *out), x.dtype)
    if not y.size:
        return y
    wm = _matrices(w, g.groups)
    for piece in _pieces(n, size_of(w.shape[1:]) * g.groups * size_of(out)):
        part = xp.matmul(wm, _gather(xp, x[piece], g, out)).reshape(f, -1, *out)
        if bias is not None:
            part += bias.reshape(f, *(1,) * (part.ndim - 1))
        y[piece] = part.swapaxes(0, 1)
    return y


def conv_data(xp: Any, dy: Any, w: Any, g: Geometry, spatial: tuple[int, ...]) -> Any:
    """Adjoint of `conv_forward` in its data: (N, F, *O) to (N, C, *spatial)."""
    n, out = dy.shape[0], tuple(dy.shape[2:])
    c = w.shape[1] * g.groups
    # Where windows do not reach the end of the padded data, the rest stays zero.
    dx = xp.zeros((n, c, *(s + 2 * p for s, p in zip(spatial, g.pad))), dy.dtype)
    if dx.size and dy.size:
        wt = _matrices(w, g.groups).swapaxes(1, 2)
        for piece in _pieces(n, size_of(w.shape[1:]) * g.groups * size_of(out)):
            cols = xp.matmul(wt, _flat(dy[piece], g.groups)).reshape(c, *g.kernel, -1, *out)
            part = dx[piece].swapaxes(0, 1)
            for at, see in windows(g, out):
                part[(slice(None),) * 2 + see] += cols[(slice(None),) + at]
    if any(g.pad):
        dx = xp.ascontiguousarray(dx[(slice(None),) * 2 + tuple(slice(p, p + s) for p, s in zip(g.pad, spatial))])
    return dx


def conv_weight(xp: Any, x: Any, dy: Any, g: Geometry) -> Any:
    """Adjoint of `conv_forward` in its weight: (F, C/groups, *kernel) from data (N, C, *S) and (N, F, *O)."""
    n, f, out = dy.shape[0], dy.shape[1], tuple(dy.shape[2:])
    c = x.shape[1] // g.groups
    dw = xp.zeros((g.groups, f // g.groups, c * size_of(g.kernel)), x.dtype)
    if dy.size and x.size:
        for piece in _pieces(n, c * g.groups * size_of(g.kernel) * size_of(out)):
            dw += xp.matmul(_flat(dy[piece], g.groups), _gather(xp, x[piece], g, out).swapaxes(1, 2))
    return dw.reshape(f, c, *g.kernel)
