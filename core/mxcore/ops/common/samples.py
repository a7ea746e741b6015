"""Samples of the operators that the core brings itself."""

from __future__ import annotations

from ...testing.sample import Ints, Sample

__all__ = ["SAMPLES"]


_HALVES, _WHOLE, _ALONE = "float16 float32 float64", "uint8 int8 int32 int64", "inside its engine only"
_LIKE = [
    Sample((2, 3), grad=False, dtypes=_HALVES),
    Sample((0, 3), grad=False),
    Sample((1, 5), grad=False),
    Sample(Ints((2, 3), 0, 9), dtypes=_WHOLE),
    Sample([[float("nan"), float("inf")]], grad=False),
]


SAMPLES = {
    "ones_like": _LIKE,
    "zeros_like": _LIKE,
    "_grad_add": [
        Sample((2, 3), (2, 3), dtypes=_HALVES),
        Sample((0, 3), (0, 3)),
        Sample(Ints((4,), 0, 9), Ints((4,), 0, 9), dtypes=_WHOLE),
    ],
    "_copyto": [
        Sample((2, 3), dtypes=_HALVES, mxnet=_ALONE),
        Sample((2, 0), mxnet=_ALONE),
        Sample(Ints((4,), 0, 9), dtypes=_WHOLE, mxnet=_ALONE),
    ],
}
