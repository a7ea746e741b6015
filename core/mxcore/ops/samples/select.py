"""Samples of the operators in :mod:`mxcore.ops.select`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Ints, Sample

__all__ = ["SAMPLES"]

_OUTSIDE = np.array([[0, 5], [-1, 1]], np.int32)


_INF, _NAN = float("inf"), float("nan")


_HALVES, _WHOLE = "float16 float32 float64", "uint8 int8 int32 int64"


_SIZES = {"input_dim": 5, "output_dim": 3}


SAMPLES = {
    "take": [
        Sample((4, 3), Ints((2, 2), 0, 4)),
        Sample((2, 3, 4), _OUTSIDE, params={"axis": 1}),
        Sample((2, 3), _OUTSIDE, params={"axis": -1, "mode": "wrap"}),
        Sample((3, 2), Ints((2,), 0, 3), params={"mode": "raise"}),
        Sample((3, 2), Ints((5,), 0, 3, dtype="int64"), dtypes=_HALVES),
        Sample((2, 3, 4), Ints((1, 2, 2), -9, 9, dtype="int32"), params={"axis": "-2", "mode": "wrap"}),
        Sample((7,), _OUTSIDE, params={"axis": 0}),
        Sample((2, 3), [0.0, 1.7, -0.4, 2.9], params={"axis": 1}, grad=(True, False)),
        Sample(Ints((4, 2), 0, 9), _OUTSIDE, dtypes=_WHOLE),
        Sample((3, 2), Ints((0, 2), 0, 1)),
        Sample((3, 0), Ints((2,), 0, 3)),
        Sample((1, 5), Ints((3,), -3, 3, dtype="int32"), params={"axis": 0, "mode": "wrap"}),
        Sample((5,), np.array([4, 4, 4, 0], np.uint8), params={"axis": "0", "mode": "clip"}),
    ],
    "_backward_take": [Sample((2, 2, 3), Ints((2, 2), 0, 4), (4, 3), mxnet="internal")],
    "Embedding": [
        Sample(Ints((2, 3), 0, 5), (5, 3), params=_SIZES, grad=(False, True)),
        Sample(Ints((4,), 0, 5), (5, 3), params={**_SIZES, "sparse_grad": True}, grad=(False, True)),
        Sample(np.array([1.7, -1.0, 9.0], np.float32), (5, 3), params=_SIZES, grad=(False, True)),
        Sample(
            Ints((2, 2, 2), 0, 5, dtype="int32"),
            (5, 3),
            params={**_SIZES, "dtype": "float64"},
            dtypes="float16 float32 float64",
            grad=(False, True),
        ),
        Sample(
            np.array([3, 3, 0, 3], np.int64),
            (5, 3),
            params={"input_dim": "5", "output_dim": "3", "sparse_grad": "False"},
            grad=(False, True),
        ),
        Sample(Ints((1,), 0, 1), (1, 1), params={"input_dim": 1, "output_dim": 1}, grad=(False, True)),
        Sample(Ints((2, 0), 0, 5), (5, 3), params=_SIZES, grad=(False, True)),
        Sample(Ints((3,), 0, 5), (5, 3), params={**_SIZES, "dtype": "float16"}, dtypes="float16", grad=(False, True)),
    ],
    "_backward_Embedding": [
        Sample((2, 2, 3), Ints((2, 2), 0, 5), (5, 3), params=_SIZES, mxnet="internal", grad=(True, False, False))
    ],
    "_contrib_boolean_mask": [
        Sample((3, 2), np.array([1, 0, 1])),
        Sample((2, 3), np.array([0, 1, 1]), params={"axis": 1}, mxnet="axis 0 only"),
        Sample((2, 3), np.array([0, 0])),
        Sample((4,), [0.0, 1.0, 0.5, -2.0], grad=(True, False)),
        Sample((3, 2, 2), np.array([1, 1, 1])),
        Sample((3, 2), np.array([0, 1, 1], np.int32), dtypes=_HALVES),
        Sample(Ints((3, 2), 0, 9), np.array([0, 1, 1], np.uint8), dtypes=_WHOLE),
        Sample((3, 2), np.array([0, 0, 1]), params={"axis": "0"}),
    ],
    "_backward_boolean_mask": [Sample((2, 2), (3, 2), np.array([1, 0, 1]), mxnet="internal")],
    "where": [
        Sample(np.array([[1, 0, 2], [0, 0, -1]]), (2, 3), (2, 3)),
        Sample(np.array([0.0, 1.0]), (2, 3), (2, 3), grad=(False, True, True)),
        Sample(np.zeros((0, 3)), (0, 3), (0, 3), grad=False),
        Sample(Ints((2, 1, 3), 0, 2), (2, 1, 3), (2, 1, 3), dtypes=_HALVES),
        Sample(np.array([1, 0, 2], np.int32), (3, 2, 2), (3, 2, 2)),
        Sample(np.array([[0, 1, 0]], np.uint8), Ints((1, 3), 0, 9), Ints((1, 3), 0, 9), dtypes=_WHOLE),
        Sample([_NAN, 0.0, -0.0, 0.3], (4,), (4,), grad=(False, True, True)),
        Sample([0.0, 1.0], [[_NAN, 1.0], [2.0, _NAN]], [[0.5, _INF], [_NAN, _NAN]], grad=False),
    ],
}
