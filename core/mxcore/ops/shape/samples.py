"""Samples of the operators of :mod:`mxcore.ops.shape`."""

from __future__ import annotations

from ...testing.sample import Ints, Sample
from . import numpy_samples

__all__ = ["SAMPLES"]


_SHAPES = [
    Sample((2, 3), grad=False, dtypes="float16 float32 float64"),
    Sample((5,), grad=False),
    Sample((2, 1, 3, 2), grad=False),
    Sample((0, 3), grad=False),
    Sample(Ints((4, 3), 0, 9), dtypes="uint8 int8 int32 int64"),
]

_HALVES, _WHOLE = "float16 float32 float64", "uint8 int8 int32 int64"

_ALL_DTYPES = "int8 uint8 int32 int64 float16 float32 float64"

_EDGES = (0, 0, 0, 0, 2, 1, 1, 3)
_FOLDS = (0, 0, 0, 0, 1, 1, 2, 1)


SAMPLES = {
    "shape_array": _SHAPES,
    "size_array": _SHAPES,
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
    "repeat": [Sample((2, 3), params={"repeats": 2}, dtypes=_ALL_DTYPES)]
    + [
        Sample(s, params={"repeats": n, "axis": a})
        for s, n, a in (
            ((2, 3), 3, 0),
            ((2, 3), 2, -1),
            ((2, 1, 3), 2, 1),
            ((2, 3, 2), 3, -3),
            ((5,), 2, None),
            ((5,), 1, 0),
            ((2, 3), "2", "None"),
            ((0, 3), 2, 1),
            ((0, 3), 2, None),
        )
    ]
    + [Sample((2, 3), params={"repeats": 0, "axis": 1}, mxnet="its result has the shape (0,)")],
    "_repeat_sum": [
        Sample((12,), (2, 3), params={"repeats": 2}, mxnet="internal"),
        Sample((6, 3), (2, 3), params={"repeats": 3, "axis": 0}, mxnet="internal"),
    ],
    "tile": [Sample((2, 3), params={"reps": (2,)}, dtypes=_ALL_DTYPES)]
    + [
        Sample(s, params={"reps": r})
        for s, r in (
            ((2, 3), (2, 1, 2)),
            ((2, 3), ()),
            ((2, 3), (3, 2)),
            ((2, 1, 3), (2,)),
            ((5,), (2, 2, 3)),
            ((1,), (3,)),
            ((2, 3), "(1, 2)"),
            ((2, 3), 2),
            ((0, 3), (2, 2)),
            ((2, 3), (0, 1)),
        )
    ],
    "_tile_sum": [Sample((2, 2, 6), (2, 3), params={"reps": (2, 1, 2)}, mxnet="internal")],
    "Pad": [
        Sample((1, 2, 2, 3), params={"mode": "constant", "pad_width": _EDGES, "constant_value": 1.5}),
        Sample((1, 2, 2, 3), params={"mode": "edge", "pad_width": _EDGES}),
        Sample((1, 2, 2, 3), params={"mode": "reflect", "pad_width": _FOLDS}),
        *[
            Sample(
                (1, 1, 2, 2, 2), params={"mode": m, "pad_width": (0, 0, 0, 0, 1, 0, 0, 1, 1, 1), "constant_value": v}
            )
            for m, v in (("constant", -2), ("edge", 0), ("reflect", 0))
        ],
        Sample((2, 1, 1, 3), params={"mode": "constant", "pad_width": "(0, 0, 0, 0, 0, 2, 3, 0)"}),
        Sample((1, 1, 1, 3), params={"mode": "edge", "pad_width": (0, 0, 0, 0, 3, 1, 0, 4)}),
        Sample((1, 1, 3, 4), params={"mode": "reflect", "pad_width": (0, 0, 0, 0, 2, 2, 3, 0)}),
        Sample((1, 1, 2, 2), params={"mode": "constant", "pad_width": (0,) * 8}),
        *[
            Sample((1, 1, 2, 3), params={"mode": m, "pad_width": _FOLDS}, dtypes="float16")
            for m in ("constant", "edge", "reflect")
        ],
        Sample((1, 1, 2, 3), params={"mode": "edge", "pad_width": _FOLDS}, dtypes="int32 uint8"),
        Sample((0, 2, 2, 3), params={"mode": "constant", "pad_width": _EDGES}),
        Sample((2, 3), params={"mode": "constant", "pad_width": (1, 0, 0, 2)}, mxnet="4 or 5 dimensions only"),
    ],
    "_backward_Pad": [
        Sample((1, 2, 5, 7), (1, 2, 2, 3), params={"mode": m, "pad_width": _EDGES}, mxnet="internal")
        for m in ("constant", "edge")
    ]
    + [Sample((1, 2, 4, 6), (1, 2, 2, 3), params={"mode": "reflect", "pad_width": _FOLDS}, mxnet="internal")],
    "broadcast_axis": [Sample((1, 2, 1), params={"axis": (0, 2), "size": (3, 2)}, dtypes=_ALL_DTYPES)]
    + [
        Sample(s, params={"axis": a, "size": n})
        for s, a, n in (
            ((2, 1), 1, 4),
            ((2, 1), -1, 3),
            ((1, 2, 1), (2, 0), (3, 2)),
            ((1,), 0, 5),
            ((1, 1), (0, 1), "(2, 3)"),
            ((2, 1, 3), 1, 1),
            ((2, 1, 0), 1, 2),
            ((2, 1), 1, 0),
        )
    ]
    + [Sample((2, 3))],
    "_rnn_param_concat": [
        Sample((2,), (3,), params={"dim": 0, "num_args": 2}),
        Sample((2,), params={"dim": 0, "num_args": 1}),
        Sample((2, 1), (2, 3), (2, 2), params={"num_args": 3}),
        Sample((2, 3, 1), (1, 3, 1), params={"num_args": "2", "dim": "0"}),
    ],
    "_split_v2": [Sample((2, 7), params={"indices": (0, 3, 5), "axis": 1}, dtypes=_ALL_DTYPES)]
    + [
        Sample(s, params=params)
        for s, params in (
            ((7, 2), {"indices": (), "axis": 0, "sections": 3}),
            ((2, 3), {"indices": (), "sections": 3, "squeeze_axis": True}),
            ((2, 3), {"indices": (0, 1, 2), "squeeze_axis": True}),
            ((2, 4, 3), {"indices": (0, 1), "axis": -1}),
            ((6,), {"indices": (0, 2), "axis": 0}),
            ((2, 4), {"indices": (0,)}),
            ((2, 4), {"indices": (0, 2, 2)}),
            ((2, 3, 2), {"indices": "(0, 1)", "axis": "0", "squeeze_axis": "1"}),
            ((3, 2), {"indices": (), "axis": -2, "sections": 1}),
        )
    ],
    "_split_v2_backward": [
        Sample((2, 3), (2, 4), params={"indices": (0, 3)}, mxnet="not callable by itself"),
        Sample((3,), (3,), params={"sections": 2, "axis": 0, "squeeze_axis": True}, mxnet="not callable by itself"),
    ],
    **numpy_samples.SAMPLES,
}
