"""Samples of the operators in :mod:`mxcore.ops.triangles`."""

from __future__ import annotations

from ...testing.sample import Sample

__all__ = ["SAMPLES"]


SAMPLES = {
    "_triangle": [
        Sample((3, 3), mxnet="internal"),
        Sample((2, 4, 4), params={"lower": False, "diagonal": 0.5}, mxnet="internal"),
        Sample((0, 2, 2), mxnet="internal"),
    ],
    "_linalg_extractdiag": [Sample((3, 3)), Sample((1, 1)), Sample((2, 3, 3)), Sample((0, 3, 3))]
    + [
        Sample(s, params={"offset": n})
        for s, n in (((2, 3, 3), 1), ((3, 3), -2), ((3, 3), 2), ((2, 1, 3, 3), -1), ((4, 4), "1"))
    ],
    "_linalg_makediag": [Sample((3,)), Sample((1,)), Sample((2, 3)), Sample((0, 2))]
    + [Sample(s, params={"offset": n}) for s, n in (((2, 3), -1), ((3,), 2), ((1,), 1), ((2, 1, 2), -2), ((2,), "1"))],
    "_linalg_extracttrian": [Sample((3, 3)), Sample((1, 1)), Sample((0, 3, 3))]
    + [
        Sample(s, params={"offset": n, "lower": low})
        for s, n, low in (
            ((2, 3, 3), 0, False),
            ((3, 3), 1, True),
            ((3, 3), -1, True),
            ((3, 3), 1, False),
            ((3, 3), -1, False),
            ((2, 4, 4), 2, True),
            ((2, 1, 4, 4), -2, True),
            ((3, 3), 2, True),
            ((4, 4), "0", "0"),
        )
    ],
    "_linalg_maketrian": [Sample((6,)), Sample((1,)), Sample((0, 3))]
    + [
        Sample(s, params={"offset": n, "lower": low})
        for s, n, low in (
            ((2, 3), 0, False),
            ((3,), 1, True),
            ((3,), -1, True),
            ((6,), 1, False),
            ((6,), -1, False),
            ((2, 3), 2, True),
            ((2, 1, 3), -2, True),
            ((1,), 3, True),
            ((10,), "0", "0"),
        )
    ],
}
