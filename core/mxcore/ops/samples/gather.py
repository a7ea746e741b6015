"""Samples of the operators in :mod:`mxcore.ops.gather`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Ints, Sample

__all__ = ["SAMPLES"]

_HALVES, _WHOLE = "float16 float32 float64", "uint8 int8 int32 int64"


_AT = np.array([[0, 1, 1], [1, 2, 2]])


_ONCE = np.array([[0, 1], [1, 2]])


SAMPLES = {
    "pick": [
        Sample((3, 4), np.array([0, 3, 7])),
        Sample((3, 4), np.array([0, -1, 2, 4]), params={"axis": 0, "mode": "wrap"}),
        Sample((2, 3, 2), Ints((2, 1, 2), 0, 3), params={"axis": 1, "keepdims": True}, grad=(True, False)),
        Sample((3, 4), Ints((3, 1), 0, 4), dtypes=_HALVES, grad=(True, False)),
        Sample((2, 3, 4), Ints((2, 4), -2, 5, dtype="int32"), params={"axis": "-2", "mode": "clip"}),
        Sample((2, 3, 4), Ints((3, 4), -5, 5, dtype="int64"), params={"axis": 0, "keepdims": "1", "mode": "wrap"}),
        Sample((5,), np.array([3], np.int32), params={"axis": 0}),
        Sample((3, 4), [0.9, 1.7, -0.6], grad=(True, False)),
        Sample(Ints((3, 4), 0, 9), Ints((3,), 0, 4), dtypes=_WHOLE),
        Sample((2, 1), np.array([5, -5])),
        Sample((0, 4), Ints((0,), 0, 4)),
        Sample((3, 4), Ints((3,), -9, 9), params={"axis": -1, "mode": "wrap"}, dtypes=_HALVES),
    ],
    "_backward_pick": [Sample((3,), (3, 4), np.array([0, 3, 7]), mxnet="internal", grad=(True, False, False))],
    "batch_take": [
        Sample((3, 4), np.array([0, 3, 2], np.int32)),
        *[Sample((3, 4), Ints(s, -1, 6, dtype="int32"), dtypes=_HALVES) for s in ((3,), (3, 1))],
        Sample(Ints((3, 4), 0, 9), np.array([0, 7, -2], np.int32), dtypes="uint8 int8 int32 int64"),
        Sample((1, 5), np.array([4], np.int32)),
        Sample((5, 1), Ints((5,), -3, 3, dtype="int32")),
        Sample((0, 4), Ints((0,), 0, 4, dtype="int32")),
    ],
    "fill_element_0index": [
        Sample((2, 3), (2,), np.array([0.0, 2.0]), grad=False),
        Sample((4, 3), (4,), [2.0, 0.0, 1.0, 1.0], grad=False),
        Sample((1, 1), (1,), [0.0], grad=False),
        Sample((3, 5), (3,), [4.9, 0.3, 2.5], grad=False),
        Sample((0, 3), (0,), Ints((0,), 0, 3), grad=False),
    ],
    "one_hot": [
        Sample(np.array([0.0, 2.0, -1.0, 5.0, 1.7]), params={"depth": 3}, grad=False, dtypes=_HALVES),
        Sample(Ints((2, 3), 0, 4), params={"depth": 4, "on_value": 2, "off_value": -1, "dtype": "int32"}, grad=False),
        Sample(
            Ints((3,), 0, 4, dtype="int32"), params={"depth": "4", "on_value": "0.25", "off_value": "0.5"}, grad=False
        ),
        Sample(Ints((2, 1, 2), 0, 3, dtype="int64"), params={"depth": 3, "dtype": "float16"}, grad=False),
        Sample(Ints((3,), 0, 9), params={"depth": 5, "dtype": "uint8"}, dtypes=_WHOLE),
        Sample(Ints((4,), 0, 3), params={"depth": 1, "dtype": "float64", "on_value": -3}, grad=False),
        Sample(Ints((0, 2), 0, 3), params={"depth": 2}, grad=False),
        Sample(Ints((2,), 0, 3), params={"depth": 3, "on_value": 3.7, "off_value": -1.5, "dtype": "int64"}, grad=False),
    ],
    "gather_nd": [
        Sample((2, 3), _AT),
        Sample((2, 3, 2), _AT),
        Sample((3, 2), np.array([[[0, 2], [1, 1]]])),
        Sample((2, 3, 2), np.array([[0, 1], [1, 2], [0, 1]], np.int32), dtypes=_HALVES),
        Sample((4,), np.array([[3, 0, 3, 3]], np.int64)),
        Sample((2, 3), [[0.0, 1.0], [2.0, 1.0]], grad=(True, False)),
        Sample((2, 3), np.array([[[0], [1]], [[1], [2]]])),
        Sample((2, 3), np.array([[-1, 0], [-3, -1]]), grad=(True, False), mxnet="forward only: its gradient aborts"),
        Sample(Ints((2, 3), 0, 9), _AT, dtypes=_WHOLE),
        Sample((2, 3), Ints((2, 0), 0, 2)),
        Sample((3, 0), Ints((1, 2), 0, 3)),
    ],
    "_backward_gather_nd": [
        Sample((3,), _AT, (2, 3), mxnet="internal"),
        Sample((3, 2), _AT, (2, 3, 2), mxnet="internal"),
    ],
    "scatter_nd": [
        Sample((2,), _ONCE, params={"shape": (2, 3)}),
        Sample((2, 2), np.array([[2, 0]]), params={"shape": (3, 2)}),
        Sample((2,), _ONCE.astype(np.int32), params={"shape": "(2, 3)"}, dtypes=_HALVES),
        Sample((2, 2), np.array([[[0, 1], [2, 3]]]), params={"shape": 5}),
        Sample((2, 2, 1), np.array([[0, 1], [1, 1]]), params={"shape": (2, 3, 2, 1)}),
        Sample((2,), [[0.0, 1.0], [2.0, 0.0]], params={"shape": (2, 3)}, grad=(True, False)),
        Sample(Ints((2,), 1, 9), _ONCE, params={"shape": (2, 3)}, dtypes=_WHOLE),
        Sample((0,), Ints((2, 0), 0, 2), params={"shape": (2, 3)}),
    ],
    "_scatter_set_nd": [Sample((2, 3), (2,), _ONCE, params={"shape": (2, 3)}, mxnet="in place only")],
    "_ravel_multi_index": [Sample(np.array([[1, 0], [2, 1]]), params={"shape": (2, 3)}, grad=False)]
    + [
        Sample(Ints(s, 0, 3), params={"shape": q}, grad=False, dtypes="int32 int64 float32 float64")
        for s, q in (
            ((2, 5), "(4, 3)"),
            ((3, 4), (5, 3, 3)),
            ((2, 3), (-1, 3)),
            ((1, 4), 3),
            ((2, 1), (3, 3)),
            ((2, 0), (3, 4)),
        )
    ]
    + [Sample(Ints((2, 2, 3), 0, 3), params={"shape": (3, 4)}, grad=False, mxnet="wrong for more than one dimension")],
    "_unravel_index": [
        Sample(np.array([5, 1, 4]), params={"shape": (2, 3)}, grad=False),
        Sample(
            np.array([[5, 1], [7, 2]]),
            params={"shape": (3, 2, 2)},
            grad=False,
            mxnet="wrong for more than one dimension",
        ),
    ]
    + [
        Sample(Ints((4,), 0, 12), params={"shape": q}, grad=False, dtypes="int32 int64 float32 float64")
        for q in ("(4, 3)", (3, 2, 2), (-1, 3), 12, (20, 1))
    ]
    + [Sample(Ints((0,), 0, 12), params={"shape": (4, 3)}, grad=False)],
    "_contrib_index_copy": [
        Sample((3, 2), np.array([2, 0], np.int32), (2, 2)),
        Sample((3, 2), np.array([1], np.int64), (1, 2), dtypes="float32 float64"),
        Sample((4,), np.array([3, 0, 1], np.int32), (3,), dtypes=_HALVES),
        Sample((2, 2, 3), np.array([1, 0], np.int32), (2, 2, 3)),
        Sample(Ints((3, 2), 0, 9), np.array([0, 1], np.int32), Ints((2, 2), 0, 9), dtypes=_WHOLE),
        Sample((3, 2), Ints((0,), 0, 3, dtype="int32"), (0, 2)),
    ],
    "_contrib_index_array": [
        Sample((2, 3), grad=False),
        Sample((2, 3, 2), params={"axes": (2, 0)}, grad=False),
        Sample((4,), grad=False),
        Sample((2, 3, 2), params={"axes": "(-1,)"}, grad=False, dtypes=_HALVES),
        Sample((2, 3), params={"axes": (0, 0)}, grad=False),
        Sample((2, 1, 3), params={"axes": 1}, grad=False),
        Sample(Ints((3, 2), 0, 5), params={"axes": "None"}, dtypes=_WHOLE),
        Sample((0, 3), grad=False),
    ],
}
