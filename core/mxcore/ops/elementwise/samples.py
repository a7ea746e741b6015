"""Samples of the operators of :mod:`mxcore.ops.elementwise`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Distinct, Ints, Sample, Values
from .numpy_samples import numpy_samples

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


def _elementwise(family: str, domain: Any) -> Any:
    return [
        Sample((3, 4), (3, 4), domain=domain, dtypes=_HALVES),
        Sample((0, 4), (0, 4), domain=domain),
        Sample(Ints((3, 5), 1, 7), Ints((3, 5), 1, 4), dtypes=_WHOLE),
        *([_WHOLE_POWERS] if family == "power" else []),
    ]


def _broadcasting(family: str, domain: Any) -> Any:
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


def _with_number(base: str) -> Any:
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

#: Functions that whole numbers above 0 are outside the domain of, or at its edge.
_WITHIN_ONE = frozenset("arcsin arccos arctanh erfinv".split())
#: Functions whose gradients MXNet gets wrong at their poles.
_POLES = frozenset("gamma gammaln".split())
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


def _smooth(name: str) -> Any:
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

_AROUND_STEPS = [-2.5, -1.5, -0.5, 0.0, 0.3, 0.5, 1.5, 2.5]
_STRAIGHT = [
    Sample(_AROUND_STEPS, grad=False),
    Sample(Distinct((3, 4), -3.1, 2.9), grad=False, dtypes="float16 float32 float64"),
    Sample((0, 3), grad=False),
    Sample(np.array([-2, 0, 3], np.int32), grad=False),
]

_ALL_DTYPES = "int8 uint8 int32 int64 float16 float32 float64"


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
    "amp_cast": [
        Sample((2, 3), params={"dtype": "float64"}),
        Sample((2, 3), params={"dtype": "float16"}, grad=False),
        Sample(np.array([[1, 2]], np.int32), params={"dtype": "float16"}, grad=False),
        Sample((2, 3), params={"dtype": "float32"}, dtypes="float16 float32 float64", grad=False),
        Sample((5,), params={"dtype": "float16"}, dtypes="float16", grad=False),
        Sample(Ints((2, 3), 0, 9), params={"dtype": "float32"}, dtypes="uint8 int8 int32 int64"),
        Sample([[float("nan"), float("inf"), 6e4]], params={"dtype": "float16"}, grad=False),
        Sample((0, 2), params={"dtype": "float32"}, grad=False),
    ],
    "amp_multicast": [
        Sample(Values((2, 3), dtype="float16"), (2, 3), params={"num_outputs": 2, "cast_narrow": n})
        for n in (False, True)
    ]
    + [
        Sample(
            Values((2,), dtype=a),
            Values((1, 3), dtype=b),
            Values((2, 2), dtype=c),
            params={"num_outputs": 3, "cast_narrow": n},
        )
        for a, b, c, n in (("float64", "float16", "float32", "1"), ("float32", "float32", "float64", "False"))
    ]
    + [
        Sample((2, 3), Ints((2,), 0, 9, dtype="int32"), params={"num_outputs": "2"}),
        Sample((2, 3), params={"num_outputs": 1}),
        Sample((0, 3), (2,), params={"num_outputs": 2}),
        Sample((2, 3), (1, 3), params={"num_outputs": 2, "cast_narrow": "0"}),
    ],
    "_contrib_gradientmultiplier": [
        Sample((2, 3), params={"scalar": -0.5}, grad=False),
        Sample((2, 3)),
        Sample(np.array([-2, 0, 3], np.int32), params={"scalar": 3}, grad=False),
        Sample((3, 1), params={"scalar": "0"}, grad=False, dtypes="float16 float32 float64"),
        Sample((0, 3), params={"scalar": 2.0}, grad=False),
    ],
    "_contrib_round_ste": _STRAIGHT,
    "_contrib_sign_ste": _STRAIGHT,
    "_contrib_backward_gradientmultiplier": [
        Sample((2, 3), params={"scalar": 2.5}, dtypes="float16 float32 float64"),
        Sample(np.array([-2, 0, 3], np.int32), params={"scalar": 3}, grad=False),
        Sample((0, 3), params={"scalar": "-1"}),
        Sample((5,), params={"scalar": -0.25}),
    ],
    "_contrib_quadratic": [
        Sample((2, 3), params={"a": 3.0, "b": -5.0, "c": 1.5}),
        Sample((2, 3)),
        Sample((2, 3), params={"b": 0.5}, dtypes="float16 float32 float64"),
        Sample(np.array([-2, 0, 3, 200], np.int32), params={"a": 3.0, "b": 5.0, "c": 1.5}, grad=False),
        Sample((0, 3), params={"a": 1.0}),
    ],
    "_contrib_backward_quadratic": [Sample((2, 3), (2, 3), params={"a": 3.0, "b": -5.0, "c": 1.5}, mxnet="internal")],
    "_identity_with_attr_like_rhs": [
        Sample((2, 3), (2, 3)),
        Sample((5,), (5,)),
        Sample((1, 3, 1), (1, 3, 1), dtypes=_ALL_DTYPES),
        Sample((0, 2), (0, 2)),
    ],
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
}
SAMPLES |= numpy_samples(SAMPLES)
