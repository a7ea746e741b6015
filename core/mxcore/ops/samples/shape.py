"""Samples of the operators in :mod:`mxcore.ops.shape`."""

from __future__ import annotations

from ...testing.sample import Ints, Sample

__all__ = ["SAMPLES"]

_HALVES, _WHOLE = "float16 float32 float64", "uint8 int8 int32 int64"


SAMPLES = {
    "Reshape": [
        Sample((2, 3, 4), params={"shape": (-3, 0)}),
        Sample((2, 3, 4), params={"shape": (0, -4, 3, 1, -2)}),
        Sample((2, 3, 4), params={"shape": (-1, 0), "reverse": True}),
        Sample((2, 3), params={"shape": (-1,)}, dtypes=_HALVES),
    ]
    + [
        Sample((2, 3, 4), params={"shape": s})
        for s in (
            "(4, 6)",
            (0, -1),
            (-2,),
            (-1, 0, 0),
            (-2, 1, 1),
            (0, -3),
            (-3, -1),
            (2, 12),
            (-4, -1, 2, -2),
            (0, 0, -4, 2, -1),
            (-3, -4, 1, 4),
        )
    ]
    + [
        Sample((2, 3, 4, 5), params={"shape": s, "reverse": True})
        for s in (
            (0, -1),
            (0, -3, 0),
            (-1, -3),
            (-2, 5),
            (-2, 1, -1, -4),
            (0, 0, 2, -1, -4, 0),
            (0, 3, 1, -4, 0, 0),
            (8, 3, 5),
            (-3, -3),
        )
    ]
    + [
        Sample((2, 3, 4), params={"target_shape": (0, 6)}),
        Sample((2, 3, 4), params={"target_shape": (2, 0)}),
        Sample((2, 3, 4), params={"target_shape": "(9, 0)", "keep_highest": "1"}),
        Sample(Ints((2, 6), 0, 9), params={"shape": [3, -1]}, dtypes=_WHOLE),
        Sample((1,), params={"shape": 1}),
        Sample((0, 3), params={"shape": (3, -1)}),
    ],
    "reshape_like": [
        Sample((2, 6), (3, 4)),
        Sample((30, 7), (15, 2, 4), params={"lhs_begin": 0, "lhs_end": 1, "rhs_begin": 0, "rhs_end": 2}),
        Sample((30, 7), (15, 2, 4), params={"lhs_end": "1", "rhs_end": 2}),
        Sample((2, 3, 4), (6, 4), params={"lhs_begin": "None", "lhs_end": -1, "rhs_end": -1}),
        Sample((5, 6), (4, 2, 3), params={"lhs_begin": 1, "rhs_begin": -2}),
        Sample((2, 6), Ints((12,), 0, 4, dtype="int32"), dtypes=_HALVES),
        Sample((0, 2), (2, 0)),
        Sample(Ints((6,), 0, 9), Ints((3, 2), 0, 9), dtypes=_WHOLE),
    ],
    "Flatten": [
        Sample((2, 3, 4), dtypes=_HALVES),
        Sample((5,)),
        Sample((2, 3)),
        Sample((3, 1, 2, 2)),
        Sample((0, 2, 3)),
        Sample(Ints((2, 3, 2), 0, 9), dtypes=_WHOLE),
    ],
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
    "Concat": [
        Sample((2, 3), (2, 1), (2, 2), params={"dim": 1, "num_args": 3}),
        Sample((2, 3), (4, 3), params={"dim": 0, "num_args": 2}, dtypes=_HALVES),
        Sample((2, 3), params={"num_args": 1}),
        Sample((2, 3, 2), (2, 1, 2), params={"dim": -2, "num_args": "2"}),
        Sample((3,), (2,), params={"dim": "0"}),
        Sample((2, 1, 3), (2, 1, 3), params={"dim": -1}),
        Sample(Ints((2, 3), 0, 9), Ints((2, 2), 0, 9), dtypes=_WHOLE),
        Sample((2, 0), (2, 3)),
        Sample((0, 3), (2, 3), (0, 3), params={"dim": 0}),
        Sample(*[(1, 2)] * 7, params={"dim": 0}),
    ],
    "_split_like": [
        Sample((2, 4), (2, 1), (2, 3), params={"dim": 1, "num_args": 2}, mxnet="internal", grad=(True, False, False))
    ],
    "SliceChannel": [
        Sample((2, 6), params={"num_outputs": 3}),
        Sample((3, 2, 2), params={"num_outputs": 3, "axis": 0, "squeeze_axis": True}),
        Sample((2, 4), params={"num_outputs": 1}),
        Sample((2, 3, 4), params={"num_outputs": "2", "axis": "-1"}, dtypes=_HALVES),
        Sample((6,), params={"num_outputs": 2, "axis": 0}),
        Sample((2, 3, 2), params={"num_outputs": 3, "axis": -2, "squeeze_axis": "1"}),
        Sample((2, 3), params={"num_outputs": 3, "squeeze_axis": False}),
        Sample(Ints((2, 6), 0, 9), params={"num_outputs": 2}, dtypes=_WHOLE),
        Sample((2, 1), params={"num_outputs": 1, "squeeze_axis": True}),
        Sample((0, 4), params={"num_outputs": 2}),
    ],
    "stack": [
        Sample((2, 3), (2, 3), params={"axis": 1, "num_args": 2}),
        Sample((2,), (2,), (2,), params={"axis": -1, "num_args": 3}),
        Sample((2, 3), params={"num_args": 1}),
        Sample((2, 3), (2, 3), params={"axis": "2"}, dtypes=_HALVES),
        Sample((2, 3), (2, 3), params={"axis": -3}),
        Sample(Ints((2, 3), 0, 9), Ints((2, 3), 0, 9), dtypes=_WHOLE),
        Sample((0, 3), (0, 3), params={"axis": 1}),
        Sample((1,), (1,)),
    ],
    "transpose": [
        Sample((2, 3, 4), dtypes=_HALVES),
        Sample((2, 3, 4), params={"axes": (1, 2, 0)}),
        Sample((2, 3), params={"axes": "(1, 0)"}),
        Sample((5,)),
        Sample((2, 3, 2, 2), params={"axes": (0, 2, 3, 1)}),
        Sample((2, 3, 1, 2, 2), params={"axes": (4, 0, 3, 1, 2)}),
        Sample((2, 3), params={"axes": "()"}),
        Sample((2, 3, 4), params={"axes": (0, -1, 1)}, mxnet="no negative axes"),
        Sample((1, 1), params={"axes": [0, 1]}),
        Sample(Ints((2, 3), 0, 9), dtypes=_WHOLE),
        Sample((2, 0, 3)),
    ],
    "expand_dims": [
        Sample((2, 3), params={"axis": 1}, dtypes=_HALVES),
        Sample((2, 3), params={"axis": -1}),
        Sample((2, 3), params={"axis": "0"}),
        Sample((2, 3), params={"axis": -3}),
        Sample((2, 3), params={"axis": 2}),
        Sample((0, 3), params={"axis": 1}),
        Sample(Ints((5,), 0, 9), params={"axis": 0}, dtypes=_WHOLE),
    ],
    "broadcast_to": [
        Sample((2, 1, 3), params={"shape": (0, 4, 3)}, dtypes=_HALVES),
        Sample((1, 1), params={"shape": "(3, 2)"}),
        Sample((2, 3), params={"shape": (2, 0)}),
        Sample((1, 3, 1, 2), params={"shape": (5, 0, 3, 2)}),
        Sample((1,), params={"shape": 4}),
        Sample(Ints((1, 3), 0, 9), params={"shape": (2, 3)}, dtypes=_WHOLE),
        Sample((0, 1), params={"shape": (0, 3)}),
    ],
    "broadcast_like": [
        Sample((1, 3), (4, 3)),
        Sample((9, 1), (1, 9, 2), params={"lhs_axes": (1,), "rhs_axes": (-1,)}),
        Sample((1, 3, 1), (2, 3, 4), dtypes=_HALVES),
        Sample((2, 3), (2, 3)),
        Sample((1, 3, 1), (4, 5), params={"lhs_axes": "(0, 2)", "rhs_axes": "(1, 0)"}),
        Sample((2, 1), (3, 4), params={"lhs_axes": (-1,), "rhs_axes": (0,)}),
        Sample((1, 2), (0, 2)),
        Sample(Ints((1, 3), 0, 9), Ints((2, 3), 0, 9), dtypes=_WHOLE),
    ],
}
