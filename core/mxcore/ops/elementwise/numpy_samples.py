"""Samples of the elementwise operators of ``mx.np``: those of ``mx.nd``, and dtypes that differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Ints, Sample, Values

__all__ = ["numpy_samples"]

_INF, _NAN = float("inf"), float("nan")
_HALVES = "float16 float32 float64"
_WHOLE = "uint8 int8 int32 int64"
_NO_TRUTH, _ONE = "MXNet refuses truth values there", "MXNet wants one dtype there"
_NO_WHOLE = "MXNet refuses whole numbers there"
_OWN = "no operator of MXNet 1.9.1"
_TURNED = "forward only: MXNet exchanges number and array in the gradient"
_AT_ZERO = "forward only: MXNet has other gradients at 0"
_SHORT = "forward only: MXNet gives the gradient of whole numbers another dtype"
_BOOLS = Ints((2, 3), 0, 2, dtype="bool")

#: Functions of arrays whose dtypes MXNet mixes, in its own way.
_MIXES = frozenset("add multiply power".split())


def _mixed(name: str) -> list[Sample]:
    """Arrays of dtypes that differ."""
    whole, real = Ints((2, 3), 1, 4, dtype="int32"), Values((2, 1), 0.5, 1.5, dtype="float32")
    half, double = Values((3,), 0.5, 1.5, dtype="float16"), Values((2, 3), 0.5, 1.5, dtype="float64")
    byte, long = Ints((3,), 1, 4, dtype="uint8"), Ints((2, 1), 1, 4, dtype="int64")
    with_floats = _ONE if name not in (*_MIXES, "subtract", "mod", "true_divide") else _SHORT
    of_whole = _ONE if name not in _MIXES else _SHORT
    return [
        *[Sample(a, b, grad=False, mxnet=with_floats) for a, b in ((whole, real), (real, long), (half, long))],
        *[
            Sample(a, b, grad=False, mxnet=_ONE if name in ("true_divide",) else with_floats)
            for a, b in ((half, real), (double, real))
        ],
        *[Sample(a, b, grad=False, mxnet=of_whole) for a, b in ((byte, long), (whole, byte))],
        Sample(_BOOLS, whole, grad=False, mxnet=of_whole),
        Sample(real, _BOOLS, grad=False, mxnet=with_floats),
        Sample(double, real, mxnet=False),
    ]


def _numbers(count: int) -> list[Sample]:
    """Arrays without dimensions, beside others."""
    return [Sample(*[()] * count, domain=(0.5, 1.5)), *([Sample((), (2, 3), domain=(0.5, 1.5))] if count == 2 else [])]


def _whole(name: str) -> list[Sample]:
    found = [
        Sample(Ints((3, 5), -5, 6), Ints((3, 5), 1, 9), dtypes="int8 int32 int64"),
        Sample(Ints((3, 1), 0, 9), Ints((5,), 0, 9), dtypes="uint8 int32"),
        Sample((2, 0), (2, 1), dtypes="int32"),
        Sample(Ints((), 2, 9), Ints((), 2, 9), dtypes="int64"),
        Sample(Ints((2, 3), 0, 9, dtype="uint8"), Ints((3,), 0, 9, dtype="int64"), mxnet=_ONE),
    ]
    if name != "gcd":
        found.append(Sample(_BOOLS, Ints((3,), 0, 2, dtype="bool"), grad=False))
    return found if name != "gcd" else [_as(s, _OWN) for s in found]


def _as(sample: Sample, mxnet: bool | str) -> Sample:
    """A sample that MXNet runs, or not, for another reason."""
    again: Sample = object.__new__(Sample)
    again.__dict__.update(sample.__dict__)
    again.mxnet = mxnet
    return again


_TESTED = [
    Sample([[-_INF, -1.5, -0.0, 0.0, 2.0, _INF, _NAN]], dtypes=_HALVES),
    Sample(Ints((2, 3), 0, 3), dtypes=_WHOLE),
    Sample(_BOOLS),
    Sample((0, 2)),
    Sample(()),
]
_ROUNDED = [
    Sample([[-2.5, -1.5, -0.5, -0.0, 0.26, 0.5, 1.5, 3.14159]], params={"decimals": d}, grad=False) for d in (0, 1, -1)
] + [
    Sample([[-2.5, 0.5, 1.26]], dtypes="float16 float64", grad=False, mxnet="MXNet refuses float16 there"),
    Sample([-_INF, _INF, _NAN], grad=False),
    Sample(Ints((2, 5), -50, 50), dtypes="int32 int64"),
    Sample(Ints((2, 5), -50, 50), params={"decimals": -1}, dtypes="int8 int32", mxnet="MXNet cuts there"),
    Sample(_BOOLS, mxnet=_NO_TRUTH),
    Sample((), params={"decimals": 2}, grad=False),
    Sample((0, 2), grad=False),
]
_REPLACED = [
    Sample([[-1.5, 0.0, 2.0, _NAN]], dtypes=_HALVES, grad=False),
    Sample([[-_INF, _INF]], dtypes="float64", grad=False),  # the largest number is that of the dtype
    Sample([[-_INF, -1.5, _INF, _NAN]], params={"nan": 2.0, "posinf": 5.5, "neginf": -3}, grad=False),
    Sample((3, 4), params={"copy": False, "posinf": 1.0}),
    Sample(Ints((2, 3), -3, 3), dtypes="int8 int32 int64"),
    Sample(_BOOLS),
    Sample(()),
    Sample((0, 2)),
]


def _compared(nd: list[Any]) -> list[Any]:
    return [
        *nd,
        *_numbers(2),
        Sample(_BOOLS, Ints((2, 3), 0, 2, dtype="bool")),
        Sample(Ints((2, 3), 0, 3, dtype="int64"), Values((3,), dtype="float32"), mxnet=_ONE),
        Sample(Ints((2, 3), 0, 3, dtype="uint8"), Ints((2, 1), -2, 3, dtype="int8"), mxnet=_ONE),
        Sample(np.array([16777217, 3], np.int64), np.array([16777216, 3], np.float32), mxnet=_ONE),
    ]


def _compared_with_number() -> list[Any]:
    return [
        Sample([[-1.0, 0.0, 1.0]], params={"scalar": 1.0}, dtypes=_HALVES),
        Sample([[-_INF, -0.0, _NAN, _INF]], params={"scalar": "0"}),
        Sample(Ints((2, 5), 0, 3), params={"scalar": 1, "is_int": True}, dtypes=_WHOLE),
        Sample(_BOOLS, params={"scalar": 1.0}),
        Sample((0, 3), params={"scalar": "inf"}),
        Sample((), params={"scalar": 0.5}),
        Sample(Ints((2, 5), 0, 4), params={"scalar": 1.5}, dtypes="uint8 int32", mxnet="MXNet compares with 1"),
        Sample(Ints((2, 5), 0, 4), params={"scalar": -1}, dtypes="uint8", mxnet="MXNet compares with 255"),
    ]


def _with_number(nd: list[Any], name: str) -> list[Any]:
    found = [s for s in nd if not (s.params.get("is_int") is False and "true_divide" in name)]
    return [*found, Sample((), params={"scalar": 1.5}, domain=(0.5, 1.5)), Sample(_BOOLS, params={"scalar": 3})]


def _further(name: str, two: bool, on_the_left: bool = False) -> list[Any]:
    """Samples of functions that ``mx.nd`` does not have, over two arrays or an array and a number."""
    own = name in ("floor_divide", "fmod", "fmax", "fmin")
    far = [-_INF, -2.5, -1.0, 0.0, 1.0, 3.0, _INF]
    odd = _OWN if own else "MXNet has other signs beside -0 and NaN" if name == "copysign" else True
    smooth = (0.6, 3.0) if name in ("fmod", "floor_divide") else (0.3, 2.0)
    grad = name != "floor_divide"
    if not two:
        whole = _OWN if own else _TURNED if on_the_left and name == "arctan2" else True
        return [
            Sample((3, 4), params={"scalar": 1.25}, domain=smooth, dtypes=_HALVES, grad=grad, mxnet=whole),
            Sample([[-2.5, -1.25, 0.5, 3.0]], params={"scalar": -2.0}, grad=False, mxnet=whole),
            Sample((), params={"scalar": 2}, domain=smooth, grad=grad, mxnet=whole),
            Sample((0, 2), params={"scalar": 2}, mxnet=whole),
            Sample(Ints((2, 3), 1, 5), params={"scalar": 2.6}, dtypes="uint8 int32 int64", mxnet=whole),
            Sample(_BOOLS, params={"scalar": 2}, grad=False, mxnet=whole),
        ]
    return [
        Sample((3, 4), (3, 4), domain=smooth, dtypes=_HALVES, grad=grad, mxnet=_OWN if own else True),
        Sample((2, 1, 4), (3, 1), domain=smooth, grad=grad, mxnet=_OWN if own else True),
        Sample([[v] for v in far], [far], grad=False, mxnet=_OWN if own else _AT_ZERO if name == "copysign" else True),
        Sample([[v] for v in (-2.0, -0.0, _NAN)], [[-0.0, 0.0, _NAN, 2.0]], grad=False, mxnet=odd),
        *[_as(s, _OWN) if own else s for s in _numbers(2)],
        Sample((2, 0), (1,), mxnet=_OWN if own else True),
        Sample(
            Ints((3, 5), 1, 7),
            Ints((3, 5), 1, 4),
            dtypes=_WHOLE,
            mxnet=_OWN if own else True if name in ("copysign", "ldexp") else _NO_WHOLE,
        ),
        Sample(_BOOLS, _BOOLS, grad=False, mxnet=_OWN if own else _NO_TRUTH),
        *(_mixed(name) if not own else [_as(s, _OWN) for s in _mixed(name)]),
    ]


_LOGIC = [
    Sample([[-1.0, 0.0, _NAN]], [[0.0], [2.0]], dtypes=_HALVES, mxnet=_OWN),
    Sample(Ints((2, 3), 0, 2, dtype="int32"), _BOOLS, mxnet=_OWN),
    Sample((), (0, 2), mxnet=_OWN),
]
_LOGIC_WITH_NUMBER = [
    Sample([[-1.0, 0.0, _NAN]], params={"scalar": s}, dtypes=_HALVES, mxnet=_OWN) for s in (0, 2.5)
] + [Sample(Ints((2, 3), 0, 2), params={"scalar": 1}, dtypes="bool int32", mxnet=_OWN), Sample((0, 2), mxnet=_OWN)]

_SHIFTS = [
    Sample(Ints((3, 5), -5, 6), Ints((3, 5), 0, 7), dtypes="int8 int32 int64", mxnet=_OWN),
    Sample(Ints((3, 1), 0, 99), Ints((5,), 0, 7), dtypes="uint8 int32", mxnet=_OWN),
    Sample(Ints((), 0, 9), Ints((), 0, 7), dtypes="int64", mxnet=_OWN),
    Sample((2, 0), (2, 1), dtypes="int32", mxnet=_OWN),
    Sample(Ints((2, 3), 0, 9, dtype="uint8"), Ints((3,), 0, 7, dtype="int64"), mxnet=_OWN),
]
_SHIFTS_WITH_NUMBER = [
    Sample(Ints((2, 3), 0, 7), params={"scalar": s}, dtypes="uint8 int32 int64", mxnet=_OWN) for s in (3, 2.7)
] + [Sample((0, 2), params={"scalar": 2}, dtypes="int32", mxnet=_OWN)]


def numpy_samples(nd: dict[str, Any]) -> dict[str, Any]:
    """Operator -> samples, from those of the operators of ``mx.nd``."""
    found: dict[str, Any] = {}
    for name in """
    exp expm1 log log2 log10 log1p sqrt cbrt reciprocal sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh
    arctanh degrees radians absolute negative square ceil fix floor rint sign trunc
    """.split():
        found[f"_npi_{name}"] = [
            *nd["abs" if name == "absolute" else name],
            *_numbers(1),
            *([] if name == "arccosh" else [Sample(_BOOLS, grad=False, mxnet=_NO_TRUTH)]),
        ]
    for name in "isfinite isinf isnan isneginf isposinf logical_not".split():
        found[f"_npi_{name}"] = _TESTED
    found["_npi_bitwise_not"] = [
        Sample(Ints((2, 3), 0, 9), dtypes=_WHOLE),
        Sample(_BOOLS),
        Sample(Ints((), 0, 9), dtypes="int32"),
        Sample((0, 2), dtypes="int32"),
    ]
    found["_npi_around"], found["_npi_nan_to_num"] = _ROUNDED, _REPLACED
    found["_npi_clip"] = [
        *[_as(s, "another name of clip there") for s in nd["clip"]],
        Sample((3, 4), params={"a_min": 0.5, "a_max": -0.5}, grad=False, mxnet=False),
        Sample(_BOOLS, params={"a_min": 0, "a_max": 3}, mxnet=_NO_TRUTH),
        Sample((), params={"a_min": -9, "a_max": 9}, mxnet="another name of clip there"),
    ]
    of_nd = {"subtract": "sub", "multiply": "mul", "true_divide": "div"}
    for name in "add subtract multiply true_divide mod power maximum minimum hypot".split():
        same = nd[f"broadcast_{of_nd.get(name, name)}"]
        if name == "hypot":
            same = [_as(s, _NO_WHOLE) if s.dtypes[0].startswith("int") else s for s in same]
        found[f"_npi_{name}"] = [*same, *_numbers(2), *_mixed(name)]
        if name != "subtract":
            refused = name in ("maximum", "minimum", "hypot", "mod")
            found[f"_npi_{name}"].append(Sample(_BOOLS, _BOOLS, grad=False, mxnet=_NO_TRUTH if refused else _SHORT))
        if name in ("maximum", "minimum"):
            found[f"_npi_{name}"] = [_as(s, f"another name of broadcast_{name} there") for s in found[f"_npi_{name}"]]
    names = {"less": "lesser", "less_equal": "lesser_equal"}
    for name in "equal not_equal greater greater_equal less less_equal".split():
        found[f"_npi_{name}"] = _compared(nd[f"broadcast_{names.get(name, name)}"])
        found[f"_npi_{name}_scalar"] = _compared_with_number()
    for name, of in {
        "add": "plus",
        "subtract": "minus",
        "rsubtract": "rminus",
        "multiply": "mul",
        "true_divide": "div",
        "rtrue_divide": "rdiv",
        **{n: n for n in "mod rmod power rpower maximum minimum hypot".split()},
    }.items():
        found[f"_npi_{name}_scalar"] = _with_number(nd[f"_{of}_scalar"], name)
        if name in ("maximum", "minimum", "hypot"):
            samples = found[f"_npi_{name}_scalar"]
            found[f"_npi_{name}_scalar"] = [_as(s, f"another name of _{name}_scalar there") for s in samples]
    for name in "arctan2 copysign ldexp floor_divide fmod fmax fmin".split():
        found[f"_npi_{name}"] = _further(name, True)
        found[f"_npi_{name}_scalar"] = _further(name, False)
        if name not in ("fmax", "fmin"):
            found[f"_npi_r{name}_scalar"] = _further(name, False, True)
    for name in "lcm gcd bitwise_and bitwise_or bitwise_xor".split():
        found[f"_npi_{name}"] = _whole(name)
        found[f"_npi_{name}_scalar"] = [
            Sample(
                Ints((2, 3), 0, 9),
                params={"scalar": s},
                dtypes="uint8 int32 int64",
                mxnet=_OWN if name == "gcd" else True,
            )
            for s in (6, 3.7)
        ] + [
            Sample((0, 2), params={"scalar": 2}, dtypes="int32", mxnet=_OWN if name == "gcd" else True),
            Sample(_BOOLS, params={"scalar": 2}, mxnet=_NO_TRUTH if name in ("lcm", "gcd") else True),
        ]
    for name in "bitwise_left_shift bitwise_right_shift".split():
        found[f"_npi_{name}"] = _SHIFTS
        found[f"_npi_{name}_scalar"] = found[f"_npi_r{name}_scalar"] = _SHIFTS_WITH_NUMBER
    for name in "logical_and logical_or logical_xor".split():
        found[f"_npi_{name}"], found[f"_npi_{name}_scalar"] = _LOGIC, _LOGIC_WITH_NUMBER
    return found
