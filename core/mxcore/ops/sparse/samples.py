"""Samples of the operators of :mod:`mxcore.ops.sparse`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Ints, Sample

__all__ = ["SAMPLES"]


_MOVED = [
    Sample((2, 3), params={"scalar": 1.5}, dtypes="float16 float32 float64"),
    Sample((2, 3)),
    Sample((1, 5), params={"scalar": "-2", "is_int": False}),
    Sample(Ints((2, 3), 3, 9), params={"scalar": 2.6}, dtypes="uint8 int8 int32 int64"),
    Sample(Ints((2, 3), 3, 9), params={"scalar": 2.5, "is_int": False}, dtypes="int8 int64"),
    Sample((0, 3), params={"scalar": 2}),
]


SAMPLES = {
    "cast_storage": [
        Sample((3, 4), params={"stype": "default"}, grad=False),
        Sample([[0.0, 1.0], [0.0, 0.0], [2.0, 3.0]], params={"stype": "csr"}, grad=False),
        Sample([[0.0, 1.0], [0.0, 0.0], [2.0, 3.0]], params={"stype": "row_sparse"}, grad=False),
    ]
    + [
        Sample(*v, params={"stype": t}, grad=False)
        for t in ("default", "row_sparse", "csr")
        for v in ([np.zeros((3, 2))], [(1, 5)])
    ]
    + [
        Sample(
            np.arange(12.0).reshape(3, 2, 2) - 3,
            params={"stype": "row_sparse"},
            grad=False,
            dtypes="float16 float32 float64",
        ),
        Sample(Ints((3, 4), 0, 2), params={"stype": "csr"}, dtypes="uint8 int32 int64"),
        Sample((5,), params={"stype": "row_sparse"}, grad=False),
    ],
    "_sparse_retain": [
        Sample((4, 3), i, grad=False, mxnet="row_sparse input only")
        for i in (
            np.array([2.0, 0.0]),
            np.array([1], np.int32),
            np.array([0, 1, 2, 3], np.int64),
            np.array([2.0, 2.0]),
            np.zeros(0, np.int64),
        )
    ],
    "_contrib_getnnz": [
        Sample([[0.0, 1.0], [0.0, 0.0], [2.0, 3.0]], params=q, grad=False, mxnet="csr input only")
        for q in ({"axis": 1}, {"axis": 0}, {}, {"axis": "None"})
    ],
    "_scatter_elemwise_div": [
        Sample((2, 3), (2, 3), domain=(0.5, 2.0), dtypes="float16 float32 float64"),
        Sample((4, 1), (4, 1), domain=(-2.0, -0.5)),
        Sample((7,), (7,), domain=(0.5, 2.0)),
        Sample([[1.0, 0.0]], [[0.0, 0.0]], grad=False),
    ],
    "_scatter_plus_scalar": _MOVED,
    "_scatter_minus_scalar": _MOVED,
}
