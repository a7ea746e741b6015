"""Samples of the operators in :mod:`mxcore.ops.matrix`."""

from __future__ import annotations

from ...testing.sample import Sample

__all__ = ["SAMPLES"]


SAMPLES = {
    "dot": [
        Sample((2, 3), (3, 4)),
        Sample((2, 3), (3, 4), dtypes="float16 int32", grad=False, mxnet="float32 and float64 only"),
    ]
    + [
        Sample(a, b)
        for a, b in (
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((3,), (3, 2)),
            ((2, 3, 4), (4, 2, 3)),
            ((1, 1), (1, 1)),
            ((5, 1), (1, 3)),
            ((1, 5), (5,)),
            ((0, 2), (2, 3)),
        )
    ]
    + [Sample((2, 0), (0, 3), mxnet="aborts")]
    + [
        Sample(a, b, params=params)
        for a, b, params in (
            ((3, 2), (4, 3), {"transpose_a": True, "transpose_b": True}),
            ((4, 2, 3), (2, 3, 4), {"transpose_a": True, "transpose_b": True}),
            ((2, 3), (2,), {"transpose_a": True}),
            ((3, 2), (3, 4), {"transpose_a": "True"}),
            ((2, 3), (4, 3), {"transpose_b": "1"}),
            ((3,), (2, 3), {"transpose_b": True}),
            ((2, 3, 4), (5, 4), {"transpose_b": True}),
            ((3, 2, 2), (3, 5), {"transpose_a": True}),
            ((2, 3), (3, 2), {"forward_stype": "default"}),
            ((2, 3), (3, 2), {"forward_stype": "None"}),
        )
    ],
    "_dot_left": [
        Sample((2, 4), (3, 4), (2, 3), mxnet="internal"),
        Sample((2, 4), (4, 3), (3, 2), params={"transpose_a": True, "transpose_b": True}, mxnet="internal"),
    ],
    "_dot_right": [
        Sample((2, 4), (2, 3), (3, 4), mxnet="internal"),
        Sample((2, 4), (3, 2), (4, 3), params={"transpose_a": True, "transpose_b": True}, mxnet="internal"),
    ],
    "batch_dot": [
        Sample((2, 3, 4), (2, 4, 5)),
        Sample((1, 1, 3), (1, 3, 1), dtypes="float16 float32 float64"),
        Sample((3, 2, 1), (3, 1, 4)),
        Sample((2, 2, 3, 4), (2, 2, 4, 1)),
        Sample((2, 0, 3), (2, 3, 2)),
        Sample((2, 2, 0), (2, 0, 3)),
    ]
    + [
        Sample(a, b, params=params)
        for a, b, params in (
            ((2, 4, 3), (2, 5, 4), {"transpose_a": True, "transpose_b": True}),
            ((2, 4, 3), (2, 4, 5), {"transpose_a": True}),
            ((2, 1, 3, 4), (2, 1, 5, 4), {"transpose_b": True}),
            ((2, 2, 3), (2, 1, 3), {"transpose_b": "1"}),
            ((1, 2, 3), (1, 3, 2), {"forward_stype": "default"}),
        )
    ],
    "khatri_rao": [Sample((2, 3), (4, 3), params={"num_args": 2}, grad=False)]
    + [
        Sample(*shapes, params={"num_args": len(shapes)}, grad=False)
        for shapes in (((2, 2), (3, 2), (2, 2)), ((3, 2),), ((1, 1), (1, 1)), ((4, 1), (2, 1)), ((0, 2), (3, 2)))
    ]
    + [
        Sample((2, 3), (3, 3), grad=False),
        Sample((2, 3), (3, 3), dtypes="float16 int32 int64", mxnet="float32 and float64 only"),
    ],
    "_contrib_div_sqrt_dim": [
        Sample((2, 3), dtypes="float16 float32 float64"),
        Sample((5,)),
        Sample((2, 1)),
        Sample((1, 2, 4)),
        Sample((0, 3)),
    ],
}
