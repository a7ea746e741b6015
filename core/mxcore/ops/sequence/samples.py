"""Samples of the operators of :mod:`mxcore.ops.sequence`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Ints, Sample

__all__ = ["SAMPLES"]


_LENGTHS = np.array([1.0, 3.0])


def _samples(*axes: int, mxnet: Any = True, zero: bool = True, plain: Any = None, **more: Any) -> list[Sample]:
    """Lengths of every kind over all `axes`, `zero` too; `mxnet`, `plain`: of MXNet, and without lengths."""
    given = {"use_sequence_length": True, **more}

    def along(axis: int, time: int, batch: int, *rest: int) -> tuple[int, ...]:
        return (batch, time, *rest) if axis else (time, batch, *rest)

    return [
        sample
        for axis in axes
        for sample in (
            Sample(
                along(axis, 3, 2, 2),
                _LENGTHS,
                params={**given, "axis": axis},
                grad=(True, False),
                dtypes="float16 float32 float64",
                mxnet=mxnet,
            ),
            Sample(
                along(axis, 4, 3),
                np.array([4, 2, 1], "int32"),
                params={**given, "axis": axis},
                grad=(True, False),
                mxnet=mxnet,
            ),
            Sample(
                along(axis, 2, 3),
                [0 if zero else 1, 2, 1],
                params={**given, "axis": axis},
                grad=(True, False),
                mxnet=mxnet,
            ),
            Sample(
                along(axis, 3, 4),
                [1.5, 0.5, 2.75, 3.0] if zero else [1.5, 2.0, 2.75, 1.25],
                params={**given, "axis": axis},
                grad=(True, False),
                mxnet=mxnet,
            ),
            Sample(along(axis, 1, 2, 1, 3), [1, 1], params={**given, "axis": axis}, grad=(True, False), mxnet=mxnet),
            Sample(along(axis, 3, 2), params={"axis": axis, **more}, mxnet=plain or mxnet),
            Sample(
                along(axis, 3, 0, 2), Ints((0,), 1, 3), params={**given, "axis": axis}, grad=(True, False), mxnet=mxnet
            ),
        )
    ]


SAMPLES = {
    "SequenceMask": _samples(0, 1)
    + _samples(1, value=-1.5)
    + [
        Sample(
            (3, 2),
            [1, 2],
            params={"use_sequence_length": "True", "axis": "0", "value": "7"},
            dtypes="int32 int64",
            grad=False,
        ),
        Sample(
            (3, 2),
            Ints((2,), 1, 3, "int32"),
            params={"use_sequence_length": True, "value": -300.7},
            dtypes="int8 uint8 int32",
            grad=False,
        ),
    ],
    "SequenceLast": _samples(0, 1, zero=False, plain="forward only: without lengths MXNet's gradient may crash"),
    "_sequence_last_spread": [
        Sample(
            (2, 2),
            (3, 2, 2),
            _LENGTHS,
            params={"use_sequence_length": True},
            grad=(True, False, False),
            mxnet="internal",
        )
    ],
    "SequenceReverse": _samples(0) + _samples(1, mxnet="axis 0 only"),
}
