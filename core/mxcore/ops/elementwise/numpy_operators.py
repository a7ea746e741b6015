"""The elementwise operators of ``mx.np``: those of ``mx.nd`` under names of their own, over dtypes that may differ.

Rows of tables. Whole numbers never widen floats, as in MXNet; where MXNet refuses two dtypes, they are promoted as
NumPy does. Functions whose values are no whole numbers are computed in floats and cut, where inputs are whole numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..._core.infer import merge_dtype
from ..._core.kernels import Spec
from ..._core.op import Op, op
from ..._core.params import Params
from ...elementwise import broadcast, scalar, with_number
from ...parameters import Bool, Float, Int
from ...twins import twin
from ...typing import Array, Call, Operand, Operators
from .arithmetic import ARITHMETIC, MATH, elementwise_rule
from .casts import clip
from .functions import FUNCTIONS

__all__ = ["OPERATORS", "common_dtype"]

_BOOL, _INT8, _INT64 = np.dtype("bool"), np.dtype("int8"), np.dtype("int64")
_FLOAT32, _FLOAT64 = np.dtype("float32"), np.dtype("float64")
_OF = {op.name: op for op in (*ARITHMETIC, *FUNCTIONS)}


# -- dtypes of results ----------------------------------------------------------------------------------------------


def common_dtype(*dtypes: Any) -> Any:
    """The dtype in which arrays of several dtypes are computed: the widest float, else what NumPy promotes to.

    Whole numbers never widen floats, as in MXNet: int64 and float16 give float16.
    """
    floats = [t for t in dtypes if t.kind not in "iub"]
    return np.result_type(*(floats or dtypes))


def _floating(*dtypes: Any) -> Any:
    """Of values that are no whole numbers, where those of one dtype are counted as float32."""
    found = common_dtype(*dtypes)
    return _FLOAT32 if found.kind in "iub" else found


def _measured(*dtypes: Any) -> Any:
    """The common dtype, float32 of truth values, which have neither sign nor exponent."""
    found = common_dtype(*dtypes)
    return _FLOAT32 if found == _BOOL else found


def _counted(*dtypes: Any) -> Any:
    """The common dtype, int8 of truth values, as in NumPy."""
    found = common_dtype(*dtypes)
    return _INT8 if found == _BOOL else found


def _signed(*dtypes: Any) -> Any:
    found = common_dtype(*dtypes)
    if found == _BOOL:
        raise TypeError("truth values cannot be subtracted; use ^ (np.logical_xor), or cast them first")
    return found


def _whole(*dtypes: Any) -> Any:
    found = common_dtype(*dtypes)
    if found.kind not in "iub":
        raise TypeError(f"whole numbers or truth values are needed, got {found.name}; x.astype('int64') makes some")
    return found


def _truth(*dtypes: Any) -> Any:
    return _BOOL


def _rule_of_two(dtype: Callable[..., Any]) -> Callable[..., Any]:
    def rule(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        a, b = ins
        if a is not None and b is not None:
            return ins, [dtype(a, b)]
        if dtype is _truth:  # what is not known yet is like the rest
            t = a if b is None else b
            return [t, t], [_BOOL]
        t = merge_dtype(a if b is None else b, outs[0] if a is b else None)
        return [t, t], [None if t is None else dtype(t, t)]

    return rule


def _rule_of_one(dtype: Callable[..., Any]) -> Callable[..., Any]:
    def rule(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        if ins[0] is None and (outs[0] is None or dtype is _truth):
            return ins, [_BOOL if dtype is _truth else None]
        t = outs[0] if ins[0] is None else ins[0]
        return [t], [dtype(t)]

    return rule


# -- gradients of inputs that differ in shape and dtype -------------------------------------------------------------


def _dtype(x: Any) -> Any:
    """The dtype of an array, or of what the tape keeps for its shape; None in a graph."""
    return getattr(getattr(x, "_data", x), "dtype", None)


def _like(F: Operators, x: Any, to: Any) -> Any:
    """A value in the dtype of another one; where graphs find that it has it, nothing is left of this."""
    t = _dtype(x)
    return x if t is not None and t is _dtype(to) else F._cast_like(x, to)


def _back(F: Operators, x: Any, to: Any) -> Any:
    """A gradient, summed and cast to what it is the gradient of."""
    return _like(F, F._sum_like(x, to), to)


def _of_arrays(g: Any) -> Any:
    """The gradient rule of two arrays that may differ, of one for arrays of one shape and dtype.

    Arrays that are alike, the most frequent case by far, are seen at once; a graph does not know.
    """
    if g.__code__.co_argcount == 2:

        def linear(F: Operators, dy: Operand, like_lhs: Any, like_rhs: Any) -> Any:
            da, db = g(F, dy)
            try:
                if like_lhs.shape == like_rhs.shape and like_lhs.dtype is like_rhs.dtype:
                    return da, db
            except AttributeError:
                pass
            return _back(F, da, like_lhs), _back(F, db, like_rhs)

        return linear

    def rule(F: Operators, dy: Any, lhs: Any, rhs: Any) -> Any:
        try:
            a, b = lhs._data, rhs._data
            if a.shape == b.shape and a.dtype is b.dtype is dy._data.dtype:
                return g(F, dy, lhs, rhs)
        except AttributeError:
            pass
        da, db = g(F, dy, _like(F, lhs, dy), _like(F, rhs, dy))
        return _back(F, da, lhs), _back(F, db, rhs)

    return rule


def _of_quotient(rule: Any) -> Any:
    """The gradient rule of a quotient with a number, of an array whose dtype may not be that of the quotient."""
    if rule.__code__.co_argcount == 3:
        return lambda F, p, dy, like_data: _like(F, rule(F, p, dy), like_data)
    return lambda F, p, dy, data: _like(F, rule(F, p, dy, _like(F, data, dy)), data)


# -- functions of one array -----------------------------------------------------------------------------------------


def _in_floats(body: Any) -> Any:
    def compute(k: Call, p: Params, x: Array) -> Any:
        if x.dtype.kind in "iub":
            x = x.astype(_FLOAT32 if x.dtype.itemsize <= 2 else _FLOAT64)
        return body(k, p, x)

    return compute


def _cast_first(body: Any, dtype: Callable[[Any], Any]) -> Any:
    return lambda k, p, x: body(k, p, x.astype(dtype(x.dtype), copy=False))


def _truth_as(other: Any) -> Callable[[Any], Any]:
    return lambda t: other if t == _BOOL else t


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
    "absolute": ("abs", _BOOL),
    "ceil": ("ceil", _BOOL),
    "fix": ("fix", _BOOL),
    "floor": ("floor", _BOOL),
    "negative": ("negative", _INT64),
    "rint": ("rint", _BOOL),
    "sign": ("sign", _INT64),
    "square": ("square", _INT64),
    "trunc": ("trunc", _BOOL),
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
        if x.dtype.kind in "iub" and (name in _ROUNDS or x.dtype == _BOOL == of_truth):
            return x.copy()
        return body(k, p, x.astype(_truth_as(of_truth)(x.dtype), copy=False))

    return compute


def _of_one() -> Iterator[Op]:
    for name, of in _SMOOTH.items():
        made = twin(
            f"_npi_{name}", _OF[of], inputs="x", body=_in_floats(_OF[of].body), doc=_OF[of].doc.replace("data :", "x :")
        )
        made.dtype(_rule_of_one(_truth_as(_FLOAT32)))
        yield made
    for name, (of, of_truth) in _STEADY.items():
        made = twin(
            f"_npi_{name}",
            _OF[of],
            inputs="x",
            aliases=["_npi_abs"] if name == "absolute" else (),
            body=_steady_body(name, _OF[of].body, of_truth),
            doc=_OF[of].doc.replace("data :", "x :"),
        )
        made.dtype(_rule_of_one(_truth_as(of_truth)))
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
        made.dtype(_rule_of_one(_truth))
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


bitwise_not.dtype(_rule_of_one(_whole))


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
    return x.copy() if whole and (p.decimals >= 0 or x.dtype == _BOOL) else x.round(p.decimals)


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
    return k.xp.nan_to_num(data, nan=p.nan, posinf=p.posinf, neginf=p.neginf)


np_clip = twin("_npi_clip", clip, body=_cast_first(clip.body, _truth_as(_INT64)))
np_clip.shape_rule = None  # limits may have changed places: the upper one counts, as in NumPy
np_clip.dtype(_rule_of_one(_truth_as(_INT64)))


# -- functions of two arrays ----------------------------------------------------------------------------------------


def _one_dtype(p: Params, *specs: Spec) -> bool:
    return bool(specs[0].dtype == specs[1].dtype and specs[0].dtype.kind not in "iub")


def _is_float(p: Params, *specs: Spec) -> bool:
    return specs[0].dtype.kind not in "iub"


def _never(p: Params, *specs: Spec) -> bool:
    return False


def _in_one_dtype(body: Any, dtype: Callable[..., Any]) -> Any:
    """A body over arrays of one dtype, over arrays that are cast to that of the result first."""

    def compute(k: Call, p: Params, lhs: Array, rhs: Array) -> Any:
        t = dtype(lhs.dtype, rhs.dtype)
        return body(k, p, lhs.astype(t, copy=False), rhs.astype(t, copy=False))

    return compute


#: Name in ``mx.np`` -> (family of ``mx.nd``, names of the inputs, dtype of the result, the array function if it is
#: one).
_TWINS: dict[str, tuple[str, str, Callable[..., Any], str | None]] = {
    "add": ("add", "lhs rhs", common_dtype, "add"),
    "subtract": ("sub", "lhs rhs", _signed, "subtract"),
    "multiply": ("mul", "lhs rhs", common_dtype, "multiply"),
    "true_divide": ("div", "lhs rhs", _floating, "true_divide"),
    "mod": ("mod", "lhs rhs", _counted, None),
    "power": ("power", "lhs rhs", common_dtype, "power:float"),
    "maximum": ("maximum", "lhs rhs", common_dtype, "maximum"),
    "minimum": ("minimum", "lhs rhs", common_dtype, "minimum"),
    "hypot": ("hypot", "x1 x2", _floating, None),
}
_COMPARISONS = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "lesser",
    "less_equal": "lesser_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
}


def _copysign(xp: Any, a: Any, b: Any) -> Any:
    low = b < 0
    if b.dtype.kind not in "iub":
        low = low | (1 / b < 0)  # -0.0
    return xp.where(low, -xp.abs(a), xp.abs(a))


def _ldexp(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind in "iub":
        return xp.trunc(a * xp.exp2(b.astype(_FLOAT64)))
    return a * xp.exp2(b)


def _gcd(xp: Any, a: Any, b: Any) -> Any:
    a, b = xp.abs(a), xp.abs(b)
    # Euclid's steps; numbers of n bits take at most 1.45 n of them.
    for _ in range(math.ceil(1.45 * 8 * a.dtype.itemsize)):
        zero = b == 0
        a, b = xp.where(zero, a, b), xp.where(zero, b, xp.mod(a, xp.where(zero, xp.ones_like(b), b)))
    return a


def _lcm(xp: Any, a: Any, b: Any) -> Any:
    divisor = _gcd(xp, a, b)
    return xp.abs(xp.floor_divide(a, xp.where(divisor == 0, xp.ones_like(a), divisor)) * b)


def _floor_divide(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind not in "iub":
        return xp.floor_divide(a, b)
    zero = b == 0
    return xp.where(zero, xp.zeros_like(a), xp.floor_divide(a, xp.where(zero, xp.ones_like(b), b)))


def _fmod(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind not in "iub":
        return xp.fmod(a, b)
    zero = b == 0
    return xp.where(zero, xp.zeros_like(a), xp.fmod(a, xp.where(zero, xp.ones_like(b), b)))


def _logic(name: str) -> Any:
    return lambda xp, a, b: getattr(xp, name)(a != 0, b != 0)


def _copysign_grads(F: Operators, dy: Operand, a: Operand, b: Operand) -> Any:
    return dy * F.sign(a) * F._npi_rcopysign_scalar(b, scalar=1.0), F.zeros_like(b)


def _ldexp_grads(F: Operators, dy: Operand, a: Operand, b: Operand) -> Any:
    factor = dy * F._rpower_scalar(b, scalar=2.0)
    return factor, factor * a * math.log(2)


def _arctan2_grads(F: Operators, dy: Operand, a: Operand, b: Operand) -> Any:
    square = F.square(a) + F.square(b)
    return dy * b / square, -dy * a / square


#: Name -> (function over two arrays of one dtype, expr, gradients, dtype of the result, whether order matters, what it
#: computes).
_FURTHER: dict[str, tuple[Any, str | None, Any, Callable[..., Any], bool, str]] = {
    "arctan2": ("arctan2", "arctan2(a, b)", _arctan2_grads, _floating, True, "The angle of the point (rhs, lhs)."),
    "copysign": (
        _copysign,
        "-abs(a) if b < 0 or 1 / b < 0 else abs(a)",
        _copysign_grads,
        _measured,
        True,
        "`lhs` with the signs of `rhs`; that of a NaN counts as plus.",
    ),
    "ldexp": (_ldexp, "a * power(2, b)", _ldexp_grads, _measured, True, "``lhs * 2**rhs``."),
    "lcm": (_lcm, None, None, _whole, False, "The least common multiple."),
    "gcd": (_gcd, None, None, _whole, False, "The greatest common divisor."),
    "bitwise_and": ("bitwise_and", None, None, _whole, False, "Bits that are set in both."),
    "bitwise_or": ("bitwise_or", None, None, _whole, False, "Bits that are set in one or both."),
    "bitwise_xor": ("bitwise_xor", None, None, _whole, False, "Bits that differ."),
    "floor_divide": (
        _floor_divide,
        "floordiv(a, b)",
        None,
        _counted,
        True,
        "The quotient, rounded down; 0 of whole numbers by 0.",
    ),
    "fmod": (
        _fmod,
        "fmod(a, b)",
        lambda F, dy, a, b: (dy, -dy * F.trunc(a / b)),
        _counted,
        True,
        "The remainder, with the sign of `lhs`; 0 of whole numbers by 0.",
    ),
    "fmax": (
        "fmax",
        "b if isnan(a) else (a if isnan(b) else maximum(a, b))",
        lambda F, dy, a, b: (dy * ((a >= b) + (b != b)), dy * ((a < b) + (a != a))),
        common_dtype,
        False,
        "The larger one; the other one beside a NaN.",
    ),
    "fmin": (
        "fmin",
        "b if isnan(a) else (a if isnan(b) else minimum(a, b))",
        lambda F, dy, a, b: (dy * ((a <= b) + (b != b)), dy * ((a > b) + (a != a))),
        common_dtype,
        False,
        "The smaller one; the other one beside a NaN.",
    ),
    "logical_and": (_logic("logical_and"), None, None, _truth, False, "Whether both are not 0."),
    "logical_or": (_logic("logical_or"), None, None, _truth, False, "Whether one or both are not 0."),
    "logical_xor": (_logic("logical_xor"), None, None, _truth, False, "Whether one alone is not 0."),
}
_BITS = frozenset("bitwise_and bitwise_or bitwise_xor".split())


def _compared_in(*dtypes: Any) -> Any:
    """Values are compared as NumPy promotes them, so that none is rounded to another one."""
    return np.result_type(*dtypes)


def _of_two() -> Iterator[Op]:
    for name, (of, inputs, dtype, direct) in _TWINS.items():
        base = _OF[f"broadcast_{of}"]
        made = twin(
            f"_npi_{name}",
            base,
            when=_one_dtype,
            inputs=inputs,
            body=_in_one_dtype(base.body, dtype),
            grad=_of_arrays(MATH[of][2]),
            direct=direct,
            alike=elementwise_rule(MATH[of][2]) if direct else None,
            doc=base.doc.replace("lhs, rhs :", f"{inputs.replace(' ', ', ')} :"),
        )
        made.dtype(_rule_of_two(dtype))
        yield made
    for name, of in _COMPARISONS.items():
        base = _OF[f"broadcast_{of}"]
        made = twin(
            f"_npi_{name}", base, when=_never, body=_in_one_dtype(base.body, _compared_in), direct=name, expr=None
        )
        made.dtype(_rule_of_two(_truth))
        yield made
    for name, (fn, expr, g, dtype, _, doc) in _FURTHER.items():
        f = fn if callable(fn) else lambda xp, a, b, n=fn: getattr(xp, n)(a, b)
        made = broadcast(f"_npi_{name}", f, expr=expr, grad=None if g is None else _of_arrays(g), doc=doc)
        made.body = _in_one_dtype(made.body, _compared_in if dtype is _truth else dtype)
        if name == "arctan2":
            said = made.doc.replace("(rhs, lhs)", "(x2, x1)").replace("lhs, rhs :", "x1, x2 :")
            made = twin(made.name, made, inputs="x1 x2", body=made.body, doc=said)
        made.dtype(_rule_of_two(dtype))
        yield made


# -- functions of an array and a number -----------------------------------------------------------------------------

#: Name in ``mx.np`` -> base name in ``mx.nd``.
_NUMBER_TWINS = {
    "add": "plus",
    "subtract": "minus",
    "rsubtract": "rminus",
    "multiply": "mul",
    "true_divide": "div",
    "rtrue_divide": "rdiv",
    "mod": "mod",
    "rmod": "rmod",
    "power": "power",
    "rpower": "rpower",
    "maximum": "maximum",
    "minimum": "minimum",
    "hypot": "hypot",
}


def _compared_with_number(fn: Any) -> Any:
    """A comparison with a number as it is, not as the dtype of the array holds it: 2 is below 2.5, 0 above -1."""

    def compute(k: Call, p: Params, data: Array) -> Any:
        s, t = p.scalar, data.dtype
        if t.kind in "iub":
            limits = np.iinfo(t if t != _BOOL else _INT8)
            exact = limits.min <= s <= limits.max and s == int(s)
            data, s = (
                (data.astype(np.dtype(limits.dtype), copy=False), int(s))
                if exact
                else (data.astype(_FLOAT64), float(s))
            )
        return fn(k.xp, data, data.dtype.type(s))

    return compute


def _number_grad(g: Any, on_the_left: bool) -> Any:
    """The gradient of an array from those of two, the number as an array."""

    def rule(F: Operators, p: Params, dy: Operand, data: Operand) -> Any:
        number = F.zeros_like(data) + p.scalar
        return g(F, dy, number, data)[1] if on_the_left else g(F, dy, data, number)[0]

    return rule


def _further_with_number(name: str, on_the_left: bool) -> Op:
    fn, expr, g, dtype, _, doc = _FURTHER[name]
    f = fn if callable(fn) else lambda xp, a, b: getattr(xp, fn)(a, b)

    def compute(xp: Any, x: Any, s: Any) -> Any:
        number = xp.full_like(x, x.dtype.type(s))
        return f(xp, number, x) if on_the_left else f(xp, x, number)

    if expr is not None:
        names = {"a": "s", "b": "x"} if on_the_left else {"a": "x", "b": "s"}
        expr = re.sub(r"\b[ab]\b", lambda m: names[m.group()], expr)
    made = scalar(
        f"_npi_{'r' * on_the_left}{name}_scalar",
        compute,
        expr=expr,
        grad=None if g is None else _number_grad(g, on_the_left),
        doc=doc.replace("rhs" if not on_the_left else "lhs", "scalar").replace("lhs", "data").replace("rhs", "data"),
    )
    if dtype is _truth:
        made.body = lambda k, p, data: f(k.xp, data, k.xp.full((), bool(p.scalar), _BOOL))
        made.dtype(_rule_of_one(_truth))
    elif name in _BITS:
        made.body = lambda k, p, data: compute(
            k.xp, data, bool(p.scalar) if data.dtype == _BOOL else with_number(p, data)[1]
        )
        made.dtype(_rule_of_one(_whole))
    elif dtype is _whole:
        numbers = made.dtype_rule
        assert numbers is not None

        def whole(p: Params, ins: list[Any], outs: list[Any]) -> Any:
            if ins[0] is not None:
                _whole(ins[0])
            return numbers(p, ins, outs)

        made.dtype(whole)
    return made


def _of_one_and_number() -> Iterator[Op]:
    for name, of in _NUMBER_TWINS.items():
        base = _OF[f"_{of}_scalar"]
        if "true_divide" in name:
            made = twin(
                f"_npi_{name}_scalar",
                base,
                when=_is_float,
                body=_cast_first(base.body, _floating),
                grad=_of_quotient(base.grad_rule),
            )
            made.dtype(_rule_of_one(_floating))
        else:
            made = twin(f"_npi_{name}_scalar", base)
        yield made
    for name, of in _COMPARISONS.items():
        base = _OF[f"_{of}_scalar"]
        body = _compared_with_number(lambda xp, x, s, n=name: getattr(xp, n)(x, s))
        made = twin(f"_npi_{name}_scalar", base, when=_never, body=body, direct=name, expr=None)
        made.dtype(_rule_of_one(_truth))
        yield made
    for name, row in _FURTHER.items():
        yield _further_with_number(name, False)
        if row[4]:
            yield _further_with_number(name, True)


OPERATORS = [*_of_one(), *_of_two(), *_of_one_and_number()]
