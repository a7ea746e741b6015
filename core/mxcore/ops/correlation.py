"""Comparing two stacks of images place by place: the correlation layer of optical flow networks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._core.infer import merge_shape
from .._core.op import op
from ..parameters import Bool, Int
from .conv import geometry, padded, windows
from .dense import given, wide
from .floating import floating
from .rules import fits, size_of
from .silent import silent

__all__: list[str] = []

_PARAMS = dict(
    kernel_size=Int(1, ge=1),
    max_displacement=Int(1, ge=0, le=2**20),
    stride1=Int(1, ge=1),
    stride2=Int(1, ge=1),
    pad_size=Int(0, ge=0),
    is_multiply=Bool(True),
)


def _steps(p: Any) -> list[int]:
    """The displacements along one axis."""
    n = p.max_displacement // p.stride2
    return [i * p.stride2 for i in range(-n, n + 1)]


def _sizes(p: Any, size: tuple[int, ...]) -> tuple[int, ...]:
    """Places at which patches are compared, along each axis; -1 stays unknown."""
    if p.kernel_size % 2 == 0:
        raise ValueError(f"kernel_size must be odd, got {p.kernel_size}")
    border = 2 * p.max_displacement + p.kernel_size - 1
    found = tuple(-1 if n == -1 else -(-(n + 2 * p.pad_size - border) // p.stride1) for n in size)
    for n, m in zip(size, found):
        if n > 0 and m < 1:
            raise ValueError(
                f"kernel_size {p.kernel_size} and max_displacement {p.max_displacement} need {border + 1} places, "
                "the padded data "
                f"has only {n + 2 * p.pad_size}"
            )
    return tuple(m if m == -1 else max(m, 0) for m in found)


class _Form:
    """Where the patches of an output of this size lie in the padded data."""

    __slots__ = ("size", "geometry", "reach", "first", "steps")

    def __init__(self, p: Any, size: tuple[int, ...]) -> None:
        self.size = _sizes(p, size)
        k = p.kernel_size
        self.geometry = geometry((k, k), (p.stride1,) * 2, (), ())
        #: Places that the patches cover, from `first` on.
        self.reach = tuple((n - 1) * p.stride1 + k for n in self.size)
        self.first, self.steps = p.max_displacement, _steps(p)

    def part(self, x: Any, dy: int = 0, dx: int = 0) -> Any:
        """What all patches see when moved."""
        a, b = self.first + dy, self.first + dx
        return x[:, :, a : a + self.reach[0], b : b + self.reach[1]]

    def moved(self) -> Iterator[tuple[int, int, int]]:
        """Channel of the output, and its displacement in y and in x."""
        return ((i * len(self.steps) + j, dy, dx) for i, dy in enumerate(self.steps) for j, dx in enumerate(self.steps))


def _both(xp: Any, p: Any, *arrays: Any) -> Any:
    return [padded(xp, wide(a), (p.pad_size,) * 2, (p.pad_size,) * 2) for a in arrays]


@op(
    "Correlation",
    inputs="data1 data2",
    labels="gradients outputs",
    mxnet_outputs=3,
    recompute=False,
    **_PARAMS,
    grad=lambda F, p, dy, data1, data2, needs: F._backward_Correlation(
        dy, data1, data2, wanted=tuple(needs), **given(p, _PARAMS)
    ),
)
@silent
def correlation(k, p, data1, data2):
    """Compare patches of one stack of images with moved patches of another.

    Parameters
    ----------
    data1, data2 : array
        Shape (N, C, H, W), both alike.
    kernel_size : int
        Length of the square patches, odd.
    max_displacement : int
        How far patches of `data2` are moved, in either direction of both axes.
    stride1 : int
        Step between the places at which patches are compared.
    stride2 : int
        Step between displacements.
    pad_size : int
        Zeros around the images.
    is_multiply : bool
        Multiply the elements; else take the absolute values of their differences.

    Returns
    -------
    array
        Shape (N, D * D, h, w) for D = 2 * (max_displacement // stride2) + 1: means over patch and channels.
        Displacements in x run fastest.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``Correlation``. Source: Dosovitskiy et al., "FlowNet", 2015.
    """
    xp = k.xp
    a, b = _both(xp, p, data1, data2)
    f = _Form(p, data1.shape[2:])
    out = xp.zeros((data1.shape[0], len(f.steps) ** 2, *f.size), a.dtype)
    if not out.size or not a.size:
        return out
    left = f.part(a)
    for channel, dy, dx in f.moved():
        right = f.part(b, dy, dx)
        alike = (left * right if p.is_multiply else xp.abs(left - right)).sum(1, keepdims=True)
        for _, see in windows(f.geometry, f.size):
            out[:, channel] += alike[(slice(None), 0, *see)]
    out /= a.dtype.type(p.kernel_size**2 * data1.shape[1])
    return out


@correlation.shape
def _(p, ins, outs):
    data = merge_shape(merge_shape(*ins), (-1,) * 4)
    out = merge_shape(outs[0], (-1, len(_steps(p)) ** 2, -1, -1))
    n = merge_shape(data[:1], out[:1])
    data = (*n, *data[1:])
    return [data, data], [(*n, out[1], *_sizes(p, data[2:]))]


correlation.dtype(floating())
correlation.cost(lambda p, ins, outs: size_of(outs[0]) * ins[0][1] * p.kernel_size**2)


@op("_backward_Correlation", inputs="dy data1 data2", outputs="data1 data2", **_PARAMS)
@silent
def backward_correlation(k, p, dy_, data1, data2):
    """Gradients of `Correlation` with respect to both its inputs.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data1, data2 : array
        The inputs.
    kernel_size, max_displacement, stride1, stride2, pad_size, is_multiply
        As in `Correlation`.
    """
    xp, wanted = k.xp, k.wanted or (True, True)
    a, b = _both(xp, p, data1, data2)
    f = _Form(p, data1.shape[2:])
    dy = wide(dy_) / a.dtype.type(p.kernel_size**2 * max(data1.shape[1], 1))
    grads = [xp.zeros_like(x) if w else None for x, w in zip((a, b), wanted)]
    left = f.part(a)
    for channel, y, x in f.moved() if dy.size else ():
        g = xp.zeros((dy.shape[0], 1, *f.reach), dy.dtype)
        for _, see in windows(f.geometry, f.size):
            g[(slice(None), 0, *see)] += dy[:, channel]
        right = f.part(b, y, x)
        if p.is_multiply:
            slopes = g * right, g * left
        else:
            up = xp.where(left >= right, g, -g)
            slopes = up, -up
        for total, slope, move in zip(grads, slopes, ((0, 0), (y, x))):
            if total is not None:
                at = f.part(total, *move)
                at += slope
    q = p.pad_size
    h, w = data1.shape[2:]
    return [None if g is None else xp.ascontiguousarray(g[:, :, q : q + h, q : q + w]) for g in grads]


@backward_correlation.shape
def _(p, ins):
    fits("dy", ins, correlation.shape_rule(p, ins[1:], [None])[1])
    return [ins[1], ins[2]]


backward_correlation.cost(lambda p, ins, outs: 2 * size_of(ins[0]) * ins[1][1] * p.kernel_size**2)
