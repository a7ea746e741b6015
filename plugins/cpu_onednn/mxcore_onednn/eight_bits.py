"""Layers over eight bits, where the processor sums products of them (VNNI), to the last integer.

Without these instructions the library adds up pairs of products in 16 bits, where large ones are cut off, and halves
weights beforehand: other numbers. With them its sums are exact in int32, but what is done to them at the end goes
through float32, which is exact below 2**24 alone: a bias, what signed data need, windows that are partly padding. Where
a sum can be larger, the library gets no bias, data that are padded, and signed ones as unsigned: 128 more each, for
which ``128 * sum(weight)`` is taken off again, here.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from mxcore.plugin import Call, Params, Spec, find_op

from . import convolution as conv
from .calls import PRIORITY, keeping, kept, kernels, otherwise, run, shaped, takes
from .convolution import Geometry
from .descs import DST, SRC, WEIGHTS, Desc
from .keeping import Kept
from .library import ISA_VNNI, Library, Refused, library
from .plan import Plan
from .plans import plan_for

__all__: list[str] = []

Shape = tuple[int, ...]
#: Names of the operators.
_CONVOLUTION, _DENSE = "_contrib_quantized_conv", "_contrib_quantized_fully_connected"
_EXACT = 1 << 24
#: From int8 to uint8.
_SHIFT = 1 << 7


def _sums() -> bool:
    """Whether the processor can, and nobody forbids it."""
    if os.environ.get("MXCORE_ONEDNN_INT8") == "0":
        return False
    lib = library()
    return lib is not None and any(lib.isa & bits == bits for bits in ISA_VNNI) and _whole()


# -- plans ----------------------------------------------------------------------------------------------------------
def _dense(lib: Library, rows: int, inputs: int, outputs: int) -> Plan:
    """Of uint8 (rows, inputs) and int8 (outputs, inputs) to int32 (rows, outputs)."""
    kinds = ((rows, inputs), "uint8"), ((outputs, inputs), "int8"), ((rows, outputs), "int32")
    data, weight, result = (Desc.dense(lib, *kind, order=(1, 0) if i == 1 else None) for i, kind in enumerate(kinds))
    liked = Desc.any(lib, (inputs, outputs), "int8")
    plan = Plan(lib, [data, weight, result], (1,))
    made = lib.new("matmul_primitive_desc_create", lib.engine, data.handle, liked.handle, None, result.handle, lib.attr)
    plan.add(made, {SRC: 0, WEIGHTS: 1, DST: 2})
    return _without_floats(plan.done())


def _without_floats(plan: Plan) -> Plan:
    """A plan of the library's products of small blocks, which write the sums of unsigned data as they are."""
    if not plan.codes[0].startswith("brg"):
        raise Refused(f"{plan.codes[0]}: its sums go through float32")
    return plan


def _dense_plan(rows: int, outputs: int, inputs: int) -> Plan | None:
    work = rows * inputs * outputs
    return plan_for(("bytes", rows, inputs, outputs), lambda lib: _dense(lib, rows, inputs, outputs), work)


def _large_plan(g: Geometry) -> Plan | None:
    """Of a convolution of unsigned data whose sums may be large."""
    return plan_for(("large sums", g), lambda lib: _without_floats(conv.sums(lib, g, "uint8")), g.work)


def _small_plan(g: Geometry, dtype: str, biased: bool) -> Plan | None:
    """Of a convolution whose sums are exact in float32."""
    return plan_for(("small sums", g, dtype, biased), lambda lib: conv.sums(lib, g, dtype, biased), g.work)


@functools.cache
def _whole() -> bool:
    """Whether sums beyond what float32 holds are what they should be: this is not promised, so the library is asked."""
    n = 1024
    data, weight = np.full((2, n), 255, np.uint8), np.full((16, n), 127, np.int8)
    weight[:, ::64] = np.arange(16)
    data[1, 1] = 254
    want = data.astype(np.int32) @ weight.T.astype(np.int32)
    one = 1, 1
    g = Geometry((2, n, *one), (16, n, *one), (2, 16, *one), one, (0, 0), one, 1)
    for plan in _dense_plan(2, 16, n), _large_plan(g):
        if plan is None:
            continue  # and none for any other
        found = np.empty((2, 16), np.int32)
        try:
            plan.run(data, weight, found)
        except Refused:
            return False
        if (found != want).any():
            return False
    return True


# -- kernels --------------------------------------------------------------------------------------------------------
def _constant(k: Call, held: Kept | None, weight: Any) -> Any:
    """What is to be added to each sum of unsigned data in place of signed ones."""
    stamp = None if held is None else held.stamps.get(1)
    values = {} if stamp is None else k.keep.values
    if values.get("constant", (None,))[0] != stamp or not values:
        values["constant"] = stamp, weight.reshape(weight.shape[0], -1).sum(1, dtype=np.int32) * np.int32(-_SHIFT)
    return values["constant"][1]


def _unsigned(data: Any) -> Any:
    return data.view(np.uint8) ^ np.uint8(_SHIFT)


def _padded(data: Any, pad: Sequence[int], zero: int) -> Any:
    """Data with what stands for zero around them."""
    if not any(pad):
        return data
    sizes = [m + 2 * b for m, b in zip(data.shape[2:], pad)]
    found: Any = np.full((*data.shape[:2], *sizes), zero, np.uint8)
    inside: tuple[Any, ...] = (..., *(slice(b, b + m) for m, b in zip(data.shape[2:], pad)))
    found[inside] = data
    return found


def _around(g: Geometry) -> Geometry:
    """The same convolution of data that are padded beforehand."""
    sizes = [m + 2 * b for m, b in zip(g.src[2:], g.pad)]
    return g._replace(src=(*g.src[:2], *sizes), pad=(0,) * len(g.pad))


@functools.lru_cache(512)
def _geometry(p: Params, data: Shape, weight: Shape) -> Geometry:
    return Geometry.of(p, data, weight, 1)


def _most(weight: Spec) -> int:
    """No sum of unsigned data, which signed ones are to the library, has a greater magnitude with such a weight."""
    products: int = prod(weight.shape[1:])
    return products * 255 * 128


def _eight_bits(data: Spec, weight: Spec) -> bool:
    return _sums() and takes([data], "int8 uint8") and takes([weight], "int8")


def _prepared(name: str, p: Params, outs: Sequence[Any], arrays: Sequence[Any]) -> Any:
    """Data, weight, bias in int32 or None; the range is written."""
    data, weight, bias, ends = find_op(name).facet("helpers").prepared(np, p, arrays)
    for out, value in zip(outs[1:], ends):
        if out is not None:
            out[...] = value
    return data, weight, bias


def _convolves(p: Params, data: Spec, weight: Spec, *rest: Spec) -> bool:
    if not _eight_bits(data, weight):
        return False
    dtype, g = data.dtype.name, _geometry(p, data.shape, weight.shape)
    if _most(weight) < _EXACT:
        return _small_plan(g, dtype, False) is not None
    return _large_plan(_around(g)) is not None


@kernels.kernel(_CONVOLUTION, when=_convolves, priority=PRIORITY, out=True)
@keeping
def _convolution(k: Call, p: Params, outs: Sequence[Any], *arrays: Any) -> None:
    data, weight, bias = _prepared(_CONVOLUTION, p, outs, arrays)
    if outs[0] is None:
        return
    g, most = _geometry(p, data.shape, weight.shape), _most(weight)
    added: list[Any] = []
    ins, signed = [data, weight], data.dtype == np.int8
    if most < _EXACT:
        inside = bias is not None and most + int(np.abs(bias).max(initial=0)) < _EXACT
        plan = _small_plan(g, data.dtype.name, inside)
        held = kept(k, plan)
        (ins if inside else added).append(bias)
    else:
        ins[0] = _padded(_unsigned(data) if signed else data, g.pad, _SHIFT if signed else 0)
        plan = _large_plan(_around(g))
        held = kept(k, plan)
        added += [bias, _constant(k, held, weight) if signed else None]
    if run(_CONVOLUTION, plan, ins, [outs[0]], otherwise(_CONVOLUTION, k, p, outs, *arrays), held):
        _add(outs[0], added, (-1, *[1] * (data.ndim - 2)))


def _multiplies(p: Params, data: Spec, weight: Spec, *rest: Spec) -> bool:
    if not _eight_bits(data, weight):
        return False
    return _dense_plan(data.size // weight.shape[1], *weight.shape) is not None


@kernels.kernel(_DENSE, when=_multiplies, priority=PRIORITY, out=True)
@keeping
def _fully_connected(k: Call, p: Params, outs: Sequence[Any], *arrays: Any) -> None:
    data, weight, bias = _prepared(_DENSE, p, outs, arrays)
    if outs[0] is None:
        return
    rows, signed = data.reshape(-1, weight.shape[1]), data.dtype == np.int8
    plan = _dense_plan(rows.shape[0], *weight.shape)
    held = kept(k, plan)
    added = [bias, _constant(k, held, weight) if signed else None]
    ins = [_unsigned(rows) if signed else rows, weight]
    with shaped(outs[0], (rows.shape[0], weight.shape[0])) as place:
        if run(_DENSE, plan, ins, [place], otherwise(_DENSE, k, p, outs, *arrays), held):
            _add(place, added, (-1,))
        else:  # which is no copy where the place is the output
            place[...] = outs[0].reshape(place.shape)


def _add(place: Any, added: Sequence[Any], shape: Shape) -> None:
    """In int32, where the library would not."""
    found = [a for a in added if a is not None]
    if found:
        place += sum(found[1:], found[0]).reshape(shape)
