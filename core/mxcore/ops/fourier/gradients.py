"""Gradients of the operators of :mod:`mxcore.ops.fourier`."""

from __future__ import annotations

from ..._core.op import op
from ..._core.params import Params
from ...typing import Array, Call
from .operators import SKETCH_PARAMS, sketch_columns

__all__: list[str] = []


@op(
    "_backward_count_sketch",
    inputs="dy h s",
    out_dim=SKETCH_PARAMS["out_dim"],
    grad=lambda F, p, dys, h, s: (F._contrib_count_sketch(dys[0], h, s, out_dim=p.out_dim), None, None),
)
def backward_count_sketch(k: Call, p: Params, dy_: Array, h: Array, s: Array) -> Array:
    """The gradient of `count_sketch`: ``out[:, i] = s[i] * dy[:, h[i]]``.

    Parameters
    ----------
    dy : array, (n, out_dim)
    h, s : array, (1, d) or (d,)
        As in `count_sketch`.
    out_dim : int
        Number of columns of `dy`.
    """
    at = sketch_columns(k, p, h)
    return dy_[:, at] * s.reshape(1, -1).astype(dy_.dtype)


backward_count_sketch.shape(lambda p, ins: [(ins[0][0], ins[1][-1])])

for _op in (backward_count_sketch,):
    # The hashes may come in a dtype of their own.
    _op.dtype(lambda p, ins, outs: ([ins[0] or outs[0], ins[1] or ins[0], ins[2] or ins[0]], [ins[0] or outs[0]]))
