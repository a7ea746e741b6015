"""Samples of the operators in :mod:`mxcore.ops.linalg`."""

from __future__ import annotations

from ...testing.sample import Sample

__all__ = ["SAMPLES"]

_TRIANGULAR = [[2.0, 0.3, -0.2], [0.5, 1.5, 0.1], [-0.25, 0.75, 1.25]]


_SINGULAR = [[2.0, 0.5, 1.0], [1.0, 0.0, 0.25], [-0.5, 0.75, 1.0]]


_TRI_SAMPLES = [
    Sample(_TRIANGULAR, (3, 2)),
    Sample(_TRIANGULAR, (3, 1)),
    Sample([[1.5]], (1, 3)),
    Sample([[_TRIANGULAR], [_TRIANGULAR]], (2, 1, 3, 2)),
    *[
        Sample(
            _TRIANGULAR,
            (2, 3) if right else (3, 2),
            params={"transpose": t, "rightside": right, "lower": low, "alpha": -1.5},
        )
        for t in (False, True)
        for right in (False, True)
        for low in (False, True)
    ],
    Sample([_TRIANGULAR, _TRIANGULAR], (2, 2, 3), params={"transpose": True, "rightside": True, "alpha": 0.5}),
    Sample([_TRIANGULAR, _TRIANGULAR], (2, 3, 1), params={"lower": "0", "alpha": "2"}),
]


SAMPLES = {
    "_linalg_gemm2": [
        Sample((2, 3), (3, 4)),
        Sample((1, 1), (1, 1)),
        Sample((2, 1, 3), (2, 3, 2)),
        Sample((2, 2, 1, 2), (2, 2, 2, 3)),
        Sample((0, 2, 3), (0, 3, 2)),
    ]
    + [
        Sample(a, b, params=params)
        for a, b, params in (
            ((2, 2, 3), (2, 4, 3), {"transpose_b": True, "alpha": 0.5}),
            ((3, 2), (4, 3), {"transpose_a": True, "transpose_b": True}),
            ((2, 5, 3), (3, 5, 4), {"axis": 0}),
            ((3, 2), (3, 4), {"transpose_a": True}),
            ((2, 3, 2, 2), (2, 2, 2, 3), {"axis": 1}),
            ((2, 2, 3), (4, 2, 3), {"axis": -3, "transpose_b": True}),
            ((2, 2, 3), (3, 2, 4), {"axis": 0, "alpha": -1.5}),
            ((3, 2, 2), (3, 2, 4), {"axis": 0, "transpose_a": True}),
            ((2, 3), (3, 2), {"alpha": "0", "transpose_a": "False"}),
        )
    ],
    "_linalg_gemm": [Sample((2, 3), (3, 4), (2, 4)), Sample((1, 1), (1, 1), (1, 1))]
    + [
        Sample(a, b, c, params=params)
        for a, b, c, params in (
            ((2, 3), (3, 4), (2, 4), {"alpha": 2.0, "beta": 0.5}),
            ((2, 3, 2), (2, 4, 3), (2, 2, 4), {"transpose_a": True, "transpose_b": True}),
            ((2, 5, 3), (3, 5, 4), (2, 5, 4), {"axis": 0}),
            ((2, 3), (3, 2), (2, 2), {"beta": 0.0}),
            ((2, 3), (3, 2), (2, 2), {"alpha": "0", "beta": "-1"}),
            ((3, 2, 2), (4, 2, 3), (2, 2, 4), {"axis": 0, "transpose_a": True, "transpose_b": True, "alpha": 0.5}),
            ((2, 2, 3), (2, 4, 3), (2, 2, 4), {"transpose_b": True, "axis": 1}),
            ((2, 2, 3, 1), (2, 2, 3, 2), (2, 2, 1, 2), {"transpose_a": True}),
        )
    ],
    "_linalg_syrk": [Sample((2, 3)), Sample((1, 1)), Sample((3, 1)), Sample((2, 1, 2, 3)), Sample((0, 2, 3))]
    + [
        Sample(s, params=params)
        for s, params in (
            ((2, 3, 2), {"transpose": True, "alpha": 0.5}),
            ((3, 2), {"transpose": True}),
            ((2, 3), {"alpha": -2.0}),
            ((1, 3), {"transpose": "1", "alpha": "0"}),
        )
    ],
    "_linalg_trmm": _TRI_SAMPLES,
    "_linalg_trsm": [
        *_TRI_SAMPLES,
        *[
            Sample(
                _SINGULAR,
                [[1.0, 2.0, 3.0]] if right else [[1.0], [2.0], [3.0]],
                params={"lower": low, "rightside": right},
                grad=False,
            )
            for low in (False, True)
            for right in (False, True)
        ],
    ],
}
