"""Sequences of different lengths in one array: mask, last step, reverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import merge_dtype, merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...elementwise import wrapped
from ...parameters import Bool, Float, Int
from ...typing import Array, Call, Operators
from ..common.rules import within_limits

__all__: list[str] = []


_INPUTS = "data sequence_length[use_sequence_length]"
SEQUENCE_PARAMS = {"use_sequence_length": Bool(False), "axis": Int(0, ge=0, le=1)}


def _inputs(p: Params, data: Any, lengths: list[Any]) -> tuple[Any, list[Any]]:
    """The shapes of the data and of the lengths, if there are any, as far as each tells the other."""
    if data is None:
        return None, lengths
    if len(data) < 2:
        raise ValueError(f"data {data} must have at least two dimensions, time and batch")
    batch = data[1 - p.axis]
    for given in lengths:
        if given is not None and (len(given) != 1 or -1 not in (batch, *given) and given[0] != batch):
            raise ValueError(f"sequence_length {given} must hold one length for each sequence of data {data}")
        batch = max(batch, given[0]) if given else batch
    return tuple(batch if i == 1 - p.axis else d for i, d in enumerate(data)), [(batch,)] * len(lengths)


def _same(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, lengths = _inputs(p, merge_shape(ins[0], outs[0]), ins[1:])
    return [data, *lengths], [data]


def _as_data(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """The dtype of the data; lengths may have another, and have the same if nothing else is known of them."""
    t = merge_dtype(ins[0], outs[0])
    return [t, *(t if n is None else n for n in ins[1:])], [t]


def _per_sequence(p: Params, x: Any, ndim: int) -> Any:
    """One whole number per sequence, shaped to broadcast with the data."""
    return x.reshape(tuple(-1 if i == 1 - p.axis else 1 for i in range(ndim)))


def _lengths(lengths: Any, low: int, steps: int) -> Any:
    """The lengths as whole numbers, if they lie between `low` and the number of steps."""
    n = lengths.astype(np.int64)
    within_limits("sequence_length", n, low, steps, "a length")
    return n


def _times(xp: Any, p: Params, data: Any) -> Any:
    """The time of each step, shaped to broadcast with the data."""
    return xp.arange(data.shape[p.axis]).reshape(tuple(-1 if i == p.axis else 1 for i in range(data.ndim)))


def on_gradient(F: Operators, name: str, p: Params, dy: Any, lengths: Any) -> Any:
    """Apply a linear operator of this family to the gradient."""
    inputs = (dy, lengths) if p.use_sequence_length else (dy,)
    return getattr(F, name)(*inputs, use_sequence_length=p.use_sequence_length, axis=p.axis), None


@op(
    "SequenceMask",
    inputs=_INPUTS,
    labels="inputs gradients outputs",
    use_sequence_length=Bool(False),
    value=Float(0.0),
    axis=SEQUENCE_PARAMS["axis"],
    grad=lambda F, p, dy, sequence_length: on_gradient(F, "SequenceMask", p, dy, sequence_length),
)
def sequence_mask(k: Call, p: Params, data: Array, sequence_length: Array = None) -> Array:
    """Overwrite what lies beyond the end of each sequence.

    Parameters
    ----------
    data : array, (time, batch, ...)
    sequence_length : array, (batch,)
        Length of each sequence.
    use_sequence_length : bool
        Whether there are lengths; without them nothing is overwritten.
    axis : {0, 1}
        The axis of time; the other one is that of the batch.
    value : float
        What to write.
    """
    if sequence_length is None:
        return data.copy()
    inside = _times(k.xp, p, data) < _per_sequence(p, sequence_length.astype(np.int64), data.ndim)
    return k.xp.where(
        inside, data, data.dtype.type(p.value) if data.dtype.kind not in "iub" else wrapped(p.value, data.dtype)
    )


sequence_mask.shape(_same)
sequence_mask.dtype(_as_data)


def last_index(xp: Any, p: Params, shape: tuple[int, ...], lengths: Any) -> Any:
    """Index of the last steps: a tuple over time and batch."""
    n = shape[p.axis]
    if lengths is None:
        return (slice(None),) * p.axis + (n - 1,)
    at = _lengths(lengths, 1, n) - 1
    batch = xp.arange(shape[1 - p.axis])
    return (at, batch) if p.axis == 0 else (batch, at)


@op(
    "SequenceLast",
    inputs=_INPUTS,
    labels="inputs gradients outputs",
    **SEQUENCE_PARAMS,
    grad=lambda F, p, dy, like_data, sequence_length: (
        F._sequence_last_spread(
            dy,
            like_data,
            *((sequence_length,) if p.use_sequence_length else ()),
            use_sequence_length=p.use_sequence_length,
            axis=p.axis,
        ),
        None,
    ),
)
def sequence_last(k: Call, p: Params, data: Array, sequence_length: Array = None) -> Array:
    """The last step of each sequence.

    Parameters
    ----------
    data : array, (time, batch, ...)
    sequence_length : array, (batch,)
        Length of each sequence, at least 1.
    use_sequence_length : bool
        Whether there are lengths; without them the last step of all is taken.
    axis : {0, 1}
        The axis of time; the other one is that of the batch.
    """
    return data[last_index(k.xp, p, data.shape, sequence_length)]


def last_shape(p: Params, ins: list[Any]) -> tuple[list[Any], Any]:
    """The shapes of the inputs, and that of one step of the data."""
    data, lengths = _inputs(p, ins[0], ins[1:])
    if data is None:
        return [data, *lengths], None
    if not data[p.axis]:
        raise ValueError(f"data {data} has no steps")
    return [data, *lengths], (data[1 - p.axis], *data[2:])


@sequence_last.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    found, out = last_shape(p, ins)
    return found, [out]


sequence_last.dtype(_as_data)


@op(
    "SequenceReverse",
    inputs=_INPUTS,
    labels="inputs gradients outputs",
    **SEQUENCE_PARAMS,
    grad=lambda F, p, dy, sequence_length: on_gradient(F, "SequenceReverse", p, dy, sequence_length),
)
def sequence_reverse(k: Call, p: Params, data: Array, sequence_length: Array = None) -> Array:
    """Each sequence backwards; what lies beyond its end stays.

    Parameters
    ----------
    data : array, (time, batch, ...)
    sequence_length : array, (batch,)
        Length of each sequence.
    use_sequence_length : bool
        Whether there are lengths; without them all steps are reversed.
    axis : {0, 1}
        The axis of time; the other one is that of the batch.
    """
    xp = k.xp
    if sequence_length is None:
        return xp.flip(data, p.axis).copy()
    steps = _times(xp, p, data)
    lengths = _per_sequence(p, _lengths(sequence_length, 0, data.shape[p.axis]), data.ndim)
    source = xp.where(steps < lengths, lengths - 1 - steps, steps)
    batch = xp.arange(data.shape[1 - p.axis]).reshape(-1, 1) if p.axis else xp.arange(data.shape[1])
    source = source.reshape(source.shape[:2])
    return data[(batch, source) if p.axis else (source, batch)]


sequence_reverse.shape(_same)
sequence_reverse.dtype(_as_data)
