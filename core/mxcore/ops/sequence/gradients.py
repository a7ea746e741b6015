"""Gradients of the operators of :mod:`mxcore.ops.sequence`."""

from __future__ import annotations

from typing import Any

from ..._core.op import op
from ..._core.params import Params
from ...typing import Array, Call
from ..common.rules import first_dtype
from .operators import SEQUENCE_PARAMS, last_index, last_shape, on_gradient

__all__: list[str] = []


@op(
    "_sequence_last_spread",
    inputs="data like~ sequence_length[use_sequence_length]",
    **SEQUENCE_PARAMS,
    grad=lambda F, p, dy, sequence_length: (on_gradient(F, "SequenceLast", p, dy, sequence_length)[0], None, None),
)
def sequence_last_spread(k: Call, p: Params, data: Array, like: Array, sequence_length: Array = None) -> Array:
    """Zeros like `like` with `data` at the last steps: the gradient of `SequenceLast`.

    Parameters
    ----------
    data : array, (batch, ...)
    like : array, (time, batch, ...)
        Only its shape is used.
    sequence_length : array, (batch,)
    use_sequence_length, axis
        As in `SequenceLast`.
    """
    shape = tuple(like.shape)
    out = k.xp.zeros(shape, data.dtype)
    out[last_index(k.xp, p, shape, sequence_length)] = data
    return out


@sequence_last_spread.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    want = last_shape(p, ins[1:])[1]
    if ins[0] != want:
        raise ValueError(f"data {ins[0]} must have the shape of the last steps, {want}")
    return [ins[1]]


sequence_last_spread.dtype(first_dtype)
