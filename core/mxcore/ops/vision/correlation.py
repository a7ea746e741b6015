"""Comparing two stacks of images place by place: the correlation layer of optical flow networks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Int
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.gradients import given
from ..common.rules import floating, size_of
from ..convolution.windows import geometry, padded, windows

__all__ = ["CORRELATION_PARAMS", "PatchLayout", "correlation", "padded_wide"]


CORRELATION_PARAMS = dict(
    kernel_size=Int(1, ge=1),
    max_displacement=Int(1, ge=0, le=2**20),
    stride1=Int(1, ge=1),
    stride2=Int(1, ge=1),
    pad_size=Int(0, ge=0),
    is_multiply=Bool(True),
)


def _steps(p: Params) -> list[int]:
    """The displacements along one axis."""
    n = p.max_displacement // p.stride2
    return [i * p.stride2 for i in range(-n, n + 1)]


def _sizes(p: Params, size: tuple[int, ...]) -> tuple[int, ...]:
    """Places at which patches are compared, along each axis; -1 stays unknown."""
    if p.kernel_size % 2 == 0:
        raise ValueError(f"kernel_size must be odd, got {p.kernel_size}")
    border = 2 * p.max_displacement + p.kernel_size - 1
    found = tuple(-1 if n == -1 else -(-(n + 2 * p.pad_size - border) // p.stride1) for n in size)
    for n, m in zip(size, found):
        if n > 0 and m < 1:
            raise ValueError(
                f"kernel_size {p.kernel_size} and max_displacement {p.max_displacement} need {border + 1} places, "
                f"the padded data has only {n + 2 * p.pad_size}"
            )
    return tuple(m if m == -1 else max(m, 0) for m in found)


class PatchLayout:
    """Where the patches of an output of this size lie in the padded data."""

    __slots__ = ("size", "geometry", "reach", "first", "steps")

    def __init__(self, p: Params, size: tuple[int, ...]) -> None:
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


def padded_wide(xp: Any, p: Params, *arrays: Any) -> Any:
    """Arrays in the dtype to compute in, with zeros around the images."""
    return [padded(xp, wide(a), (p.pad_size,) * 2, (p.pad_size,) * 2) for a in arrays]


@op(
    "Correlation",
    inputs="data1 data2",
    labels="gradients outputs",
    mxnet_outputs=3,
    recompute=False,
    **CORRELATION_PARAMS,
    grad=lambda F, p, dy, data1, data2, needs: F._backward_Correlation(
        dy, data1, data2, wanted=tuple(needs), **given(p, CORRELATION_PARAMS)
    ),
)
@silent
def correlation(k: Call, p: Params, data1: Array, data2: Array) -> Array:
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
    a, b = padded_wide(xp, p, data1, data2)
    f = PatchLayout(p, data1.shape[2:])
    out = xp.zeros((data1.shape[0], len(f.steps) ** 2, *f.size), a.dtype)
    if not out.size or not a.size:
        return out
    left = f.part(a)
    for channel, dy, dx in f.moved():
        right = f.part(b, dy, dx)
        alike = (left * right if p.is_multiply else xp.abs(left - right)).sum(1, keepdims=True)
        for _, see in windows(f.geometry, f.size):
            out[:, channel] += alike[(slice(None), 0) + see]
    out /= a.dtype.type(p.kernel_size**2 * data1.shape[1])
    return out


@correlation.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data = merge_shape(merge_shape(*ins), (-1,) * 4)
    out = merge_shape(outs[0], (-1, len(_steps(p)) ** 2, -1, -1))
    n = merge_shape(data[:1], out[:1])
    data = (*n, *data[1:])
    return [data, data], [(*n, out[1], *_sizes(p, data[2:]))]


correlation.dtype(floating())
correlation.cost(lambda p, ins, outs: size_of(outs[0]) * ins[0][1] * p.kernel_size**2)
