"""Samples of the operators in :mod:`mxcore.ops.facts`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Ints, Sample

__all__ = ["SAMPLES"]

_INF, _NAN = float("inf"), float("nan")


_SHAPES = [
    Sample((2, 3), grad=False, dtypes="float16 float32 float64"),
    Sample((5,), grad=False),
    Sample((2, 1, 3, 2), grad=False),
    Sample((0, 3), grad=False),
    Sample(Ints((4, 3), 0, 9), dtypes="uint8 int8 int32 int64"),
]


SAMPLES = {
    "shape_array": _SHAPES,
    "size_array": _SHAPES,
    "all_finite": [
        Sample((2, 3), grad=False),
        Sample([[1.0, float("nan")]], grad=False),
        Sample([[1.0, float("inf")]], grad=False),
        Sample((2, 3), params={"init_output": False}, grad=False, mxnet="the result depends on what the output held"),
        Sample([-float("inf")], params={"init_output": "1"}, grad=False),
        Sample((2, 3), grad=False, dtypes="float16"),
        Sample([65504.0, -65504.0], grad=False),
        Sample((2, 3, 2), params={"init_output": True}, grad=False),
        Sample((0, 3), grad=False),
    ],
    "multi_all_finite": [
        Sample((2, 3), (4,), params={"num_arrays": 2}, grad=False),
        Sample((2,), [float("inf")], params={"num_arrays": 2}, grad=False),
        Sample((3, 1), params={"num_arrays": "1"}, grad=False, dtypes="float16 float32 float64"),
        Sample((3,), (2,), (1, 4), params={"num_arrays": 3, "init_output": "True"}, grad=False),
        Sample((2,), [1.0, float("nan")], (3,), params={"num_arrays": 3}, grad=False),
        Sample((0, 3), (2,), params={"num_arrays": 2}, grad=False),
        Sample(
            (2,),
            (2,),
            params={"num_arrays": 2, "init_output": False},
            grad=False,
            mxnet="the result depends on what the output held",
        ),
    ],
    "_contrib_allclose": [
        Sample(
            *v, params=q, grad=False, mxnet="MXNet finds opposite infinities close" if v[0] == [_INF, -_INF] else True
        )
        for v, q in (
            (((2, 3), (2, 3)), {}),
            (([1.0, 2.0], [1.0, 2.0]), {}),
            (([1.0, 2.0], [1.001, 2.001]), {"rtol": 1e-2}),
            (([1.0, 2.0], [1.001, 2.001]), {"rtol": "0", "atol": "0.01"}),
            (([1.0, _NAN], [1.0, _NAN]), {}),
            (([1.0, _NAN], [1.0, _NAN]), {"equal_nan": False}),
            (([_INF, -_INF], [_INF, _INF]), {}),
            (((0, 3), (0, 3)), {}),
        )
    ],
    "_histogram": [
        Sample([0.5, 1.0, 2.0, 2.0, 3.0, 9.0, -1.0], params={"bin_cnt": 3, "range": (0, 3)}, grad=False),
        Sample([0.5, 1.0, 2.0, 2.0, 3.0, 9.0, -1.0], [0.0, 1.0, 2.5, 3.0], grad=False),
        Sample((3, 9), params={"bin_cnt": 7, "range": (-1.5, 1.25)}, grad=False),
        Sample((25,), params={"bin_cnt": "1", "range": "(-1, 1)"}, grad=False),
        Sample(
            Ints((4, 5), 0, 12),
            params={"bin_cnt": 4, "range": (0, 10)},
            dtypes="int32 int64 float32 float64",
            grad=False,
        ),
        Sample((5, 5), [-3.0, 3.0], grad=False),
        Sample([1.0, 1.0, 1.0], params={"bin_cnt": 3, "range": (1, 2)}, grad=False),
        Sample([0.7, 1.0, 1.3], params={"bin_cnt": 2, "range": (1, 1)}, grad=False),
        Sample([3.0, 4.0, 5.0, 6.5], [3.0, 4.0, 4.5, 5.0, 6.5], grad=False),
        Sample(Ints((9,), 0, 6), np.array([0.0, 2.0, 4.0]).astype(np.int32), dtypes="int32", grad=False),
        *[
            Sample(
                np.linspace(low, high, 4 * n + 1),
                params={"bin_cnt": n, "range": (low, high)},
                dtypes="float64",
                grad=False,
            )
            for low, high, n in ((0, 1, 10), (-1, 1, 7), (-0.3, 0.7, 10), (0.1, 0.9, 13))
        ],
        Sample(Ints((40,), -9, 9), params={"bin_cnt": 7, "range": (-8.5, 7.2)}, dtypes="int8 int32 int64", grad=False),
    ],
}
