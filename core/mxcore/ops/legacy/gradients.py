"""Gradients of the operators of :mod:`mxcore.ops.legacy`."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...typing import Array, Call
from ..common.bodies import wide
from ..common.rules import fits, size_of
from ..convolution.windows import windows
from .operators import POOLING_PARAMS, padded_data, pooling_geometry, pooling_v1

__all__: list[str] = []


@op("_backward_Pooling_v1", inputs="dy data out", **POOLING_PARAMS)
def backward_pooling_v1(k: Call, p: Params, dy_: Array, data: Array, out: Array) -> Array:
    """Gradient of `Pooling_v1` with respect to its data.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data, out : array
        The input, and what the forward pass returned.
    kernel, pool_type, global_pool, pooling_convention, stride, pad
        As in `Pooling_v1`.
    """
    xp, x, y, dy = k.xp, wide(data), wide(out), wide(dy_)
    g, size = pooling_geometry(p, x.shape)
    if not x.size:
        return xp.zeros(x.shape, x.dtype)
    if p.pool_type == "avg":
        dy = dy / dy.dtype.type(size_of(g.kernel))
    most = p.pool_type == "max"
    full = padded_data(xp, p, x, g, size, -xp.inf if most else 0)
    dx = xp.zeros_like(full)
    for _, see in windows(g, size):
        at = (slice(None), slice(None), *see)
        dx[at] += dy * (full[at] == y) if most else dy
    return xp.ascontiguousarray(dx[(slice(None),) * 2 + tuple(slice(q, q + n) for q, n in zip(g.pad, x.shape[2:]))])


def _pooled_back(p: Params, ins: list[Any]) -> Any:
    size = pooling_v1.shape_rule(p, ins[1:2], [None])[1][0]
    fits("dy data out", ins, [size, ins[1], size])
    return [ins[1]]


backward_pooling_v1.shape(_pooled_back)

for _op in (backward_pooling_v1,):
    _op.cost(lambda p, ins, outs: size_of(ins[0]) * (size_of(p.kernel) + 1))
