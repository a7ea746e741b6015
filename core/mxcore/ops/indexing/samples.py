"""Samples of the operators of :mod:`mxcore.ops.indexing`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Ints, Sample
from . import numpy_samples

__all__ = ["SAMPLES"]


_PART = ("s", 1, 3, None)
_BACK = ("s", None, None, -2)
_ALL = ("s", None, None, None)


def _internal(*inputs: Any, index: Any) -> Sample:
    n = sum(isinstance(k, tuple) and k[0] == "a" for k in index)
    return Sample(*inputs, params={"index": index, **({"num_args": n} if n else {})}, mxnet="internal")


_I = np.array([[0, 2], [2, 0]])
_J = np.array([1, 3])

_OUTSIDE = np.array([[0, 5], [-1, 1]], np.int32)
_INF, _NAN = float("inf"), float("nan")
_HALVES, _WHOLE = "float16 float32 float64", "uint8 int8 int32 int64"
_SIZES = {"input_dim": 5, "output_dim": 3}
_ROWS = "forward only: its gradient is row_sparse"

_AT = np.array([[0, 1, 1], [1, 2, 2]])
_ONCE = np.array([[0, 1], [1, 2]])


SAMPLES = {
    "_basic_index": [
        _internal((4, 5), index=(_PART, 2)),
        _internal((4, 5), index=(None, 1, _BACK)),
        _internal((4, 0), index=(_PART,)),
        _internal((4, 5), index=()),
        _internal((4, 5, 2), index=(-1, _BACK, -2)),
        _internal((4, 5), index=(("s", -3, -1, None), None, ("s", 4, 0, -3))),
        _internal((3,), index=(None, 0, None)),
    ],
    "_basic_index_spread": [
        _internal((2,), (4, 5), index=(_PART, 2)),
        _internal((1, 2), (4, 3), index=(None, -1, _BACK)),
        _internal((4, 5), (4, 5), index=()),
    ],
    "_advanced_index": [
        _internal((3, 4), _I, index=(("a", 0),)),
        _internal((3, 2, 4), _I, _J, index=(("a", 0), ("s", None, None, -1), ("a", 1))),
        _internal((5,), np.array([-1, 0, -1]), index=(("a", 0),)),
        _internal((3, 4), Ints((2,), 0, 3), index=(("a", 0), 1)),
        _internal((3, 4), np.array([[1], [2]]), _J, index=(("a", 0), ("a", 1))),
        _internal((2, 3, 4), _J, index=(1, None, _BACK, ("a", 0))),
        _internal((3, 4), np.zeros((0, 2), np.int64), index=(("a", 0),)),
    ],
    "_advanced_index_spread": [
        _internal((2, 2, 4), (3, 4), _I, index=(("a", 0),)),
        _internal((3,), (5,), np.array([-1, 0, -1]), index=(("a", 0),)),
        _internal((2, 2), (3, 4), np.array([[1], [2]]), _J, index=(("a", 0), ("a", 1))),
    ],
    "_slice_set": [
        _internal((4, 5), (2, 5), index=(_PART,)),
        _internal((4, 5), (1,), index=(_BACK, 3)),
        _internal((4, 5), (4, 1), index=()),
        _internal((4, 5), (1, 5), index=(-1,)),
        _internal((4, 5, 2), (2, 1, 2), index=(("s", -2, None, None), ("s", 0, 2, None))),
    ],
    "_advanced_set": [
        _internal((3, 4), (2, 4), np.array([0, 2]), index=(("a", 0),)),
        _internal((3, 4), (1,), np.array([0, 2]), np.array([3, 1]), index=(("a", 0), ("a", 1))),
        _internal((3, 4), (3, 2), _J, index=(_ALL, ("a", 0))),
        _internal((3, 4), (2,), np.array([-1, 0]), index=(("a", 0), 2)),
        _internal((3, 4), (4, 4), np.array([2, 0, 2, 2]), index=(("a", 0),)),
    ],
    "_backward_advanced_set": [
        _internal((3, 4), np.array([0, 2]), index=(("a", 0),)),
        _internal((3, 4), np.array([2, 0, 2, 2]), index=(("a", 0),)),
        _internal((3, 4), np.array([0, 2, 0]), np.array([3, 1, 3]), index=(("a", 0), ("a", 1))),
        _internal((3, 4), _J, index=(_ALL, ("a", 0))),
    ],
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
    "_contrib_SparseEmbedding": [
        Sample(i, (5, 3), params={**_SIZES, **more}, grad=(False, True), mxnet=_ROWS)
        for i, more in (
            (Ints((2, 3), 0, 5), {}),
            (Ints((4,), 0, 5, dtype="int64"), {"sparse_grad": True}),
            (np.array([3, 3, 0], np.int32), {"dtype": "float32"}),
            (Ints((2, 0), 0, 5), {}),
        )
    ],
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
    "_contrib_backward_index_copy": [Sample((3, 2), np.array([2, 0], np.int32), mxnet="not callable by itself")],
    **numpy_samples.SAMPLES,
}
