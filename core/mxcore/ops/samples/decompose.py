"""Samples of the operators in :mod:`mxcore.ops.decompose`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Sample

__all__ = ["SAMPLES"]

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
