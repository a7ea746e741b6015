"""Samples of the operators in :mod:`mxcore.ops.repeating`."""

from __future__ import annotations

from ...testing.sample import Sample

__all__ = ["SAMPLES"]

_ALL_DTYPES = "int8 uint8 int32 int64 float16 float32 float64"


_EDGES = (0, 0, 0, 0, 2, 1, 1, 3)


_FOLDS = (0, 0, 0, 0, 1, 1, 2, 1)


SAMPLES = {
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
    "add_n": [
        Sample(*[s] * n, params={"num_args": n}, dtypes=t)
        for s, n, t in (
            ((2, 3), 3, _ALL_DTYPES),
            ((2, 3), 1, "float32 float64"),
            ((5,), 2, "float32 float64"),
            ((2, 1, 3), 9, "float32 float64"),
            ((0, 3), 2, "float32 float64"),
        )
    ]
    + [Sample((2, 3), (2, 3))],
    "_rnn_param_concat": [
        Sample((2,), (3,), params={"dim": 0, "num_args": 2}),
        Sample((2,), params={"dim": 0, "num_args": 1}),
        Sample((2, 1), (2, 3), (2, 2), params={"num_args": 3}),
        Sample((2, 3, 1), (1, 3, 1), params={"num_args": "2", "dim": "0"}),
    ],
}
