"""Samples of the operators in :mod:`mxcore.ops.layout`."""

from __future__ import annotations

from ...testing.sample import Sample

__all__ = ["SAMPLES"]

#: Rearranging is the same in every dtype.
_ALL_DTYPES = "int8 uint8 int32 int64 float16 float32 float64"


SAMPLES = {
    "_identity_with_attr_like_rhs": [
        Sample((2, 3), (2, 3)),
        Sample((5,), (5,)),
        Sample((1, 3, 1), (1, 3, 1), dtypes=_ALL_DTYPES),
        Sample((0, 2), (0, 2)),
    ],
    "SwapAxis": [Sample((2, 3)), Sample((5,)), Sample((2, 3, 4), params={"dim1": 0, "dim2": 2}, dtypes=_ALL_DTYPES)]
    + [
        Sample(s, params={"dim1": i, "dim2": j})
        for s, i, j in (
            ((2, 3, 4), 1, -1),
            ((2, 3, 4), -3, -2),
            ((2, 1, 3, 2), 3, 1),
            ((2, 3, 1, 2, 3), 4, 0),
            ((2, 3), 1, 1),
            ((2, 0, 3), 0, 2),
            ((3, 1), "0", "1"),
        )
    ],
    "squeeze": [Sample((1, 2, 1), dtypes=_ALL_DTYPES), Sample((1, 1)), Sample((2, 3)), Sample((1,)), Sample((1, 0, 1))]
    + [
        Sample(s, params={"axis": a})
        for s, a in (
            ((1, 2, 1), 0),
            ((1, 2, 1), -1),
            ((1, 2, 1), (0, -1)),
            ((1, 2, 1, 3, 1), (2, 0)),
            ((1, 1), (0, 1)),
            ((2, 1, 3), "(1,)"),
            ((1, 2), None),
            ((1, 2), ()),
        )
    ],
    "reverse": [Sample((2, 3), params={"axis": 1}, dtypes=_ALL_DTYPES)]
    + [
        Sample(s, params={"axis": a})
        for s, a in (
            ((2, 3), 0),
            ((2, 3, 2), (0, 2)),
            ((2, 3, 2), (2, 1, 0)),
            ((5,), 0),
            ((1, 3, 1), (0, 1)),
            ((2, 3), "[0, 1]"),
            ((2, 3, 2), -1),
            ((2, 0), 1),
        )
    ],
    "depth_to_space": [Sample((2, 8, 1, 3), params={"block_size": 2}, dtypes=_ALL_DTYPES)]
    + [
        Sample(s, params={"block_size": b})
        for s, b in (((1, 9, 2, 1), 3), ((2, 4, 2, 3), "2"), ((1, 3, 2, 2), 1), ((0, 4, 2, 3), 2))
    ],
    "space_to_depth": [Sample((2, 2, 2, 6), params={"block_size": 2}, dtypes=_ALL_DTYPES)]
    + [
        Sample(s, params={"block_size": b})
        for s, b in (((1, 1, 3, 6), 3), ((2, 1, 4, 2), "2"), ((1, 3, 2, 2), 1), ((0, 1, 4, 2), 2))
    ],
    "diag": [Sample((3, 4), dtypes=_ALL_DTYPES), Sample((3,), dtypes=_ALL_DTYPES), Sample((2, 3, 4)), Sample((1, 1))]
    + [
        Sample(s, params=params)
        for s, params in (
            ((2,), {"k": -1}),
            ((2,), {"k": 2}),
            ((1,), {"k": 1}),
            ((3, 4), {"k": 2}),
            ((4, 3), {"k": -2}),
            ((4, 3), {"k": 1}),
            ((2, 3, 4), {"axis1": 2, "axis2": 0, "k": 1}),
            ((2, 3, 4), {"axis1": -1, "axis2": -2}),
            ((2, 3, 4, 2), {"axis1": 1, "axis2": 2, "k": -1}),
            ((3, 4), {"axis1": 1, "axis2": 0, "k": 2}),
            ((2, 3), {"k": 3}),
            ((2, 3), {"k": -2}),
            ((0,), {}),
            ((0, 3), {"k": 1}),
            ((2, 3, 0), {}),
        )
    ],
    "_diag_spread": [
        Sample((3,), (3, 4), mxnet="internal"),
        Sample((3, 3), (3,), mxnet="internal"),
        Sample((3, 2), (2, 3, 4), params={"axis1": 2, "axis2": 0}, mxnet="internal"),
    ],
}
