"""Samples of the operators in :mod:`mxcore.ops.processes`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Ints, Sample, Values

__all__ = ["SAMPLES"]

_EVENTS = dict(grad=(True, True, True, True, True, False, False, True))


def _samples(n: int, length: int, marks: int, lengths: list[int], **kw: Any) -> Sample:
    return Sample(
        Values((n, marks), 0.5, 3.0),
        Values((marks,), 0.1, 0.6),
        Values((marks,), 0.5, 2.0),
        Values((n, marks), 0.0, 1.5),
        Values((n, length), 0.1, 2.0),
        Ints((n, length), 0, marks, "int32"),
        lengths,
        Values((n,), 2.0 * length, 2.5 * length),
        **_EVENTS,
        **kw,
    )


SAMPLES = {
    "_contrib_hawkesll": [
        _samples(3, 5, 2, [5, 2, 0]),
        _samples(1, 4, 3, [4]),
        _samples(4, 1, 1, [1, 1, 0, 1]),
        _samples(2, 7, 3, [7, 4]),
    ],
    "_contrib_backward_hawkesll": [
        Sample((2,), (2, 2), *_samples(2, 3, 2, [3, 2]).inputs, grad=False, mxnet="internal")
    ],
    "_contrib_quadratic": [
        Sample((2, 3), params={"a": 3.0, "b": -5.0, "c": 1.5}),
        Sample((2, 3)),
        Sample((2, 3), params={"b": 0.5}, dtypes="float16 float32 float64"),
        Sample(np.array([-2, 0, 3, 200], np.int32), params={"a": 3.0, "b": 5.0, "c": 1.5}, grad=False),
        Sample((0, 3), params={"a": 1.0}),
    ],
    "_contrib_backward_quadratic": [Sample((2, 3), (2, 3), params={"a": 3.0, "b": -5.0, "c": 1.5}, mxnet="internal")],
}
