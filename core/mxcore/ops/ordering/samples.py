"""Samples of the operators of :mod:`mxcore.ops.ordering`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Distinct, Ints, Sample

__all__ = ["SAMPLES"]


_D = Distinct((3, 5))
_HALVES, _WHOLE = "float16 float32 float64", "uint8 int8 int32 int64"
_TIES = [[1.0, 0.0, 1.0, 0.0, 1.0], [2.0, 2.0, 2.0, 2.0, 2.0]]
_FAR = [[1.0, float("inf"), -float("inf"), 0.0, 2.0]]


SAMPLES = {
    "topk": [
        Sample(_D, params={"k": 2, "ret_typ": r}, grad=r in ("value", "both"))
        for r in ("value", "both", "indices", "mask")
    ]
    + [
        Sample(_D, params={"k": 2, "ret_typ": "value", "is_ascend": True, "axis": 0}),
        Sample(_D, params={"k": 4, "ret_typ": "value", "axis": None}),
        Sample(Distinct((2, 40)), params={"k": 3, "ret_typ": "value"}),
        Sample(_D, params={"k": 0, "dtype": "int32"}, grad=False),
        Sample(_D, params={"k": "2", "ret_typ": "both", "dtype": "int32", "axis": "0"}, grad=False),
        Sample(_D, params={"k": 3, "ret_typ": "both", "is_ascend": "1", "dtype": "int64"}),
        Sample(_D, params={"k": 3, "ret_typ": "mask", "axis": "None"}, grad=False),
        Sample(_D, params={"k": 2, "ret_typ": "mask", "axis": -2, "is_ascend": True}, grad=False),
        Sample(_D, params={"k": -1, "ret_typ": "value"}),
        Sample(Distinct((2, 3, 4)), params={"k": 2, "axis": 1, "ret_typ": "both"}),
        Sample(Distinct((2, 3, 4)), params={"k": 1, "axis": 0, "dtype": "float64"}, grad=False),
        Sample(_D, params={"k": 2, "dtype": "float16"}, grad=False),
        Sample(_D, params={"k": 4, "dtype": "uint8", "axis": None}, grad=False),
        Sample(Distinct((7,)), params={"ret_typ": "value", "k": 7}, dtypes=_HALVES),
        Sample(_FAR, params={"k": 4, "ret_typ": "both"}, grad=False),
        Sample(Ints((3, 5), 0, 100), params={"k": 2, "ret_typ": "value"}, dtypes=_WHOLE),
        Sample(_TIES, params={"k": 3, "ret_typ": "both"}, grad=False),
        Sample(_TIES, params={"k": 4, "ret_typ": "both", "is_ascend": True}, grad=False),
        Sample((1, 1), params={"k": 1}, grad=False),
        Sample((0, 3), params={"k": 2, "ret_typ": "value"}),
    ],
    "_order_spread": [Sample((2, 2), np.array([[0, 3], [2, 1]]), (2, 4), params={"axis": 1}, mxnet="internal")],
    "_order_pick": [Sample((2, 4), np.array([[0, 3], [2, 1]]), params={"axis": 1}, mxnet="internal")],
    "sort": [
        Sample(_D, params={"axis": -1}),
        Sample(_D, params={"axis": 0, "is_ascend": False}),
        Sample(_D, params={"axis": None}),
        Sample(Distinct((2, 3, 4)), params={"axis": "1"}),
        Sample(Distinct((2, 3, 4)), params={"axis": -3, "is_ascend": "0"}),
        Sample(Distinct((9,)), params={"axis": 0}, dtypes=_HALVES),
        Sample(_FAR, params={"axis": 1}, grad=False),
        Sample(Ints((3, 5), 0, 4), dtypes=_WHOLE),
        Sample(Ints((3, 5), 0, 9), params={"axis": "None", "is_ascend": False}, dtypes="uint8 int32 int64"),
        Sample(_TIES, params={"axis": 1}, grad=False),
        Sample(_TIES, params={"axis": -1, "is_ascend": False}, grad=False),
        Sample((1, 1), params={"axis": 0}),
        Sample((3, 1), params={"axis": 1}),
        Sample(_D, mxnet="forward only: no gradient unless the axis is given"),
        Sample((0, 3), params={"axis": 1}),
    ],
    "argsort": [
        Sample(_D, grad=False),
        Sample(_D, params={"axis": 0, "is_ascend": False, "dtype": "int32"}, grad=False),
        Sample(_D, params={"axis": None}, grad=False),
        Sample([[1.0, 0.0, 1.0, 0.0]], params={"is_ascend": False}, grad=False),
        Sample(_TIES, grad=False),
        Sample(_FAR, params={"axis": "-1", "is_ascend": "0"}, grad=False),
        Sample(Distinct((2, 3, 4)), params={"axis": 1, "dtype": "int64"}, grad=False),
        Sample(Distinct((2, 3, 4)), params={"axis": -3, "dtype": "float64"}, grad=False),
        Sample(Distinct((9,)), params={"axis": 0, "dtype": "uint8"}, grad=False, dtypes=_HALVES),
        Sample(_D, params={"dtype": "float16"}, grad=False),
        Sample(Ints((3, 5), 0, 99), params={"axis": 1}, dtypes=_WHOLE),
        Sample(_D, params={"axis": "None", "is_ascend": False, "dtype": "int32"}, grad=False),
        Sample((0, 3), params={"axis": 1}, grad=False),
    ],
    "_npi_unique": [
        Sample(Ints((3, 5), 0, 4), dtypes=f"{_WHOLE} {_HALVES}"),
        Sample(Ints((3, 5), 0, 2), dtypes="bool", mxnet="MXNet takes no bools"),
        Sample(
            Ints((12,), 0, 5),
            params={"return_index": True, "return_inverse": "True", "return_counts": True},
            dtypes="int32 float32",
        ),
        Sample(Ints((6, 2), 0, 2), params={"axis": 0, "return_inverse": True, "return_counts": True}, dtypes="int32"),
        Sample(Ints((2, 3, 2), 0, 2), params={"axis": "-2", "return_index": True}, dtypes="float32"),
        Sample((0,), grad=False),
        Sample([2.0, float("nan"), 2.0, float("inf")], grad=False, mxnet="MXNet sorts NaN anywhere"),
    ],
    "_npx_nonzero": [
        Sample(Ints((2, 3, 4), 0, 2), dtypes=f"bool {_WHOLE} {_HALVES}"),
        Sample(Ints((9,), 0, 2), dtypes="float32 int32"),
        Sample([0.0, 0.0], grad=False),
        Sample((0, 3), grad=False),
        Sample([[float("nan"), -0.0]], grad=False),
    ],
}
