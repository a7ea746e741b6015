"""Samples of the operators in :mod:`mxcore.ops.estimators`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Distinct, Sample

__all__ = ["SAMPLES"]

_AROUND_STEPS = [-2.5, -1.5, -0.5, 0.0, 0.3, 0.5, 1.5, 2.5]


_STRAIGHT = [
    Sample(_AROUND_STEPS, grad=False),
    Sample(Distinct((3, 4), -3.1, 2.9), grad=False, dtypes="float16 float32 float64"),
    Sample((0, 3), grad=False),
    Sample(np.array([-2, 0, 3], np.int32), grad=False),
]


SAMPLES = {
    "_contrib_gradientmultiplier": [
        Sample((2, 3), params={"scalar": -0.5}, grad=False),
        Sample((2, 3)),
        Sample(np.array([-2, 0, 3], np.int32), params={"scalar": 3}, grad=False),
        Sample((3, 1), params={"scalar": "0"}, grad=False, dtypes="float16 float32 float64"),
        Sample((0, 3), params={"scalar": 2.0}, grad=False),
    ],
    "_contrib_round_ste": _STRAIGHT,
    "_contrib_sign_ste": _STRAIGHT,
    "_contrib_backward_gradientmultiplier": [
        Sample((2, 3), params={"scalar": 2.5}, dtypes="float16 float32 float64"),
        Sample(np.array([-2, 0, 3], np.int32), params={"scalar": 3}, grad=False),
        Sample((0, 3), params={"scalar": "-1"}),
        Sample((5,), params={"scalar": -0.25}),
    ],
}
