"""Samples of the operators of :mod:`mxcore.ops.slicing`."""

from __future__ import annotations

from ...testing.sample import Ints, Sample

__all__ = ["SAMPLES"]


_HALVES, _WHOLE = "float16 float32 float64", "uint8 int8 int32 int64"

_ALL_DTYPES = "int8 uint8 int32 int64 float16 float32 float64"


SAMPLES = {
    "slice": [
        Sample((4, 5), params={"begin": (1, 0), "end": (3, 4)}),
        Sample((4, 5), params={"begin": (None, 4), "end": (None, 0), "step": (2, -2)}),
        Sample((4, 5, 2), params={"begin": (1,), "end": (3,)}),
        Sample((4, 5), params={"begin": (-3, None), "end": (None, -1)}, dtypes=_HALVES),
        Sample((4, 5), params={"begin": "(None, 1)", "end": "(None, 9)", "step": "(3, None)"}),
        Sample((7,), params={"begin": (None,), "end": (None,), "step": (-1,)}),
        Sample((7,), params={"begin": (5,), "end": (1,), "step": (-3,)}),
        Sample((4, 5), params={"begin": (0, 1), "end": (-1, 2), "step": (2,)}, mxnet="as many steps as begins"),
        Sample((4, 5), params={"begin": (), "end": ()}),
        Sample(Ints((4, 5), 0, 9), params={"begin": 1, "end": 3}, dtypes=_WHOLE),
        Sample((4, 0), params={"begin": (1, None), "end": (3, None)}),
        Sample((2, 3), params={"begin": (-9, 0), "end": (1, 3)}),
    ],
    "_slice_spread": [Sample((2, 4), (4, 5), params={"begin": (1, 0), "end": (3, 4)}, mxnet="internal")],
    "slice_axis": [Sample((3, 4), params={"axis": 1, "begin": 1, "end": 3}, dtypes=_ALL_DTYPES)]
    + [
        Sample(s, params={"axis": a, "begin": b, "end": e})
        for s, a, b, e in (
            ((3, 4), -2, -2, None),
            ((3, 4), 0, 0, 1),
            ((2, 3, 4), -1, 1, -1),
            ((2, 3, 4), 1, -3, -2),
            ((5,), 0, 2, "None"),
            ((1, 3, 1), 2, 0, 1),
            ((2, 3), 1, "-2", "3"),
            ((0, 3), 1, 1, 2),
            ((0, 3), 0, 0, None),
        )
    ],
    "_slice_axis_spread": [Sample((3, 2), (3, 4), params={"axis": 1, "begin": 1, "end": 3}, mxnet="internal")],
    "slice_like": [
        Sample((3, 4), (2, 3), dtypes=_ALL_DTYPES),
        Sample((3, 4), (3, 4)),
        Sample((2, 3, 4), (1, 1, 1)),
        Sample((2, 3), Ints((1, 2), 0, 3, "int32")),
    ]
    + [
        Sample(a, b, params={"axes": axes})
        for a, b, axes in (
            ((3, 4), (2, 9), (0,)),
            ((3, 4), (2, 1, 5), (-1,)),
            ((2, 3, 4), (1, 2, 3), (0, -1)),
            ((2, 3, 4), (9, 2), (1,)),
            ((2, 3, 4), (2, 1, 4), "(1,)"),
            ((0, 4), (0, 2), (1,)),
        )
    ],
    "_corner_spread": [Sample((2, 3), (3, 4), mxnet="internal")],
    "Crop": [
        Sample((1, 2, 4, 5), params={"num_args": 1, **params})
        for params in (
            {"offset": (1, 2), "h_w": (2, 3)},
            {"h_w": (2, 2)},
            {"h_w": (3, 2), "center_crop": True},
            {"offset": (3, 4), "h_w": (1, 1)},
            {"h_w": (4, 5)},
        )
    ]
    + [
        Sample((2, 1, 4, 5), other, params={"num_args": 2, **params}, grad=(True, False))
        for other, params in (
            ((2, 1, 2, 2), {"center_crop": True}),
            ((2, 3, 2, 3), {"offset": (1, 2)}),
            ((2, 1, 4, 5), {}),
            ((1, 1, 3, 2), {"offset": "(0, 1)"}),
        )
    ]
    + [Sample((0, 2, 4, 5), params={"num_args": 1, "h_w": (2, 3)})],
    "_crop_spread": [
        Sample(
            (1, 2, 2, 3),
            (1, 2, 4, 5),
            params={"num_args": 1, "offset": (1, 2), "h_w": (2, 3)},
            grad=(True, False),
            mxnet="internal",
        )
    ],
    "_crop_again": [
        Sample(
            (1, 2, 4, 5),
            (1, 2, 4, 5),
            (1, 1, 2, 2),
            params={"num_args": 2, "center_crop": True},
            grad=(True, False, False),
            mxnet="internal",
        )
    ],
    "_slice_assign": [Sample((4, 5), (2, 4), params={"begin": (1, 0), "end": (3, 4)}, dtypes=_ALL_DTYPES)]
    + [
        Sample(a, b, params=params)
        for a, b, params in (
            ((4, 5), (2, 2), {"begin": (None, 4), "end": (None, 0), "step": (2, -2)}),
            ((4, 5), (2, 5), {"begin": (1,), "end": (-1,)}),
            ((2, 3, 4), (1, 2, 4), {"begin": (-1, 1, None), "end": (None, 3, None)}),
            ((5,), (2,), {"begin": (4,), "end": (0,), "step": (-2,)}),
            ((2, 3), (2, 3), {"begin": (None, None), "end": (None, None)}),
            ((4, 5), (2, 2), {"begin": "(0, 1)", "end": "(3, 4)", "step": "(2, 2)"}),
        )
    ],
    "_slice_assign_scalar": [Sample((4, 5), params={"begin": (1, 0), "end": (3, 4), "scalar": 2.5}, dtypes=_ALL_DTYPES)]
    + [
        Sample(s, params=params)
        for s, params in (
            ((4, 5), {"begin": (None, 4), "end": (None, 0), "step": (2, -2), "scalar": -1}),
            ((4, 5), {"begin": (1,), "end": (-1,)}),
            ((2, 3, 4), {"begin": (-1, 1, None), "end": (None, 3, None), "scalar": 0.1}),
            ((5,), {"begin": (4,), "end": (0,), "step": (-2,), "scalar": 3000.5}),
            ((2, 3), {"begin": "(0, 1)", "end": "(2, 2)", "scalar": "7"}),
        )
    ],
}
