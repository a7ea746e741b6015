"""Samples of the operators in :mod:`mxcore.ops.unary`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Ints, Sample
from ..unary import _ACTIVATIONS

__all__ = ["SAMPLES"]

#: Functions that whole numbers above 0 are outside the domain of, or at its edge.
_WITHIN_ONE = frozenset("arcsin arccos arctanh erfinv".split())


#: Functions whose gradients MXNet gets wrong at their poles.
_POLES = frozenset("gamma gammaln".split())


_HALVES = "float16 float32 float64"


_INF, _NAN = float("inf"), float("nan")


#: Poles, edges and kinks of one function or another, and what lies outside of their domains.
_SPECIAL = [-_INF, -9.0, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.5, 8.0, _INF, _NAN]


_ANY = (0.3, 0.9)


_POS = (0.5, 3.0)


_SHIFTED = [[-2.6, -1.4, -0.4, 0.4, 1.4, 2.6]]


#: Where functions are tried; between -2 and 2 unless told.
_DOMAINS = {
    "abs": _ANY,
    "log": _POS,
    "log2": _POS,
    "log10": _POS,
    "log1p": _POS,
    "sqrt": _POS,
    "rsqrt": _POS,
    "cbrt": _POS,
    "rcbrt": _POS,
    "reciprocal": _POS,
    "tan": (-1.0, 1.0),
    "arcsin": (-0.8, 0.8),
    "arccos": (-0.8, 0.8),
    "arccosh": (1.3, 3.0),
    "arctanh": (-0.7, 0.7),
    "relu": _ANY,
    "softsign": _ANY,
    "erfinv": (-0.9, 0.9),
    "gamma": _POS,
    "gammaln": _POS,
}


def _smooth(name):
    domain = _DOMAINS.get(name, (-2.0, 2.0))
    return [
        Sample((3, 4), domain=domain, dtypes=_HALVES),
        Sample((2, 0), domain=domain),
        Sample(Ints((2, 3), *((0, 1) if name in _WITHIN_ONE else (1, 3))), dtypes="int8 uint8 int32 int64"),
        Sample(
            [_SPECIAL], grad=False, mxnet="forward only: MXNet has other gradients at poles" if name in _POLES else True
        ),
    ]


_STEPS = [
    Sample(_SHIFTED, dtypes=_HALVES),
    Sample([_SPECIAL]),
    Sample([[-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5]], dtypes=_HALVES),
    Sample([[0.49999997, -0.49999997, 8388609.0, -8388609.0]]),
    Sample(Ints((2, 3), 0, 5), dtypes="int8 uint8 int32 int64"),
    Sample((2, 0)),
]


_COPIED = [Sample((3, 4), dtypes=_HALVES), Sample(Ints((5,), 0, 9), dtypes="uint8 int8 int32 int64"), Sample((0, 2))]


SAMPLES = {
    "make_loss": [Sample((3, 4), grad=False, dtypes=_HALVES), Sample((1,), grad=False), Sample((0, 2), grad=False)],
    "Cast": [
        Sample(_SHIFTED, params={"dtype": t}, grad=False)
        for t in ("int32", "int8", "int64", "float16", "float32", "float64")
    ]
    + [
        Sample(Ints((2, 3), 0, 9), params={"dtype": t}, dtypes="uint8 int8 int32 int64 float16")
        for t in ("uint8", "int32", "float32", "float16")
    ]
    + [
        Sample([[0.0, 0.5, -2.0, 0.0]], params={"dtype": "bool"}, grad=False),
        Sample((0, 3), params={"dtype": "int32"}),
        Sample([[-_INF, _INF, _NAN, 70000.0]], params={"dtype": "float16"}, grad=False),
    ],
    "_cast_like": [Sample((3, 4), np.zeros((3, 4), np.float32), mxnet="internal")],
    "clip": [
        Sample([[-3.0, -0.5, 0.2, 2.6]], params={"a_min": -1.0, "a_max": 1.5}, dtypes=_HALVES),
        Sample((2, 0), params={"a_min": 0, "a_max": 1}),
        Sample([_SPECIAL], params={"a_min": "-1", "a_max": 2.5}, grad=False),
        Sample((2, 3), params={"a_min": -_INF, "a_max": 0.4}),
        Sample(Ints((3, 5), 0, 9), params={"a_min": 2, "a_max": 5}, dtypes="uint8 int8 int32 int64"),
        Sample(Ints((3, 5), -9, 9), params={"a_min": -2.6, "a_max": 3.7}, dtypes="int8 int32 int64"),
    ],
    "Activation": [Sample((3, 4), params={"act_type": t}, domain=_ANY, dtypes=_HALVES) for t in _ACTIVATIONS]
    + [Sample([_SPECIAL], params={"act_type": t}, grad=False) for t in ("sigmoid", "tanh", "softrelu")]
    # MXNet's relu in float32 turns NaNs into 0; its gradient of softsign at infinity is 0, though its value is NaN.
    + [
        Sample([_SPECIAL], params={"act_type": "relu"}, grad=False, dtypes="float64"),
        Sample([_SPECIAL[1:-2]], params={"act_type": "softsign"}, grad=False),
    ]
    + [
        Sample((2, 3, 2, 3), params={"act_type": "tanh"}),
        Sample((7, 40), params={"act_type": "softsign"}, domain=_ANY),
        Sample((2, 0), params={"act_type": "relu"}),
    ],
    "_backward_Activation": [
        Sample((3, 4), (3, 4), params={"act_type": t}, domain=_ANY, mxnet="internal") for t in _ACTIVATIONS
    ],
    "hard_sigmoid": [
        Sample((3, 4), domain=_ANY, dtypes=_HALVES),
        Sample([_SPECIAL], grad=False),
        Sample((3, 4), params={"alpha": 0.7, "beta": 0.4}),
        Sample((3, 4), params={"alpha": -0.3, "beta": "0"}, domain=(-5.0, 4.0)),
        Sample((0, 2), params={"alpha": 1}),
    ],
    "smooth_l1": [
        Sample([[-2.0, -0.4, 0.3, 1.7]], params={"scalar": 1.0}, dtypes=_HALVES),
        Sample([_SPECIAL], grad=False),
        Sample((0, 2)),
        Sample([[-2.0, -0.2, 0.1, 0.3, 1.7]], params={"scalar": 2.5}),
        Sample((3, 4), params={"scalar": "0.5", "is_int": False}),
        Sample((3, 4), params={"scalar": 0}),
        Sample(Ints((2, 3), -4, 5), params={"scalar": 1.0}, dtypes="int8 int32 int64"),
    ],
    **{
        name: _smooth(name)
        for name in (
            "negative abs exp expm1 log log2 log10 log1p sqrt rsqrt "
            "cbrt rcbrt square reciprocal sin cos tan arcsin arccos arctan "
            "sinh cosh tanh arcsinh arccosh arctanh degrees radians relu sigmoid "
            "softsign erf erfinv gamma gammaln "
        ).split()
    },
    "_digamma": [Sample((3, 4), domain=_POS, grad=False, mxnet="internal")],
    **dict.fromkeys("sign floor ceil trunc fix rint round logical_not".split(), _STEPS),
    "_copy": _COPIED,
    "BlockGrad": _COPIED,
}
