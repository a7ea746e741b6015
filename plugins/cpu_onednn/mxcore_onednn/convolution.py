"""Convolutions and their gradients as plans; a transposed convolution is the gradient of one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import prod
from typing import Any, NamedTuple

from mxcore.layouts import axes
from mxcore.plugin import Params

from .descs import BIAS, DIFF_BIAS, DIFF_DST, DIFF_SRC, DIFF_WEIGHTS, DST, INFERENCE, SRC, WEIGHTS, Desc, dims
from .library import ISA_AVX512, Library, Refused
from .plan import Plan
from .plans import plan_for

__all__ = [
    "Geometry",
    "Maker",
    "backward",
    "backward_plan",
    "forward",
    "forward_plan",
    "sums",
    "transposed",
    "transposed_backward",
]

_DIRECT = 1


class Geometry(NamedTuple):
    """Shapes and steps of a convolution from `src` to `dst`.

    Attributes
    ----------
    src, weight, dst : tuple of int
        (n, c, *size), (f, c / groups, *kernel), (n, f, *positions).
    stride, pad, dilate : tuple of int
        One for each axis of size; a dilation of 1 leaves no gaps.
    groups : int
    last : bool
        Arrays have the channels of a place side by side: they are (n, *size, c) and (n, *positions, f).
    dtype : str
        Of all arrays: 'float32' or 'bfloat16'.
    """

    src: tuple[int, ...]
    weight: tuple[int, ...]
    dst: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilate: tuple[int, ...]
    groups: int
    last: bool = False
    dtype: str = "float32"

    @classmethod
    def of(cls, p: Params, data: Sequence[int], weight: Sequence[int], groups: int, dtype: str = "float32") -> Geometry:
        """Of an operator with the parameters `stride`, `pad` and `dilate`."""
        stride, pad, dilate = (tuple(axes(v, len(data) - 2, d)) for v, d in ((p.stride, 1), (p.pad, 0), (p.dilate, 1)))
        steps = zip(data[2:], weight[2:], stride, pad, dilate)
        size = [(m + 2 * b - d * (w - 1) - 1) // s + 1 for m, w, s, b, d in steps]
        dst = data[0], weight[0], *size
        return cls(tuple(data), tuple(weight), dst, stride, pad, dilate, groups, dtype=dtype)

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

    def image(self, lib: Library, shape: Sequence[int]) -> Desc:
        """Of an array of images."""
        return Desc.image(lib, shape, self.last, self.dtype)

    def dense(self, lib: Library, shape: Sequence[int]) -> Desc:
        """Of another array."""
        return Desc.dense(lib, shape, self.dtype)

    def steps(self) -> tuple[Any, ...]:
        pad = dims(self.pad)
        return dims(self.stride), dims([d - 1 for d in self.dilate]), pad, pad


class Maker:
    """Primitive descriptors for a geometry; who gets one destroys it.

    With AVX2 the library likes channels last, for which it has poor code where windows are of one place or of one
    channel, and for data gradients where windows skip places: there images come in `blocks` of channels, if they may.
    Gradients of weights of larger windows have better code for these, too, also where arrays have channels last.
    """

    def __init__(self, lib: Library, g: Geometry, blocks: bool) -> None:
        self.lib, self.g = lib, g
        narrow = lib.isa & ISA_AVX512 != ISA_AVX512 and g.dtype == "float32"
        self.blocks = blocks and narrow and not (g.src[1] % 8 or g.dst[1] % 8)

    def _descs(self, strided: bool, given: Desc | None = None, last: bool | None = None) -> list[Desc]:
        """Of data, weight and result; the data's may be given."""
        lib, g = self.lib, self.g
        poor = prod(g.weight[2:]) == 1 or g.groups > 1 and g.weight[1] == 1 or strided and max(g.stride) > 1
        last = g.last if last is None else last
        images = Desc.channels_last if last else Desc.blocks if self.blocks and poor else self._any
        return [given or images(lib, g.src), self._any(lib, g.grouped), images(lib, g.dst)]

    def _any(self, lib: Library, shape: Sequence[int]) -> Desc:
        return Desc.any(lib, shape, self.g.dtype)

    def _shift(self, biased: bool) -> Desc | None:
        return self.g.dense(self.lib, self.g.dst[1:2]) if biased else None

    def forward(
        self, biased: bool = False, strided: bool = False, attr: int | None = None, given: Desc | None = None
    ) -> int:
        """Of the convolution, with attributes, and over data of a `given` layout."""
        lib, g = self.lib, self.g
        src, weight, dst = self._descs(strided, given)
        shift = self._shift(biased)
        return lib.new(
            "convolution_forward_primitive_desc_create",
            *(lib.engine, INFERENCE, _DIRECT, src.handle, weight.handle, shift and shift.handle, dst.handle),
            *(*g.steps(), attr or lib.attr),
        )

    def of_data(self) -> int:
        """Of the gradient of its data."""
        lib, g = self.lib, self.g
        with lib.hinting(self.forward(strided=True)) as hint:
            descs = self._descs(True)
            return lib.new(
                "convolution_backward_data_primitive_desc_create",
                *(lib.engine, _DIRECT, *(d.handle for d in descs), *g.steps(), hint, lib.attr),
            )

    def of_weight(self, biased: bool) -> int:
        """Of the gradient of its weight, and of its bias, if there is one."""
        lib, g = self.lib, self.g
        with lib.hinting(self.forward()) as hint:
            src, weight, dst = self._descs(False, last=g.last and not (self.blocks and prod(g.weight[2:]) > 1))
            shift = self._shift(biased)
            return lib.new(
                "convolution_backward_weights_primitive_desc_create",
                *(lib.engine, _DIRECT, src.handle, weight.handle, shift and shift.handle, dst.handle),
                *(*g.steps(), hint, lib.attr),
            )


def _planned(
    lib: Library, g: Geometry, arrays: Sequence[Desc], add: Callable[[Plan, Maker], Any], steady: Collection[int] = ()
) -> Plan:
    """A plan over arrays: with blocks of channels if there is code for them, else as the library likes it."""
    for blocks in (True, False):
        plan = Plan(lib, arrays, steady)
        try:
            add(plan, Maker(lib, g, blocks))
            return plan.done()
        except Refused:
            if not blocks:
                raise
    raise AssertionError


def forward(lib: Library, g: Geometry, biased: bool) -> Plan:
    """Of data, weight, bias if there is one; the result is the last array."""
    arrays = [g.image(lib, g.src), g.dense(lib, g.grouped)]
    arrays += [*([g.dense(lib, g.dst[1:2])] if biased else []), g.image(lib, g.dst)]
    args = {SRC: 0, WEIGHTS: 1, **({BIAS: 2} if biased else {}), DST: len(arrays) - 1}
    return _planned(lib, g, arrays, lambda plan, made: plan.add(made.forward(biased), args), (1,))


def sums(lib: Library, g: Geometry, dtype: str, biased: bool = False) -> Plan:
    """Of data in eight bits, weight in int8, a bias in int32 if there is one; the result is int32.

    Between two layouts the library moves int32 by way of float32 at times, which rounds large numbers. What it sums up
    are channels last; these are moved as if they were float32, which no move changes.
    """
    kinds = [(g.src, dtype), (g.grouped, "int8"), *([(g.dst[1:2], "int32")] if biased else [])]
    src, weight = (Desc.any(lib, *kind) for kind in kinds[:2])
    channels, result = len(g.dst) - 1, len(kinds)
    order, last = (0, channels, *range(1, channels)), (g.dst[0], *g.dst[2:], g.dst[1])
    plan = Plan(lib, [*(Desc.dense(lib, *kind) for kind in kinds), Desc.dense(lib, g.dst)], (1,))
    shift = plan.arrays[2].desc.handle if biased else None
    place = plan.between(Desc.dense(lib, last, "int32", order))
    made = lib.new(
        "convolution_forward_primitive_desc_create",
        *(lib.engine, INFERENCE, _DIRECT, src.handle, weight.handle, shift, place.desc.handle, *g.steps(), lib.attr),
    )
    plan.add(made, {SRC: 0, WEIGHTS: 1, **({BIAS: 2} if biased else {}), DST: place})
    plan.move(place, Desc.dense(lib, last, order=order), result)
    return plan.done()


def backward(lib: Library, g: Geometry, wanted: tuple[bool, bool, bool]) -> Plan:
    """Of the gradient of the result, data, weight; then those of the wanted gradients, of data, weight and bias."""
    data, weight = g.image(lib, g.src), g.dense(lib, g.grouped)
    arrays = [g.image(lib, g.dst), data, weight]
    places: list[int] = []
    for desc, want in zip((data, weight, g.dense(lib, g.dst[1:2])), wanted):
        places.append(len(arrays))
        if want:
            arrays.append(desc)

    def add(plan: Plan, made: Maker) -> None:
        if wanted[1]:
            shift = {DIFF_BIAS: places[2]} if wanted[2] else {}
            plan.add(made.of_weight(wanted[2]), {SRC: 1, DIFF_DST: 0, DIFF_WEIGHTS: places[1], **shift})
        if wanted[0]:
            plan.add(made.of_data(), {DIFF_DST: 0, WEIGHTS: 2, DIFF_SRC: places[0]})

    return _planned(lib, g, arrays, add)


def forward_plan(g: Geometry, biased: bool) -> Plan | None:
    """The one of :func:`forward`, for the threads that there are; None if the library refuses it."""
    return plan_for(("convolution", g, biased), lambda lib: forward(lib, g, biased), g.work)


def backward_plan(g: Geometry, wanted: tuple[bool, bool, bool]) -> Plan | None:
    """The one of :func:`backward`, for the threads that there are; None if the library refuses it."""
    return plan_for(("gradient of convolution", g, wanted), lambda lib: backward(lib, g, wanted), g.work)


def transposed(lib: Library, g: Geometry) -> Plan:
    """Of an array like the result of a convolution, and its weight, to one like its data."""
    args = {DIFF_DST: 0, WEIGHTS: 1, DIFF_SRC: 2}
    arrays = [g.image(lib, g.dst), g.dense(lib, g.grouped), g.image(lib, g.src)]
    return _planned(lib, g, arrays, lambda plan, made: plan.add(made.of_data(), args), (1,))


def transposed_backward(lib: Library, g: Geometry, wanted: tuple[bool, bool]) -> Plan:
    """Of the gradient of what :func:`transposed` gave, what it took, the weight; then the wanted gradients of those."""
    data, weight = g.image(lib, g.dst), g.dense(lib, g.grouped)
    arrays = [g.image(lib, g.src), data, weight, *(d for d, want in zip((data, weight), wanted) if want)]

    def add(plan: Plan, made: Maker) -> None:
        if wanted[1]:
            plan.add(made.of_weight(False), {SRC: 0, DIFF_DST: 1, DIFF_WEIGHTS: len(arrays) - 1})
        if wanted[0]:
            plan.add(made.forward(), {SRC: 0, WEIGHTS: 2, DST: 3})

    return _planned(lib, g, arrays, add)
