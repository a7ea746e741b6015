"""Layers over eight bits, where the processor sums products of them (VNNI).

Without these instructions the library adds up pairs of products in 16 bits, where large ones are cut off, and halves
weights beforehand: other numbers. With them its sums go through float32 at the end, which is exact below 2**24.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from mxcore.plugin import Call, Params, Spec, find_op

from . import convolution as conv
from .calls import PRIORITY, keeping, kept, kernels, otherwise, run, takes
from .convolution import Geometry
from .library import ISA_VNNI, library
from .plan import Plan, plan_for

__all__: list[str] = []

Shape = tuple[int, ...]
#: Names of the operators.
_CONVOLUTION, _DENSE = "_contrib_quantized_conv", "_contrib_quantized_fully_connected"
_EXACT = 1 << 24
#: The greatest magnitude of a number.
_LARGEST = {"int8": 1 << 7, "uint8": (1 << 8) - 1}


def _sums() -> bool:
    """Whether the processor can, and it was asked for: it has not been run on such a processor so far."""
    if os.environ.get("MXCORE_ONEDNN_INT8") != "1":
        return False
    lib = library()
    return lib is not None and any(lib.isa & bits == bits for bits in ISA_VNNI)


def _geometry(p: Params, data: Shape, weight: Shape) -> Geometry:
    return Geometry.of(p, data, weight, 1)


def _rows(p: Params, data: Shape, weight: Shape) -> Geometry:
    """A fully connected layer is a convolution of images of one pixel."""
    rows = prod(data) // weight[1]
    one = 1, 1
    return Geometry((rows, weight[1], *one), (*weight, *one), (rows, weight[0], *one), one, (0, 0), one, 1)


_GEOMETRIES = {_CONVOLUTION: _geometry, _DENSE: _rows}


def _plan(g: Geometry, dtype: str) -> Plan | None:
    return plan_for(("eight bits", g, dtype), lambda lib: conv.sums(lib, g, dtype), g.work)


def _register(name: str) -> None:
    geometry = _GEOMETRIES[name]

    def when(p: Params, data: Spec, weight: Spec, *rest: Spec) -> bool:
        dtype = data.dtype.name
        if not (_sums() and takes([data], "int8 uint8") and takes([weight], "int8")):
            return False
        if prod(weight.shape[1:]) * _LARGEST[dtype] * _LARGEST["int8"] >= _EXACT:
            return False
        return _plan(geometry(p, data.shape, weight.shape), dtype) is not None

    @kernels.kernel(name, when=when, priority=PRIORITY, out=True)
    @keeping
    def kernel(k: Call, p: Params, outs: Sequence[Any], *arrays: Any) -> None:
        data, weight, bias, ends = find_op(name).facet("helpers").prepared(np, p, arrays)
        for out, value in zip(outs[1:], ends):
            if out is not None:
                out[...] = value
        if outs[0] is None:
            return
        g = geometry(p, data.shape, weight.shape)
        plan, added = _plan(g, data.dtype.name), False
        instead = otherwise(name, k, p, outs, *arrays)

        def other() -> None:
            nonlocal added
            instead()
            added = True

        ins = [data.reshape(g.src), weight.reshape(g.weight)]
        run(name, plan, ins, [outs[0].reshape(g.dst)], other, kept(k, plan))
        if bias is not None and not added:  # in int32, as the library would not
            outs[0][...] += bias.reshape(-1, *[1] * (outs[0].ndim - 2)) if name == _CONVOLUTION else bias


for _name in (_CONVOLUTION, _DENSE):
    _register(_name)
