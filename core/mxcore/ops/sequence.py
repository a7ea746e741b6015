"""Sequences of different lengths in one array: mask, last step, reverse."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._core.op import op
from .._core.params import Bool, Float, Int
from ..testing.sample import Sample
from .rules import first_dtype

__all__: list[str] = []

_INPUTS = "data sequence_length[use_sequence_length]"
_PARAMS = {"use_sequence_length": Bool(False), "axis": Int(0, ge=0, le=1)}
_LENGTHS = np.array([1.0, 3.0])


def _samples(**more: Any) -> list[Sample]:
    return [Sample((3, 2, 2), _LENGTHS, params={"use_sequence_length": True, **more}, grad=(True, False)),
            Sample((2, 3), np.array([0.0, 2.0, 1.0]), params={"use_sequence_length": True, **more}, grad=(True, False), mxnet="a length of 0"),
            Sample((3, 2), params=more, mxnet="without lengths its gradient may crash")]


def _checked(p: Any, ins: list[Any]) -> tuple[int, int]:
    """Axes of time and batch."""
    data = ins[0]
    if len(data) < 2:
        raise ValueError(f"data {data} must have at least two dimensions, time and batch")
    batch = data[1 - p.axis]
    if p.use_sequence_length and ins[1] != (batch,):
        raise ValueError(f"sequence_length {ins[1]} must hold one length for each of the {batch} sequences")
    return p.axis, 1 - p.axis


def _same(p: Any, ins: list[Any]) -> list[Any]:
    _checked(p, ins)
    return [ins[0]]


def _per_sequence(p: Any, x: Any, ndim: int) -> Any:
    """One number per sequence, shaped to broadcast with the data."""
    return x.astype(np.int64).reshape(tuple(-1 if i == 1 - p.axis else 1 for i in range(ndim)))


def _times(xp: Any, p: Any, data: Any) -> Any:
    """The time of each step, shaped to broadcast with the data."""
    return xp.arange(data.shape[p.axis]).reshape(tuple(-1 if i == p.axis else 1 for i in range(data.ndim)))


def _again(F: Any, name: str, p: Any, dy: Any, lengths: Any) -> Any:
    """Apply a linear operator of this family to the gradient."""
    inputs = (dy, lengths) if p.use_sequence_length else (dy,)
    return getattr(F, name)(*inputs, use_sequence_length=p.use_sequence_length, axis=p.axis), None


@op("SequenceMask", inputs=_INPUTS, **_PARAMS, value=Float(0.0), samples=_samples() + [Sample(
        (2, 3), _LENGTHS, params={"use_sequence_length": True, "axis": 1, "value": -1.0}, grad=(True, False))],
    grad=lambda F, p, dy, sequence_length: _again(F, "SequenceMask", p, dy, sequence_length))
def sequence_mask(k, p, data, sequence_length=None):
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
    inside = _times(k.xp, p, data) < _per_sequence(p, sequence_length, data.ndim)
    return k.xp.where(inside, data, data.dtype.type(p.value))


sequence_mask.shape(_same)
sequence_mask.dtype(first_dtype)


def _last(xp: Any, p: Any, shape: tuple[int, ...], lengths: Any) -> Any:
    """Index of the last steps: a tuple over time and batch."""
    n = shape[p.axis]
    if lengths is None:
        return (slice(None),) * p.axis + (n - 1,)
    at = xp.clip(lengths.astype(np.int64) - 1, 0, n - 1)
    batch = xp.arange(shape[1 - p.axis])
    return (at, batch) if p.axis == 0 else (batch, at)


@op("SequenceLast", inputs=_INPUTS, **_PARAMS, samples=_samples() + [Sample(
        (2, 3, 2), _LENGTHS, params={"use_sequence_length": True, "axis": 1}, grad=(True, False))],
    grad=lambda F, p, dy, like_data, sequence_length: (F._sequence_last_spread(
        dy, like_data, *((sequence_length,) if p.use_sequence_length else ()), use_sequence_length=p.use_sequence_length, axis=p.axis), None))
def sequence_last(k, p, data, sequence_length=None):
    """The last step of each sequence.

    Parameters
    ----------
    data : array, (time, batch, ...)
    sequence_length : array, (batch,)
        Length of each sequence; a length of 0 counts as 1.
    use_sequence_length : bool
        Whether there are lengths; without them the last step of all is taken.
    axis : {0, 1}
        The axis of time; the other one is that of the batch.
    """
    return data[_last(k.xp, p, data.shape, sequence_length)]


@sequence_last.shape
def _(p, ins):
    time, batch = _checked(p, ins)
    if not ins[0][time]:
        raise ValueError(f"data {ins[0]} has no steps")
    return [(ins[0][batch], *ins[0][2:])]


sequence_last.dtype(first_dtype)


@op("_sequence_last_spread", inputs="data like~ sequence_length[use_sequence_length]", **_PARAMS, samples=[Sample(
        (2, 2), (3, 2, 2), _LENGTHS, params={"use_sequence_length": True}, grad=(True, False, False), mxnet="internal")],
    grad=lambda F, p, dy, sequence_length: (_again(F, "SequenceLast", p, dy, sequence_length)[0], None, None))
def sequence_last_spread(k, p, data, like, sequence_length=None):
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
    out[_last(k.xp, p, shape, sequence_length)] = data
    return out


sequence_last_spread.shape(lambda p, ins: [ins[1]])
sequence_last_spread.dtype(first_dtype)


@op("SequenceReverse", inputs=_INPUTS, **_PARAMS, samples=_samples(),
    grad=lambda F, p, dy, sequence_length: _again(F, "SequenceReverse", p, dy, sequence_length))
def sequence_reverse(k, p, data, sequence_length=None):
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
    lengths = xp.minimum(_per_sequence(p, sequence_length, data.ndim), data.shape[p.axis])
    source = xp.where(steps < lengths, lengths - 1 - steps, steps)
    batch = xp.arange(data.shape[1 - p.axis]).reshape(-1, 1) if p.axis else xp.arange(data.shape[1])
    source = source.reshape(source.shape[:2])
    return data[(batch, source) if p.axis else (source, batch)]


sequence_reverse.shape(_same)
sequence_reverse.dtype(first_dtype)
