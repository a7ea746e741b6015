"""Samples of the operators in :mod:`mxcore.ops.amp`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Ints, Sample, Values

__all__ = ["SAMPLES"]


SAMPLES = {
    "amp_cast": [
        Sample((2, 3), params={"dtype": "float64"}),
        Sample((2, 3), params={"dtype": "float16"}, grad=False),
        Sample(np.array([[1, 2]], np.int32), params={"dtype": "float16"}, grad=False),
        Sample((2, 3), params={"dtype": "float32"}, dtypes="float16 float32 float64", grad=False),
        Sample((5,), params={"dtype": "float16"}, dtypes="float16", grad=False),
        Sample(Ints((2, 3), 0, 9), params={"dtype": "float32"}, dtypes="uint8 int8 int32 int64"),
        Sample([[float("nan"), float("inf"), 6e4]], params={"dtype": "float16"}, grad=False),
        Sample((0, 2), params={"dtype": "float32"}, grad=False),
    ],
    "amp_multicast": [
        Sample(Values((2, 3), dtype="float16"), (2, 3), params={"num_outputs": 2, "cast_narrow": n})
        for n in (False, True)
    ]
    + [
        Sample(
            Values((2,), dtype=a),
            Values((1, 3), dtype=b),
            Values((2, 2), dtype=c),
            params={"num_outputs": 3, "cast_narrow": n},
        )
        for a, b, c, n in (("float64", "float16", "float32", "1"), ("float32", "float32", "float64", "False"))
    ]
    + [
        Sample((2, 3), Ints((2,), 0, 9, dtype="int32"), params={"num_outputs": "2"}),
        Sample((2, 3), params={"num_outputs": 1}),
        Sample((0, 3), (2,), params={"num_outputs": 2}),
        Sample((2, 3), (1, 3), params={"num_outputs": 2, "cast_narrow": "0"}),
    ],
}
