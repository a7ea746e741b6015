"""Samples of the operators in :mod:`mxcore.ops.arithmetic`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Ints, Sample

__all__ = ["SAMPLES"]

_POSITIVE = {"power": (0.5, 2.0), "div": (0.5, 2.0), "mod": (0.6, 3.0)}


_HALVES = "float16 float32 float64"
_WHOLE = "int8 uint8 int32 int64"


_INF, _NAN = float("inf"), float("nan")


#: Every pair of these meets in a broadcasting operator.
_OPERANDS = [-_INF, -2.5, -1.0, -0.0, 0.0, 1.0, 3.0, _INF, _NAN]


#: Every base meets every power; some results do not fit.
_WHOLE_POWERS = Sample(
    *np.meshgrid([-3, -2, -1, 0, 1, 2, 7], [-3, -2, -1, 0, 1, 2, 70]), dtypes="int8 int32 int64", grad=False
)


def _elementwise(family, domain):
    return [
        Sample((3, 4), (3, 4), domain=domain, dtypes=_HALVES),
        Sample((0, 4), (0, 4), domain=domain),
        Sample(Ints((3, 5), 1, 7), Ints((3, 5), 1, 4), dtypes=_WHOLE),
        *([_WHOLE_POWERS] if family == "power" else []),
    ]


def _broadcasting(family, domain):
    return [
        Sample((2, 1, 4), (1, 3, 1), domain=domain, dtypes=_HALVES),
        Sample((3, 4), (3, 4), domain=domain),
        Sample((3, 1), (3, 5), domain=domain),
        Sample((2, 3, 5), (1, 1, 1), domain=domain),
        Sample((1,), (7,), domain=domain),
        Sample((2, 0, 3), (1, 1, 3), domain=domain),
        Sample(Ints((3, 1), -5, 6), Ints((1, 4), 1, 4), dtypes="int8 int32 int64"),
        Sample([[v] for v in _OPERANDS], [_OPERANDS], grad=False),
        *([_WHOLE_POWERS] if family == "power" else []),
    ]


_COMPARED = [
    Sample([[-1.0, 0.0, 2.0]], [[0.0, 0.0, 1.0]], dtypes=_HALVES),
    Sample(Ints((3, 5), 0, 3), Ints((3, 5), 0, 3), dtypes=_WHOLE),
    Sample((0, 2), (0, 2)),
]


_COMPARED_BROADCASTING = [
    Sample([[-1.0, 0.0, 2.0]], [[0.0], [2.0]], dtypes=_HALVES),
    Sample([[v] for v in _OPERANDS], [_OPERANDS]),
    Sample(Ints((2, 1, 3), -1, 2), Ints((1, 4, 1), -1, 2), dtypes="int8 int32 int64"),
    Sample((1, 3), (0, 3)),
]


def _with_number(base):
    return [
        Sample((3, 4), params={"scalar": 1.5}, domain=(0.3, 2.7), dtypes=_HALVES),
        Sample((3, 4), domain=(0.3, 2.7)),
        Sample((2, 0), params={"scalar": "2"}),
        Sample((5,), params={"scalar": 2, "is_int": False}, domain=(0.3, 1.7)),
        Sample([[-2.7, -1.3, -0.45, 0.45, 1.3, 3.4]], params={"scalar": -2.0}, grad=base != "rpower"),
        Sample(Ints((2, 5), 1, 6), params={"scalar": 2.6}, dtypes=_WHOLE),
        Sample(Ints((2, 5), 1, 6), params={"scalar": 2.6, "is_int": False}, dtypes=_WHOLE),
        Sample(Ints((5,), 0, 2), params={"scalar": 2.0}, dtypes="bool"),
        Sample([_OPERANDS], params={"scalar": 3.0}, grad=False),
        *[
            Sample(np.arange(-3, 8), params={"scalar": s}, dtypes="int8 int32 int64", grad=False)
            for s in (-3, -1, 0, 2, 7)
            if "power" in base
        ],
    ]


_COMPARED_WITH_NUMBER = [
    Sample([[-1.0, 0.0, 1.0]], params={"scalar": 1.0}, dtypes=_HALVES),
    Sample([_OPERANDS], params={"scalar": "0"}),
    Sample(Ints((2, 5), 0, 3), params={"scalar": 1, "is_int": True}, dtypes=_WHOLE),
    Sample(Ints((2, 5), 0, 3), params={"scalar": 1.5, "is_int": False}, dtypes=_WHOLE),
    Sample(Ints((5,), 0, 2), params={"scalar": 1.0}, dtypes="bool"),
    Sample((0, 3), params={"scalar": "inf"}),
]


_FUNCTIONS = "add sub mul div mod power maximum minimum hypot".split()


_COMPARISONS = "equal not_equal greater greater_equal lesser lesser_equal logical_and logical_or logical_xor".split()


_WITH_NUMBERS = "plus minus rminus mul div rdiv mod rmod power rpower maximum minimum hypot".split()


SAMPLES = {
    "_sum_like": [
        Sample(a, b, mxnet="internal")
        for a, b in (((2, 3, 4), (3, 1)), ((2, 3), (2, 3)), ((2, 3), (1, 1, 3)), ((2, 0), (2, 1)))
    ],
    "_broadcast_back": [
        Sample(a, b, mxnet="internal") for a, b in (((3, 1), (2, 3, 4)), ((2, 3), (2, 3)), ((1, 1, 3), (2, 3)))
    ],
    **{
        name: _elementwise(f, _POSITIVE.get(f, (-2.0, 2.0)))
        for f in _FUNCTIONS
        for name in [f"elemwise_{f}" if f in ("add", "sub", "mul", "div") else f"_{f}"]
    },
    **{f"broadcast_{f}": _broadcasting(f, _POSITIVE.get(f, (-2.0, 2.0))) for f in _FUNCTIONS},
    **{f"_{f}": _COMPARED for f in _COMPARISONS},
    **{f"broadcast_{f}": _COMPARED_BROADCASTING for f in _COMPARISONS},
    **{f"_{f}_scalar": _with_number(f) for f in _WITH_NUMBERS},
    **{f"_{f}_scalar": _COMPARED_WITH_NUMBER for f in _COMPARISONS},
}
