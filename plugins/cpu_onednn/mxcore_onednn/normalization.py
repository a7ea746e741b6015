"""Layers of bfloat16 that normalize: channels by statistics that are known, and rows by their own."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from mxcore.plugin import Call, Params, Spec

from .calls import PRIORITY, alike, kernels, otherwise, run, takes
from .descs import DST, MEAN, SCALE, SHIFT, SRC, TRAINING, VARIANCE, Desc
from .functions import MUL, SRC_1, Then, attributes
from .halves import FORMS, compute
from .library import Library, library
from .plan import Plan
from .plans import plan_for
from .rules import narrows

__all__ = ["scaled"]

Shape = tuple[int, ...]
#: dnnl_use_scale and dnnl_use_shift.
_SCALE, _SHIFT = 2, 4
_BFLOAT16 = "bfloat16"


def _worth(data: Spec) -> bool:
    lib = library()
    return lib is not None and narrows(lib.isa, data.size)


# -- channels, with the statistics of earlier batches ----------------------------------------------------------------
@np.errstate(all="ignore")
def scaled(scale: Any, shift: Any, gamma: Any, beta: Any, mean: Any, var: Any, *, eps: float, plain: bool) -> None:
    """A normalization with fixed statistics as a factor and a term."""
    found = 1 / np.sqrt(var + np.float32(eps))
    if not plain:
        found *= gamma
    scale[...] = found.reshape(scale.shape)
    shift[...] = (beta - mean * found).reshape(shift.shape)


def _known(lib: Library, shape: Shape, column: Shape) -> Plan:
    """Of images, a factor and a term of their channels, which are a column of theirs, to images."""
    image, after = (Desc.dense(lib, shape, _BFLOAT16) for _ in range(2))
    scale, shift = (Desc.dense(lib, column) for _ in range(2))
    plan = Plan(lib, [image, scale, shift, after])
    with attributes(lib, [Then(term=plan.arrays[2])]) as (attr, args):
        made = lib.new("binary_primitive_desc_create", lib.engine, MUL, image.handle, scale.handle, after.handle, attr)
        plan.add(made, {SRC: 0, SRC_1: 1, **args, DST: 3})
    return plan.done()


def _known_plan(p: Params, shape: Shape) -> Plan | None:
    axis = p.axis % len(shape)
    before, channels, behind = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    args = ((before, channels), (1, channels)) if behind == 1 else ((before, channels, behind), (1, channels, 1))
    return plan_for(("normalized", *args), lambda lib: _known(lib, *args), 4 * prod(shape))


def _normalizes(p: Params, data: Spec, *vectors: Spec) -> bool:
    fits = takes([data], _BFLOAT16) and takes(vectors) and _worth(data)
    return fits and _known_plan(p, data.shape) is not None


@kernels.kernel("BatchNorm", when=_normalizes, priority=PRIORITY, out=True)
def _batch_norm(k: Call, p: Params, outs: Sequence[Any], data: Any, gamma: Any, beta: Any, *stats: Any) -> None:
    ins = data, gamma, beta, *stats
    if k.is_train and not p.use_global_stats:  # which nobody knows before the call
        if data.size < FORMS["BatchNorm"].least:
            otherwise("BatchNorm", k, p, outs, *ins)()
        else:
            compute("BatchNorm", k, p, outs, *ins)
        return
    scale, shift = np.empty_like(gamma), np.empty_like(gamma)
    scaled(scale, shift, *ins[1:], eps=p.eps, plain=p.fix_gamma)
    if outs[0] is not None:
        other = otherwise("BatchNorm", k, p, outs, *ins)
        run("BatchNorm", _known_plan(p, data.shape), [data, scale, shift], outs[:1], other)
    mean, var = stats
    for out, value in zip(outs[1:3], (mean, 1 / np.sqrt(var + np.float32(p.eps)))):
        if out is not None:
            out[...] = value


# -- rows -----------------------------------------------------------------------------------------------------------
def _own(lib: Library, rows: int, size: int, eps: float) -> Plan:
    """Of rows, scale and shift, to rows, and their means and variances."""
    data, after = (Desc.dense(lib, (rows, size), _BFLOAT16) for _ in range(2))
    stats = [Desc.dense(lib, (rows,)) for _ in range(2)]
    plan = Plan(lib, [data, *(Desc.dense(lib, (size,), _BFLOAT16) for _ in range(2)), after, *stats])
    scale, shift = (plan.laid(plan.arrays[i], Desc.dense(lib, (size,))) for i in (1, 2))
    made = lib.new(
        "layer_normalization_forward_primitive_desc_create",
        *(lib.engine, TRAINING, data.handle, after.handle, stats[0].handle, eps, _SCALE | _SHIFT, lib.attr),
    )
    plan.add(made, {SRC: 0, SCALE: scale, SHIFT: shift, DST: 3, MEAN: 4, VARIANCE: 5})
    return plan.done()


def _own_plan(p: Params, shape: Shape) -> Plan | None:
    args = prod(shape[:-1]), shape[-1], p.eps
    return plan_for(("normalized rows", *args), lambda lib: _own(lib, *args), 8 * prod(shape))


def _normalizes_rows(p: Params, data: Spec, *vectors: Spec) -> bool:
    fits = alike(data, *vectors) == _BFLOAT16 and p.axis in (-1, data.ndim - 1) and _worth(data)
    return fits and _own_plan(p, data.shape) is not None


@kernels.kernel("LayerNorm", when=_normalizes_rows, priority=PRIORITY, out=True)
def _layer_norm(k: Call, p: Params, outs: Sequence[Any], data: Any, gamma: Any, beta: Any) -> None:
    out = np.empty_like(data) if outs[0] is None else outs[0]
    mean, var = (np.empty((*data.shape[:-1], 1), np.float32) for _ in range(2))
    other = otherwise("LayerNorm", k, p, outs, data, gamma, beta)
    done = run("LayerNorm", _own_plan(p, data.shape), [data, gamma, beta], [out, mean, var], other)
    for place, value in zip(outs[1:], (mean, np.sqrt(var + np.float32(p.eps))) if done else ()):
        if place is not None:
            place[...] = value
