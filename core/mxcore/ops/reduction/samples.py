"""Samples of the operators of :mod:`mxcore.ops.reduction`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Distinct, Ints, Sample, Values
from .numpy_samples import SAMPLES as _NUMPY

__all__ = ["SAMPLES"]


_HALVES = "float16 float32 float64"
_INF, _NAN = float("inf"), float("nan")
_SAMPLES = [
    Sample((2, 3, 4), dtypes=_HALVES),
    Sample((2, 3, 4), params={"axis": 1}),
    Sample((2, 3, 4), params={"axis": (0, 2), "keepdims": True}),
    Sample((2, 3, 4), params={"axis": 1, "exclude": True}),
    Sample((1, 5), params={"axis": -1}),
    Sample((2, 3, 4), params={"keepdims": True}, dtypes=_HALVES),
    Sample((2, 3, 4), params={"axis": (-1, 0)}, dtypes=_HALVES),
    Sample((2, 3, 2, 2), params={"axis": "(-2, 1)", "exclude": "1", "keepdims": "True"}),
    Sample((7,), params={"axis": 0}),
    Sample((3, 1, 2), params={"axis": "()", "keepdims": False}),
    Sample((2, 3), params={"axis": (0, 1)}),
    Sample((4, 3), params={"axis": "None"}),
]
_DISTINCT = [Sample(Distinct(s.inputs[0]), params=s.params, dtypes=" ".join(s.dtypes)) for s in _SAMPLES]
#: Whole numbers with ties, and arrays that hold nothing, of which a sum is 0 and a product 1.
_WHOLE = [
    Sample(Ints((3, 4), 1, 4), params=q, dtypes="uint8 int8 int32 int64")
    for q in ({"axis": 1}, {"axis": 0, "keepdims": True})
]
_NOTHING = [
    Sample((0, 3), params={"axis": 0}),
    Sample((2, 0), params={"axis": 0}),
    Sample((0, 3), params={"keepdims": True}),
]
#: Reductions over another axis than the one that holds nothing: results without elements.
_NONE = [Sample((0, 3), params={"axis": 1}), Sample((2, 0, 3), params={"axis": (0, 2), "keepdims": True})]
_TIES = [
    Sample([[2.0, 1.0, 2.0], [0.0, 0.0, -1.0]], params=q, grad=False, dtypes=_HALVES)
    for q in ({}, {"axis": 1}, {"axis": 0})
]
_EDGES = [Sample([[-_INF, 1.0, 2.0], [_INF, 0.5, -1.5]], params=q, grad=False) for q in ({"axis": 1}, {"axis": 0})]
_NANS = [
    Sample([[_NAN, 1.0, 2.0], [3.0, _NAN, -_INF], [-1.0, 0.0, _NAN]], params=q, grad=False)
    for q in ({"axis": 1}, {"axis": 0})
]
_HOLES = [
    Sample([[1.0, float("nan"), 2.0], [float("nan"), 0.5, -1.5]], params=q, grad=False) for q in ({}, {"axis": 1})
]
_PLACES = (
    [
        Sample(Distinct((2, 3, 4)), params=q, grad=False, dtypes=_HALVES)
        for q in ({}, {"axis": 1}, {"axis": -1, "keepdims": True})
    ]
    + [
        Sample(Distinct((2, 3)), params=q, grad=False)
        for q in ({"keepdims": True}, {"axis": "None"}, {"axis": "-2", "keepdims": "0"})
    ]
    + [
        Sample([[1.0, 3.0, 3.0], [0.0, 0.0, -1.0]], params={"axis": 1}, grad=False),
        Sample([[1.0, _INF, _INF], [-_INF, 0.0, -_INF]], params={"axis": 1}, grad=False),
        Sample([[1.0, _NAN, 3.0], [_NAN, 0.0, 5.0]], params={"axis": 1}, grad=False),
        Sample((1, 1), params={"axis": 0}, grad=False),
        Sample(Ints((3, 5), 0, 9), params={"axis": 1}, grad=False, dtypes="uint8 int8 int32 int64"),
        Sample(Distinct((5,)), params={"axis": 0}, grad=False),
        Sample((0, 3), params={"axis": 1}, grad=False),
    ]
)


SAMPLES = {
    **_NUMPY,
    "_spread": [
        Sample((2, 4), (2, 3, 4), params={"axis": 1}, mxnet="internal"),
        Sample((2, 1, 4), (2, 3, 4), params={"axis": 1, "mean": True}, mxnet="internal"),
        Sample((2, 4), (2, 3, 4), params={"axis": 1, "mean": True, "ddof": 1}, mxnet="internal"),
    ],
    "norm": [
        Sample((2, 3, 4)),
        Sample((2, 3, 4), params={"axis": (0, 2)}),
        Sample((2, 3, 4), params={"axis": -1, "keepdims": True}),
        Sample((2, 3), params={"ord": 1, "axis": 0}, domain=(0.3, 2.0)),
        Sample((2, 3), params={"ord": 1}, domain=(-2.0, -0.2)),
        Sample((2, 3, 4), params={"ord": "1", "axis": "(1, -1)", "keepdims": "1"}, domain=(0.3, 2.0)),
        Sample((2, 3, 4), params={"axis": (-2, 0)}),
        Sample((2, 3, 4), params={"keepdims": True}, dtypes=_HALVES),
        Sample((2, 3), params={"axis": 1}, dtypes=_HALVES),
        Sample((7,), params={"axis": "None"}),
        Sample((2, 3), params={"axis": 1, "out_dtype": "float64"}),
        Sample((2, 3), params={"axis": 1, "out_dtype": "float32"}, dtypes="float16", grad=False),
        Sample(Ints((2, 3), 0, 6), params={"ord": 1, "axis": 1}, dtypes="int32 int64"),
        Sample((0, 3), params={"axis": 0}),
        Sample([[3e18, -4e18], [0.0, 1.0]], params={"axis": 1}, grad=False),
        Sample([[3e30, -4e30], [1e-25, 0.0], [3.0, 4.0], [3e-21, 4e-21]], params={"axis": 1}, grad=False),
        Sample([3e30, 4e30], grad=False),
        Sample([[0.0, -3e-22], [4e-22, 0.0]], params={"keepdims": True}, grad=False),
        Sample([[_INF, 1.0], [_NAN, 1.0]], params={"axis": 1}, grad=False),
        Sample([[0.0, -2.0], [0.5, 0.0]], params={"ord": 1, "axis": 0}, grad=False),
    ],
    "_norm_grad": [
        Sample((2, 4), (2, 3, 4), Values((2, 4), 0.5, 2.0), params={"axis": 1}, mxnet="internal"),
        Sample((2, 1), (2, 3), Values((2, 1), 0.5, 2.0), params={"axis": 1}, mxnet="internal"),
        Sample((1,), (2, 3), Values((1,), 0.5, 2.0), mxnet="internal", dtypes=_HALVES),
    ],
    "_square_sum": [Sample((2, 3), params={"axis": 1}, mxnet="row_sparse input only")],
    "_backward_square_sum": [
        Sample((2,), (2, 3), params={"axis": 1}, mxnet="row_sparse input only"),
        Sample((2, 1), (2, 3), params={"axis": 1, "keepdims": True}, mxnet="row_sparse input only"),
        Sample((1,), (2, 3), mxnet="row_sparse input only"),
    ],
    "moments": [
        Sample((2, 3, 4), params={"axes": (0, 2)}),
        Sample((2, 3, 4), params={"axes": (1,), "keepdims": True}),
        Sample((2, 3, 4), params={"axes": -1}, dtypes=_HALVES),
        Sample((2, 3, 4), params={"axes": "(-3, 1, 2)"}),
        Sample((2, 1, 5), params={"axes": 1}),
        Sample((2, 3, 4), params={"axes": (2, 0), "keepdims": "True"}),
        Sample((9,), params={"axes": 0}, domain=(1e3, 1e3 + 1)),
        Sample((0, 3), params={"axes": 1}),
    ],
    "argmax_channel": [
        Sample(Distinct((2, 3)), grad=False, dtypes=_HALVES),
        Sample(Distinct((2, 3, 2)), grad=False),
        Sample(Ints((2, 7), 0, 3), dtypes="uint8 int32 int64"),
        Sample(Distinct((2, 3, 1, 2)), grad=False),
        Sample([[_NAN, 1.0], [2.0, _NAN], [_INF, _INF]], grad=False),
        Sample(Distinct((3, 1)), grad=False),
        Sample((0, 3), grad=False),
    ],
    "_np_cumsum": [
        Sample((2, 3), dtypes=_HALVES),
        Sample((2, 3, 2), params={"axis": 1}),
        Sample((2, 3), params={"axis": 0, "dtype": "float64"}),
        Sample((2, 3, 2), params={"axis": -1}),
        Sample((2, 3), params={"axis": "None", "dtype": "None"}),
        Sample((2, 3), params={"dtype": "float16"}, grad=False),
        Sample(Ints((2, 3), 0, 9), params={"axis": 1}, dtypes="int8 int32 int64"),
        Sample(Ints((2, 3), 0, 2), params={"axis": 1}, dtypes="bool"),
        Sample(Ints((2, 3), 0, 9), params={"axis": 1, "dtype": "float32"}, dtypes="int32"),
        Sample((2, 3), params={"axis": 1, "dtype": "int32"}, grad=False),
        Sample((0, 3), params={"axis": 1}),
        Sample([[1.0, _NAN, 2.0], [_INF, -_INF, 0.0]], params={"axis": 1}, grad=False),
    ],
    "sum": [*_SAMPLES, *_WHOLE, *_NOTHING, *_EDGES],
    "mean": [*_SAMPLES, *_WHOLE, *_EDGES, *_NONE],
    "prod": [
        *_SAMPLES,
        *_WHOLE,
        *_NOTHING,
        Sample(
            [[2.0, 0.0, 3.0], [0.0, 4.0, 0.0]],
            params={"axis": 1},
            mxnet="forward only: MXNet's gradient at zeros is NaN",
        ),
    ],
    "nansum": [*_SAMPLES, *_WHOLE, *_HOLES, *_NOTHING],
    "nanprod": [*_SAMPLES, *_WHOLE, *_HOLES, *_NOTHING],
    "max": [*_DISTINCT, *_WHOLE, *_TIES, *_EDGES, *_NANS, *_NONE],
    "min": [*_DISTINCT, *_WHOLE, *_TIES, *_EDGES, *_NANS, *_NONE],
    "argmax": _PLACES,
    "argmin": _PLACES,
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
