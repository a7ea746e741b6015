"""Random numbers, made where they are wanted."""

from __future__ import annotations

import math

import numpy as np

from mxcore.plugin import Call, Params

from .common import Array, Outs, binds, helpers, rng_of

_WHOLE = frozenset(map(np.dtype, "i1 u1 i4 i8".split()))


def _decided(p: Params) -> bool:
    """Whether the shape does not depend on a graph's consumer."""
    return bool(p.shape) and all(p.shape)


def _wide(out: Array, value: float) -> float:
    """A parameter as the numbers of `out` are computed with."""
    with np.errstate(over="ignore"):
        return float(np.float64(value) if out.dtype == np.float64 else np.float32(value))


def _uniform(k: Call, p: Params, outs: Outs, *like: Array) -> None:
    helpers("_random_uniform").check((p.low, p.high))
    t = outs[0].dtype.type
    most = np.nextafter(t(p.high), t(p.low)) if p.low < p.high else math.inf  # the upper end comes by rounding only
    low, width = _wide(outs[0], p.low), _wide(outs[0], p.high - p.low)
    rng_of(k).numbers("uniform", outs[0], low, width, float(most))


def _normal(k: Call, p: Params, outs: Outs, *like: Array) -> None:
    helpers("_random_normal").check((p.loc, p.scale))
    rng_of(k).numbers("normal", outs[0], _wide(outs[0], p.loc), _wide(outs[0], p.scale))


for _name, _fill in {"uniform": _uniform, "normal": _normal}.items():
    binds(f"_random_{_name}", when=_decided)(_fill)
    binds(f"_random_{_name}_like")(_fill)


@binds("_random_randint", when=lambda p: _decided(p) and (p.dtype is None or p.dtype in _WHOLE))
def _randint(k: Call, p: Params, outs: Outs) -> None:
    helpers("_random_randint").check(p)
    rng_of(k).fill("integers", outs[0].dtype, outs[0].size, outs[0].size, outs[0], p.low, p.high - p.low)


@binds("Dropout", when=lambda p, data: p.p > 0)
def _dropout(k: Call, p: Params, outs: Outs, data: Array) -> None:
    out, mask = outs
    if not (k.is_train or p.mode == "always"):
        for place, value in ((out, data), (mask, 1)):
            if place is not None:
                place[...] = value
    elif not p.axes:
        rng_of(k).dropout(1 - p.p, mask, None if out is None else data, out)
    else:
        shape = tuple(1 if i in p.axes else n for i, n in enumerate(data.shape))
        if mask is None:
            mask = k.device.empty(shape, data.dtype, k.ctx.device_id)
        rng_of(k).dropout(1 - p.p, mask)
        if out is not None:
            k.xp.multiply(data, mask, out=out)
