"""Samples of the operators of :mod:`mxcore.ops.linalg`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Sample
from .numpy_samples import NUMPY_SAMPLES

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

#: Well-conditioned matrices for samples: symmetric positive definite, a lower factor, and one that is neither.
_SPD = [[4.0, 1.0, -0.5], [1.0, 3.0, 0.75], [-0.5, 0.75, 2.0]]
_WIDE = [[9.0, -2.0, 0.5], [-2.0, 1.5, 0.25], [0.5, 0.25, 5.0]]
_LOWER = [[2.0, 0.0, 0.0], [0.5, 1.5, 0.0], [-0.25, 0.75, 1.25]]
_TURNED_LOWER = [[0.5, 0.0, 0.0], [-2.0, 3.0, 0.0], [1.0, 0.25, 1.5]]
_UPPER = [[2.0, 0.5, -0.25], [0.0, 1.5, 0.75], [0.0, 0.0, 1.25]]
_FULL = [[3.0, 1.0, -0.5], [-1.0, 2.5, 0.75], [0.5, -0.25, 2.0]]
_TURNED = [[0.5, 1.0, -2.0], [-1.0, 0.25, 0.75], [3.0, -0.25, 0.5]]
#: One element, stacks of stacks of two by two, and no matrices.
_SMALL = [Sample([[2.5]]), Sample([[[[2.0, 0.5], [0.25, 1.5]]], [[[1.5, -0.5], [0.75, 2.0]]]]), Sample((0, 2, 2))]
#: Singular matrices, alone and among others.
_ONES = [[1.0, 1.0], [1.0, 1.0]]
_SOME = [Sample([[[2.0, 0.0], [0.0, 2.0]], _ONES], grad=False), Sample(_ONES, grad=False), Sample([[0.0]], grad=False)]


SAMPLES = {
    **NUMPY_SAMPLES,
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
    "_linalg_potrf": [
        Sample(_SPD, grad=False),
        Sample([[4.0]]),
        Sample([[[_SPD]], [[_WIDE]]], grad=False),
        Sample((0, 2, 2)),
    ]
    + [
        Sample(a, params={"lower": low}, grad=False)
        for a, low in (
            ([_SPD, _WIDE], False),
            (_WIDE, True),
            (_SPD, "0"),
            (np.tril(_SPD).tolist(), True),
            (np.triu(_SPD).tolist(), False),
        )
    ],
    "_linalg_potri": [
        Sample(_LOWER, grad=False),
        Sample([_LOWER, _TURNED_LOWER], grad=False),
        Sample([[1.5]]),
        Sample([[[_LOWER]], [[_TURNED_LOWER]]], grad=False),
    ]
    + [
        Sample(_UPPER, params={"lower": False}, grad=False),
        Sample([_UPPER, _UPPER], params={"lower": "0"}, grad=False),
        Sample((0, 2, 2)),
    ],
    "_linalg_inverse": [
        Sample(_FULL),
        Sample([_FULL, _SPD]),
        Sample(_TURNED),
        Sample([[-0.5]]),
        Sample((0, 2, 2)),
        *_SMALL,
    ],
    "_inverse_or_zeros": [
        Sample([_FULL, _SPD], [10.0, -0.5], grad=(True, False), mxnet="internal"),
        Sample([_FULL, [[1.0] * 3] * 3], [1.0, 0.0], grad=(True, False), mxnet="internal"),
        Sample([[0.0]], [0.0], grad=(True, False), mxnet="internal"),
    ],
    "_linalg_det": [
        Sample(_FULL),
        Sample([_FULL, _SPD]),
        Sample(_TURNED),
        Sample([_TURNED, _LOWER]),
        Sample([[-2.0]]),
        *_SMALL,
        *_SOME,
    ],
    "_linalg_slogdet": [
        Sample(_FULL),
        Sample([_FULL, _SPD]),
        Sample(_TURNED),
        Sample([_TURNED[::-1], _LOWER]),
        Sample([[-2.0]]),
        *_SMALL,
        *_SOME,
    ],
    "_linalg_sumlogdiag": [Sample(_SPD), Sample([_SPD, _FULL]), Sample((0, 2, 2)), *_SMALL],
    "_linalg_gelqf": [
        Sample(_FULL),
        Sample(_FULL[:2]),
        Sample(_FULL[:1]),
        Sample([_FULL, _SPD]),
        Sample(_TURNED),
        Sample([_TURNED[:2], _SPD[:2]]),
        *_SMALL,
    ],
    "_linalg_syevd": [
        Sample(_SPD, grad=False),
        Sample([_SPD, _WIDE], grad=False),
        Sample([[-2.0]]),
        Sample([[[_WIDE]], [[_SPD]]], grad=False),
        Sample([[1.0, 2.0, 0.5], [2.0, -3.0, 0.25], [0.5, 0.25, 0.125]], grad=False),
    ],
}
