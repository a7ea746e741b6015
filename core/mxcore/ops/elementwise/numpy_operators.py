"""The elementwise operators of one array of ``mx.np``: those of ``mx.nd`` under names of their own, and further ones.

Rows of tables. Functions whose values are no whole numbers are computed in floats and cut, where inputs are whole
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._core.op import Op, op
from ..._core.params import Params
from ...parameters import Bool, Float, Int
from ...twins import twin
from ...typing import Array, Call
from ..common.bodies import wide
from .casts import clip
from .functions import FUNCTIONS
from .numpy_rules import BOOL, FLOAT32, FLOAT64, INT64, cast_first, common_dtype, rule_of_one, truth, truth_as, whole

__all__ = ["OPERATORS", "common_dtype"]

_OF = {op.name: op for op in FUNCTIONS}


def _in_floats(body: Any) -> Any:
    def compute(k: Call, p: Params, x: Array) -> Any:
        if x.dtype.kind in "iub":
            x = x.astype(FLOAT32 if x.dtype.itemsize <= 2 else FLOAT64)
        return body(k, p, x)

    return compute


#: Operators whose values are no whole numbers: names in ``mx.np``, where they differ from those of ``mx.nd``.
_SMOOTH = {
    n: n
    for n in """
    exp expm1 log log2 log10 log1p sqrt cbrt reciprocal sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh
    arctanh degrees radians
    """.split()
}
#: Operators that stay within the whole numbers, and what truth values become.
_STEADY: dict[str, tuple[str, Any]] = {
    "absolute": ("abs", BOOL),
    "ceil": ("ceil", BOOL),
    "fix": ("fix", BOOL),
    "floor": ("floor", BOOL),
    "negative": ("negative", INT64),
    "rint": ("rint", BOOL),
    "sign": ("sign", INT64),
    "square": ("square", INT64),
    "trunc": ("trunc", BOOL),
}
_ROUNDS = frozenset("ceil fix floor rint trunc".split())
#: Tests of each element: (function, what it says).
_TESTS: dict[str, tuple[Any, str]] = {
    "isfinite": ("isfinite", "Whether each element is neither infinite nor a NaN."),
    "isinf": ("isinf", "Whether each element is infinite."),
    "isnan": ("isnan", "Whether each element is a NaN."),
    "isneginf": (lambda xp, x: x == -math.inf, "Whether each element is minus infinity."),
    "isposinf": (lambda xp, x: x == math.inf, "Whether each element is plus infinity."),
    "logical_not": (lambda xp, x: x == 0, "Whether each element is 0."),
}


def _steady_body(name: str, body: Any, of_truth: Any) -> Any:
    def compute(k: Call, p: Params, x: Array) -> Any:
        if x.dtype.kind in "iub" and (name in _ROUNDS or x.dtype == BOOL == of_truth):
            return x.copy()
        return body(k, p, x.astype(truth_as(of_truth)(x.dtype), copy=False))

    return compute


def _of_one() -> Iterator[Op]:
    for name, of in _SMOOTH.items():
        made = twin(f"_npi_{name}", _OF[of], inputs="x", body=_in_floats(_OF[of].body))
        made.dtype(rule_of_one(truth_as(FLOAT32)))
        yield made
    for name, (of, of_truth) in _STEADY.items():
        made = twin(
            f"_npi_{name}",
            _OF[of],
            inputs="x",
            aliases=["_npi_abs"] if name == "absolute" else (),
            body=_steady_body(name, _OF[of].body, of_truth),
        )
        made.dtype(rule_of_one(truth_as(of_truth)))
        yield made
    for name, (fn, doc) in _TESTS.items():
        f = fn if callable(fn) else lambda xp, x, n=fn: getattr(xp, n)(x)
        made = Op(
            f"_npi_{name}",
            lambda k, p, x, f=f: f(k.xp, x),
            inputs="x",
            grad=None,
            doc=f"{doc}\n\nParameters\n----------\nx : array\n    Any shape and dtype.",
        )
        made.dtype(rule_of_one(truth))
        yield made


@op("_npi_bitwise_not", inputs="x", alias="x->output", grad=None)
def bitwise_not(k: Call, p: Params, x: Array) -> Array:
    """All bits the other way: the opposite of truth values.

    Parameters
    ----------
    x : array
        Of whole numbers or truth values.
    """
    return k.xp.invert(x)


bitwise_not.dtype(rule_of_one(whole))


@op("_npi_around", inputs="x", decimals=Int(0), expr=lambda p: None if p.decimals else "rint(x)", grad=None)
def around(k: Call, p: Params, x: Array) -> Array:
    """Round to a number of decimals, halves to the even neighbour.

    Parameters
    ----------
    x : array
    decimals : int
        Below 0 for places left of the point.
    """
    whole = x.dtype.kind in "iub"
    return x.copy() if whole and (p.decimals >= 0 or x.dtype == BOOL) else x.round(p.decimals)


@op(
    "_npi_nan_to_num",
    inputs="data",
    copy=Bool(True),
    nan=Float(0.0),
    posinf=Float(None, optional=True),
    neginf=Float(None, optional=True),
    grad=lambda F, dy, data: dy * (F.abs(data) < math.inf),
)
def nan_to_num(k: Call, p: Params, data: Array) -> Array:
    """Other numbers in the place of NaNs and infinities.

    Parameters
    ----------
    data : array
    copy : bool
        Has no effect: who wants to write to `data` gives it as `out`.
    nan : float
        In the place of NaNs.
    posinf, neginf : float or None
        In the place of infinities: unless told, the largest and the lowest finite number.
    """
    if data.dtype.kind in "iub":
        return data.copy()
    posinf, neginf = p.posinf, p.neginf
    if data.dtype.kind == "V":  # bfloat16, of which NumPy knows neither NaN nor limits
        most = float(np.uint16(0x7F7F).view(data.dtype))
        posinf, neginf = most if posinf is None else posinf, -most if neginf is None else neginf
        data = wide(data)
    return k.xp.nan_to_num(data, nan=p.nan, posinf=posinf, neginf=neginf)


np_clip = twin("_npi_clip", clip, body=cast_first(clip.body, truth_as(INT64)))
np_clip.shape_rule = None  # limits may have changed places: the upper one counts, as in NumPy
np_clip.dtype(rule_of_one(truth_as(INT64)))


OPERATORS = [*_of_one()]
