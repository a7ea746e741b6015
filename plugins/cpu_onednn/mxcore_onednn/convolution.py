"""Convolutions and their gradients as plans; a transposed convolution is the gradient of one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from .library import Library
from .plan import BIAS, DIFF_BIAS, DIFF_DST, DIFF_SRC, DIFF_WEIGHTS, DST, SRC, WEIGHTS, Desc, Plan, dims

__all__ = ["Geometry", "backward", "forward", "sums", "transposed", "transposed_backward"]

_INFERENCE, _DIRECT = 96, 1


class Geometry(NamedTuple):
    """Shapes and steps of a convolution from `src` to `dst`.

    Attributes
    ----------
    src, weight, dst : tuple of int
        (n, c, *size), (f, c / groups, *kernel), (n, f, *positions).
    stride, pad, dilate : tuple of int
        One for each axis of size; a dilation of 1 leaves no gaps.
    groups : int
    """

    src: tuple[int, ...]
    weight: tuple[int, ...]
    dst: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilate: tuple[int, ...]
    groups: int

    @property
    def work(self) -> int:
        """Multiplications."""
        return prod(self.dst) * prod(self.weight[1:])

    @property
    def grouped(self) -> tuple[int, ...]:
        """The weight's shape as the library has it."""
        if self.groups == 1:
            return self.weight
        return (self.groups, self.weight[0] // self.groups, *self.weight[1:])

    def steps(self) -> tuple[Any, ...]:
        pad = dims(self.pad)
        return dims(self.stride), dims([d - 1 for d in self.dilate]), pad, pad


def _forward(lib: Library, g: Geometry, bias: bool) -> int:
    """A primitive descriptor; who gets it destroys it."""
    src, weight, dst = (Desc.any(lib, shape) for shape in (g.src, g.grouped, g.dst))
    shift = Desc.dense(lib, g.dst[1:2])
    return lib.new(
        "convolution_forward_primitive_desc_create",
        *(lib.engine, _INFERENCE, _DIRECT, src.handle, weight.handle, shift.handle if bias else None, dst.handle),
        *(*g.steps(), lib.attr),
    )


def _arrays(lib: Library, shapes: Sequence[Sequence[int]]) -> list[Desc]:
    return [Desc.dense(lib, shape) for shape in shapes]


class _Hint:
    """The descriptor of the forward convolution, which those of gradients are made by."""

    def __init__(self, lib: Library, g: Geometry) -> None:
        self.lib, self.g = lib, g

    def __enter__(self) -> int:
        self.handle = _forward(self.lib, self.g, False)
        return self.handle

    def __exit__(self, *exc: object) -> None:
        self.lib.primitive_desc_destroy(self.handle)


def _of_data(lib: Library, g: Geometry) -> int:
    with _Hint(lib, g) as hint:
        descs = [Desc.any(lib, shape) for shape in (g.src, g.grouped, g.dst)]
        return lib.new(
            "convolution_backward_data_primitive_desc_create",
            *(lib.engine, _DIRECT, *(d.handle for d in descs), *g.steps(), hint, lib.attr),
        )


def _of_weight(lib: Library, g: Geometry, bias: bool) -> int:
    with _Hint(lib, g) as hint:
        src, weight, dst = (Desc.any(lib, shape) for shape in (g.src, g.grouped, g.dst))
        shift = Desc.dense(lib, g.dst[1:2])
        return lib.new(
            "convolution_backward_weights_primitive_desc_create",
            *(lib.engine, _DIRECT, src.handle, weight.handle, shift.handle if bias else None, dst.handle),
            *(*g.steps(), hint, lib.attr),
        )


def forward(lib: Library, g: Geometry, bias: bool) -> Plan:
    """Of data, weight, bias if there is one; the result is the last array."""
    shapes = [g.src, g.grouped, *([g.dst[1:2]] if bias else []), g.dst]
    plan = Plan(lib, _arrays(lib, shapes))
    plan.add(_forward(lib, g, bias), {SRC: 0, WEIGHTS: 1, **({BIAS: 2} if bias else {}), DST: len(shapes) - 1})
    return plan.done()


def sums(lib: Library, g: Geometry, dtype: str) -> Plan:
    """Of data in eight bits and weight in int8; the result is int32."""
    kinds = [(g.src, dtype), (g.grouped, "int8"), (g.dst, "int32")]
    src, weight, dst = (Desc.any(lib, *kind) for kind in kinds)
    plan = Plan(lib, [Desc.dense(lib, *kind) for kind in kinds])
    made = lib.new(
        "convolution_forward_primitive_desc_create",
        *(lib.engine, _INFERENCE, _DIRECT, src.handle, weight.handle, None, dst.handle, *g.steps(), lib.attr),
    )
    plan.add(made, {SRC: 0, WEIGHTS: 1, DST: 2})
    return plan.done()


def backward(lib: Library, g: Geometry, wanted: tuple[bool, bool, bool]) -> Plan:
    """Of the gradient of the result, data, weight; then those of the wanted gradients, of data, weight and bias."""
    shapes = [g.dst, g.src, g.grouped]
    places: list[int] = []
    for shape, want in zip((g.src, g.grouped, g.dst[1:2]), wanted):
        places.append(len(shapes))
        if want:
            shapes.append(shape)
    plan = Plan(lib, _arrays(lib, shapes))
    if wanted[1]:
        shift = {DIFF_BIAS: places[2]} if wanted[2] else {}
        plan.add(_of_weight(lib, g, wanted[2]), {SRC: 1, DIFF_DST: 0, DIFF_WEIGHTS: places[1], **shift})
    if wanted[0]:
        plan.add(_of_data(lib, g), {DIFF_DST: 0, WEIGHTS: 2, DIFF_SRC: places[0]})
    return plan.done()


def transposed(lib: Library, g: Geometry) -> Plan:
    """Of an array like the result of a convolution, and its weight, to one like its data."""
    plan = Plan(lib, _arrays(lib, [g.dst, g.grouped, g.src]))
    plan.add(_of_data(lib, g), {DIFF_DST: 0, WEIGHTS: 1, DIFF_SRC: 2})
    return plan.done()


def transposed_backward(lib: Library, g: Geometry, wanted: tuple[bool, bool]) -> Plan:
    """Of the gradient of what :func:`transposed` gave, what it took, the weight; then the wanted gradients of those."""
    shapes = [g.src, g.dst, g.grouped, *(s for s, want in zip((g.dst, g.grouped), wanted) if want)]
    plan = Plan(lib, _arrays(lib, shapes))
    if wanted[1]:
        plan.add(_of_weight(lib, g, False), {SRC: 0, DIFF_DST: 1, DIFF_WEIGHTS: len(shapes) - 1})
    if wanted[0]:
        plan.add(_forward(lib, g, False), {SRC: 0, WEIGHTS: 2, DST: 3})
    return plan.done()
