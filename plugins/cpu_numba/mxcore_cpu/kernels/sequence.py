"""Steps of sequences: overwriting those beyond an end."""

from __future__ import annotations

import numpy as np

from ..jit import kernel
from ..typing import Array, Scalar
from ._arrays import flat, writable
from .columns import copy, fill

__all__ = ["mask_steps"]


@kernel(threshold=1 << 15)
def _mask(
    first: int, last: int, second: int, width: int, time_first: bool, lengths: Array, value: Scalar, x: Array, y: Array
) -> None:
    other = y.dtype.type(value)
    for i in range(first, last):
        step, sequence = (i // second, i % second) if time_first else (i % second, i // second)
        if step < lengths[sequence]:
            copy(x, i * width, width, y, i * width)
        else:
            fill(y, i * width, width, other)


def mask_steps(data: Array, lengths: Array, out: Array, *, axis: int, value: float) -> None:
    """Copy the steps before the end of each sequence and write `value` beyond.

    Parameters
    ----------
    data, out : ndarray (time, batch, ...), or (batch, time, ...) with `axis` 1
    lengths : ndarray (batch,)
        Fractions are cut.
    axis : {0, 1}
        The axis of time.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 SequenceMask.

    Examples
    --------
    >>> out = np.empty((2, 2))
    >>> mask_steps(np.ones((2, 2)), np.array([1, 2]), out, axis=0, value=0.0)
    >>> out
    array([[1., 1.],
           [0., 1.]])
    """
    if data.size == 0:
        return
    first, second = data.shape[:2]
    with writable(out) as (y,):
        _mask.run(
            _mask.workers(data.size),
            first * second,
            second,
            data.size // (first * second),
            axis == 0,
            np.ascontiguousarray(lengths, np.int64),
            float(value),
            flat(data),
            y.reshape(-1),
        )
