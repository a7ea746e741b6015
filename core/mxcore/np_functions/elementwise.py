"""Functions of each element, and of two arrays that are broadcast together: NumPy's universal functions."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.errors import error
from ..ops.common.python_operators import NUMPY_COMPARISONS, NUMPY_OPERATORS
from .options import legal

__all__: list[str] = []

_UNARY_DOC = """{}

    Parameters
    ----------
    x : ndarray or number
        Any shape. A number gives NumPy's result.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
    **kwargs
        NumPy's options `where`, `casting`, `order`, `dtype`, `subok`: refused unless they change nothing.

    Returns
    -------
    ndarray
        {}

    Examples
    --------
    >>> from mxcore import np
    >>> np.{}
    """
_BINARY_DOC = """{summary}

    Parameters
    ----------
    x1, x2 : ndarray or number
        Shapes that broadcast. Two numbers give NumPy's result; a number is cast to the dtype of the array.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.
{options}
    Returns
    -------
    ndarray
        {gives}

    Examples
    --------
    >>> from mxcore import np
    >>> np.{example}
    """
_OPTIONS = """    **kwargs
        NumPy's options `where`, `casting`, `order`, `dtype`, `subok`: refused unless they change nothing.
"""
_SMOOTH = "Of the dtype of `x`, where whole numbers are cut; truth values count as float32."
_SAME = "Of the dtype of `x`."
_TRUTH = "Of dtype bool."
_COMMON = "Of the wider dtype of both: floats win over whole numbers."
_FLOAT = "Of the wider dtype of both; arrays of whole numbers give float32."
_WHOLE = "Of the wider dtype of both, which are whole numbers or truth values."


def _number(name: str, *values: Any) -> Any:
    """What NumPy gives for numbers."""
    for v in values:
        if not isinstance(v, (int, float, np.generic)) or isinstance(v, (np.str_, np.bytes_)):
            raise error(
                TypeError,
                f"np.{name} takes arrays of mx.np and numbers, got {type(v).__name__}"
                + ("; x.as_np_ndarray() shares its memory" if hasattr(v, "as_np_ndarray") else "; np.array makes one"),
            )
    return getattr(np, name)(*values)


def _unary(name: str, op: str) -> Callable[..., Any]:
    def fn(F: Any, x: Any, out: Any = None, **kwargs: Any) -> Any:
        if kwargs:
            legal(name, kwargs)
        return F.call(op, x, out=out) if F.is_value(x) else _number(name, x)

    return fn


#: Operator -> that of Python.
_PYTHON = {row[0]: getattr(operator, f"__{n}__") for n, row in {**NUMPY_OPERATORS, **NUMPY_COMPARISONS}.items()}


def _binary(name: str, op: str, right: str, left: str, options: bool) -> Callable[..., Any]:
    """`right` is the operator with a number on the right, `left` with one on the left."""
    python = _PYTHON.get(op)  # which has a short way

    def compute(F: Any, x1: Any, x2: Any, out: Any) -> Any:
        if F.is_value(x1):
            return F.call(op, x1, x2, out=out) if F.is_value(x2) else F.with_number(name, right, x1, x2, out)
        return F.with_number(name, left, x2, x1, out) if F.is_value(x2) else _number(name, x1, x2)

    def fn(F: Any, x1: Any, x2: Any, out: Any = None, **kwargs: Any) -> Any:
        if kwargs:
            legal(name, kwargs)
        if x1.__class__ is x2.__class__ is F.value:
            return F.call(op, x1, x2, out=out) if python is None or out is not None else python(x1, x2)
        return compute(F, x1, x2, out)

    def plain(F: Any, x1: Any, x2: Any, out: Any = None) -> Any:
        return fn(F, x1, x2, out)

    return fn if options else plain


#: Name -> (operator, summary, dtype of the result, argument and result of the example).
_UNARY: dict[str, tuple[str, str, str, str, str]] = {
    "abs": ("absolute", "The absolute value of each element.", _SAME, "[-1.5, 2]", "[1.5, 2. ]"),
    "absolute": ("absolute", "The absolute value of each element; same as `abs`.", _SAME, "[-1.5, 2]", "[1.5, 2. ]"),
    "arccos": ("arccos", "The angle between 0 and pi whose cosine each element is.", _SMOOTH, "[1]", "[0.]"),
    "arccosh": ("arccosh", "The number whose hyperbolic cosine each element is.", _SMOOTH, "[1]", "[0.]"),
    "arcsin": ("arcsin", "The angle between -pi/2 and pi/2 whose sine each element is.", _SMOOTH, "[0]", "[0.]"),
    "arcsinh": ("arcsinh", "The number whose hyperbolic sine each element is.", _SMOOTH, "[0]", "[0.]"),
    "arctan": ("arctan", "The angle between -pi/2 and pi/2 whose tangent each element is.", _SMOOTH, "[0]", "[0.]"),
    "arctanh": ("arctanh", "The number whose hyperbolic tangent each element is.", _SMOOTH, "[0]", "[0.]"),
    "bitwise_not": (
        "bitwise_not",
        "All bits the other way; the opposite of truth values.",
        _SAME,
        "[True], dtype=bool",
        "[False]",
    ),
    "cbrt": ("cbrt", "The cube root of each element.", _SMOOTH, "[1, 8]", "[1., 2.]"),
    "ceil": ("ceil", "The least whole number that is not below each element.", _SAME, "[0.2, -0.2]", "[ 1., -0.]"),
    "cos": ("cos", "The cosine of each element.", _SMOOTH, "[0]", "[1.]"),
    "cosh": ("cosh", "The hyperbolic cosine of each element.", _SMOOTH, "[0]", "[1.]"),
    "deg2rad": ("radians", "Degrees as radians; same as `radians`.", _SMOOTH, "[0, 180]", "[0.       , 3.1415927]"),
    "degrees": ("degrees", "Radians as degrees.", _SMOOTH, "[0, np.pi]", "[  0., 180.]"),
    "exp": ("exp", "The exponential function of each element.", _SMOOTH, "[0]", "[1.]"),
    "expm1": ("expm1", "The exponential function of each element less 1, accurate near 0.", _SMOOTH, "[0]", "[0.]"),
    "fabs": ("absolute", "The absolute value of each element; same as `abs`.", _SAME, "[-1.5, 2]", "[1.5, 2. ]"),
    "fix": ("fix", "Each element rounded towards 0.", _SAME, "[1.7, -1.7]", "[ 1., -1.]"),
    "floor": ("floor", "The greatest whole number that is not above each element.", _SAME, "[0.2, -0.2]", "[ 0., -1.]"),
    "invert": (
        "bitwise_not",
        "All bits the other way; the opposite of truth values.",
        _SAME,
        "[True], dtype=bool",
        "[False]",
    ),
    "isfinite": (
        "isfinite",
        "Whether each element is neither infinite nor a NaN.",
        _TRUTH,
        "[1, np.inf]",
        "[ True, False]",
    ),
    "isinf": ("isinf", "Whether each element is infinite.", _TRUTH, "[1, np.inf]", "[False,  True]"),
    "isnan": ("isnan", "Whether each element is a NaN.", _TRUTH, "[1, np.nan]", "[False,  True]"),
    "isneginf": ("isneginf", "Whether each element is minus infinity.", _TRUTH, "[1, -np.inf]", "[False,  True]"),
    "isposinf": ("isposinf", "Whether each element is plus infinity.", _TRUTH, "[1, np.inf]", "[False,  True]"),
    "log": ("log", "The natural logarithm of each element.", _SMOOTH, "[1, np.e]", "[0., 1.]"),
    "log10": ("log10", "The logarithm of each element to base 10.", _SMOOTH, "[1, 10]", "[0., 1.]"),
    "log1p": ("log1p", "The natural logarithm of 1 and each element, accurate near 0.", _SMOOTH, "[0]", "[0.]"),
    "log2": ("log2", "The logarithm of each element to base 2.", _SMOOTH, "[1, 8]", "[0., 3.]"),
    "logical_not": ("logical_not", "Whether each element is 0.", _TRUTH, "[0, 2]", "[ True, False]"),
    "negative": (
        "negative",
        "Each element with the other sign.",
        "Of the dtype of `x`; truth values count as int64.",
        "[1, -2]",
        "[-1.,  2.]",
    ),
    "rad2deg": ("degrees", "Radians as degrees; same as `degrees`.", _SMOOTH, "[0, np.pi]", "[  0., 180.]"),
    "radians": ("radians", "Degrees as radians.", _SMOOTH, "[0, 180]", "[0.       , 3.1415927]"),
    "reciprocal": ("reciprocal", "1 divided by each element.", _SMOOTH, "[2, 4]", "[0.5 , 0.25]"),
    "rint": (
        "rint",
        "Each element rounded to the nearest whole number; of two equally near ones to the lower, as in MXNet.",
        _SAME,
        "[0.4, 1.5]",
        "[0., 1.]",
    ),
    "sign": ("sign", "-1, 0 or 1 for each element; 0 for a NaN, as in MXNet.", _SAME, "[-3, 0, 2]", "[-1.,  0.,  1.]"),
    "sin": ("sin", "The sine of each element.", _SMOOTH, "[0]", "[0.]"),
    "sinh": ("sinh", "The hyperbolic sine of each element.", _SMOOTH, "[0]", "[0.]"),
    "sqrt": ("sqrt", "The square root of each element.", _SMOOTH, "[4, 9]", "[2., 3.]"),
    "square": ("square", "The square of each element.", _SAME, "[-2, 3]", "[4., 9.]"),
    "tan": ("tan", "The tangent of each element.", _SMOOTH, "[0]", "[0.]"),
    "tanh": ("tanh", "The hyperbolic tangent of each element.", _SMOOTH, "[0]", "[0.]"),
    "trunc": ("trunc", "Each element rounded towards 0.", _SAME, "[1.7, -1.7]", "[ 1., -1.]"),
}
#: Name -> (operator, the same with a number on the left, summary, dtype of the result, arguments and result of the
#: example, whether it takes NumPy's options).
_BINARY: dict[str, tuple[str, str, str, str, str, str, bool]] = {
    "add": ("add", "add", "The sum of two arrays, element by element.", _COMMON, "[1, 2] 1", "[2., 3.]", True),
    "arctan2": (
        "arctan2",
        "rarctan2",
        "The angle of the point ``(x2, x1)``.",
        _FLOAT,
        "[0, 1] [1, 0]",
        "[0.       , 1.5707964]",
        True,
    ),
    "bitwise_and": (
        "bitwise_and",
        "bitwise_and",
        "Bits that are set in both.",
        _WHOLE,
        "[6]:int32 3",
        "[2], dtype=int32",
        True,
    ),
    "bitwise_or": (
        "bitwise_or",
        "bitwise_or",
        "Bits that are set in one or both.",
        _WHOLE,
        "[6]:int32 3",
        "[7], dtype=int32",
        True,
    ),
    "bitwise_left_shift": (
        "bitwise_left_shift",
        "rbitwise_left_shift",
        "Bits moved to the left by as many places as `x2` says.",
        _WHOLE,
        "[5]:int32 1",
        "[10], dtype=int32",
        True,
    ),
    "bitwise_right_shift": (
        "bitwise_right_shift",
        "rbitwise_right_shift",
        "Bits moved to the right by as many places as `x2` says.",
        _WHOLE,
        "[5]:int32 1",
        "[2], dtype=int32",
        True,
    ),
    "left_shift": (
        "bitwise_left_shift",
        "rbitwise_left_shift",
        "Bits moved to the left by as many places as `x2` says; same as `bitwise_left_shift`.",
        _WHOLE,
        "[5]:int32 1",
        "[10], dtype=int32",
        True,
    ),
    "right_shift": (
        "bitwise_right_shift",
        "rbitwise_right_shift",
        "Bits moved to the right by as many places as `x2` says; same as `bitwise_right_shift`.",
        _WHOLE,
        "[5]:int32 1",
        "[2], dtype=int32",
        True,
    ),
    "bitwise_xor": ("bitwise_xor", "bitwise_xor", "Bits that differ.", _WHOLE, "[6]:int32 3", "[5], dtype=int32", True),
    "copysign": (
        "copysign",
        "rcopysign",
        "`x1` with the signs of `x2`; that of a NaN counts as plus.",
        _COMMON,
        "[1, 2] -1",
        "[-1., -2.]",
        True,
    ),
    "divide": (
        "true_divide",
        "rtrue_divide",
        "The quotient; same as `true_divide`.",
        _FLOAT,
        "[1, 2] 4",
        "[0.25, 0.5 ]",
        False,
    ),
    "equal": ("equal", "equal", "Whether elements are equal.", _TRUTH, "[1, 2] 2", "[False,  True]", False),
    "floor_divide": (
        "floor_divide",
        "rfloor_divide",
        "The quotient, rounded down; 0 of whole numbers by 0.",
        _COMMON,
        "[7, -7] 2",
        "[ 3., -4.]",
        True,
    ),
    "fmax": (
        "fmax",
        "fmax",
        "The larger element; the other one beside a NaN.",
        _COMMON,
        "[1, np.nan] 0",
        "[1., 0.]",
        True,
    ),
    "fmin": (
        "fmin",
        "fmin",
        "The smaller element; the other one beside a NaN.",
        _COMMON,
        "[1, np.nan] 0",
        "[0., 0.]",
        True,
    ),
    "fmod": (
        "fmod",
        "rfmod",
        "The remainder of a division, with the sign of `x1`; 0 of whole numbers by 0.",
        _COMMON,
        "[7, -7] 4",
        "[ 3., -3.]",
        True,
    ),
    "gcd": ("gcd", "gcd", "The greatest common divisor.", _WHOLE, "[12]:int32 20", "[4], dtype=int32", True),
    "greater": (
        "greater",
        "less",
        "Whether elements of `x1` are above those of `x2`.",
        _TRUTH,
        "[1, 2] 1",
        "[False,  True]",
        False,
    ),
    "greater_equal": (
        "greater_equal",
        "less_equal",
        "Whether elements of `x1` are not below those of `x2`.",
        _TRUTH,
        "[1, 2] 2",
        "[False,  True]",
        False,
    ),
    "hypot": ("hypot", "hypot", "The length of the vector ``(x1, x2)``.", _FLOAT, "[3, 6] [4, 8]", "[ 5., 10.]", True),
    "lcm": ("lcm", "lcm", "The least common multiple.", _WHOLE, "[12]:int32 20", "[60], dtype=int32", True),
    "ldexp": ("ldexp", "rldexp", "``x1 * 2**x2``.", _COMMON, "[5, 3] 2", "[20., 12.]", True),
    "less": (
        "less",
        "greater",
        "Whether elements of `x1` are below those of `x2`.",
        _TRUTH,
        "[1, 2] 2",
        "[ True, False]",
        False,
    ),
    "less_equal": (
        "less_equal",
        "greater_equal",
        "Whether elements of `x1` are not above those of `x2`.",
        _TRUTH,
        "[1, 2] 1",
        "[ True, False]",
        False,
    ),
    "logical_and": (
        "logical_and",
        "logical_and",
        "Whether both elements are not 0.",
        _TRUTH,
        "[0, 2] 1",
        "[False,  True]",
        True,
    ),
    "logical_or": (
        "logical_or",
        "logical_or",
        "Whether one element or both are not 0.",
        _TRUTH,
        "[0, 2] 0",
        "[False,  True]",
        True,
    ),
    "logical_xor": (
        "logical_xor",
        "logical_xor",
        "Whether one element alone is not 0.",
        _TRUTH,
        "[0, 2] 1",
        "[ True, False]",
        True,
    ),
    "maximum": ("maximum", "maximum", "The larger element; a NaN beside a NaN.", _COMMON, "[1, 3] 2", "[2., 3.]", True),
    "minimum": (
        "minimum",
        "minimum",
        "The smaller element; a NaN beside a NaN.",
        _COMMON,
        "[1, 3] 2",
        "[1., 2.]",
        True,
    ),
    "mod": (
        "mod",
        "rmod",
        "The remainder of a division, with the sign of `x2`; 0 of a division by 0, as in MXNet.",
        _COMMON,
        "[7, -7] 4",
        "[3., 1.]",
        True,
    ),
    "multiply": (
        "multiply",
        "multiply",
        "The product of two arrays, element by element.",
        _COMMON,
        "[1, 2] [3, 4]",
        "[3., 8.]",
        True,
    ),
    "not_equal": (
        "not_equal",
        "not_equal",
        "Whether elements are not equal.",
        _TRUTH,
        "[1, 2] 2",
        "[ True, False]",
        False,
    ),
    "power": ("power", "rpower", "`x1` to the power of `x2`.", _COMMON, "[2, 3] 2", "[4., 9.]", True),
    "remainder": ("mod", "rmod", "The remainder of a division; same as `mod`.", _COMMON, "[7, -7] 4", "[3., 1.]", True),
    "subtract": (
        "subtract",
        "rsubtract",
        "The difference of two arrays, element by element.",
        _COMMON,
        "1 [1, 2]",
        "[ 0., -1.]",
        True,
    ),
    "true_divide": (
        "true_divide",
        "rtrue_divide",
        "The quotient of two arrays, element by element.",
        _FLOAT,
        "[1, 2] 4",
        "[0.25, 0.5 ]",
        False,
    ),
}


def _shown(values: str) -> str:
    """An argument of an example: a number, or a list that becomes an array, of a dtype behind a colon."""
    if not values.startswith("["):
        return values
    items, _, dtype = values.partition(":")
    return f"np.array({items}, dtype='{dtype}')" if dtype else f"np.array({items})"


def _made(name: str, fn: Callable[..., Any], doc: str) -> None:
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    globals()[name] = fn
    __all__.append(name)


for _name, (_op, _summary, _gives, _given, _result) in _UNARY.items():
    _example = f"{_name}({_shown(_given)})\n    array({_result})"
    _made(_name, _unary(_name, f"_npi_{_op}"), _UNARY_DOC.format(_summary, _gives, _example))
for _name, (_op, _left, _summary, _gives, _given, _result, _options) in _BINARY.items():
    _arguments = ", ".join(_shown(v) for v in re.findall(r"\[[^]]*\](?::\w+)?|[^\s\[\]]+", _given))
    _made(
        _name,
        _binary(_name, f"_npi_{_op}", f"_npi_{_op}_scalar", f"_npi_{_left}_scalar", _options),
        _BINARY_DOC.format(
            summary=_summary,
            options=_OPTIONS if _options else "",
            gives=_gives,
            example=f"{_name}({_arguments})\n    array({_result})",
        ),
    )


# -- functions with arguments of their own --------------------------------------------------------------------------


def around(F: Any, x: Any, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
    """Each element rounded to a number of decimals, halves to the even neighbour.

    Parameters
    ----------
    x : ndarray or number
        Any shape. A number gives NumPy's result.
    decimals : int
        Below 0 for places left of the point.
    out : ndarray, optional
        Where to write: of the shape and dtype of `x`.
    **kwargs
        NumPy's options `where`, `casting`, `order`, `dtype`, `subok`: refused unless they change nothing.

    Returns
    -------
    ndarray
        Of the dtype of `x`. Its gradient is zero.

    Examples
    --------
    >>> from mxcore import np
    >>> np.around(np.array([1.25, 2.5]), 1)
    array([1.2, 2.5])
    """
    if kwargs:
        legal("around", kwargs)
    if not F.is_value(x):
        _number("abs", x)
        return np.around(x, decimals)
    return F.call("_npi_around", x, decimals=decimals, out=out)


def round(F: Any, x: Any, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
    """Each element rounded to a number of decimals; same as `around`.

    Parameters
    ----------
    x : ndarray or number
    decimals : int
    out : ndarray, optional
    **kwargs
        As for `around`.

    Examples
    --------
    >>> from mxcore import np
    >>> np.round(np.array([0.5, 1.5]))
    array([0., 2.])
    """
    return F.around(x, decimals, out, **kwargs)


def round_(F: Any, x: Any, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
    """Each element rounded to a number of decimals; same as `around`.

    Parameters
    ----------
    x : ndarray or number
    decimals : int
    out : ndarray, optional
    **kwargs
        As for `around`.

    Examples
    --------
    >>> from mxcore import np
    >>> np.round_(np.array([0.5, 1.5]))
    array([0., 2.])
    """
    return F.around(x, decimals, out, **kwargs)


def nan_to_num(
    F: Any, x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None, **kwargs: Any
) -> Any:
    """Other numbers in the place of NaNs and infinities.

    Parameters
    ----------
    x : ndarray or number
        Any shape. A number gives NumPy's result.
    copy : bool
        With False `x` itself is written.
    nan : float
        In the place of NaNs.
    posinf, neginf : float, optional
        In the place of infinities: unless told, the largest and the lowest finite number.
    **kwargs
        NumPy's options `where`, `casting`, `order`, `dtype`, `subok`: refused unless they change nothing.

    Returns
    -------
    ndarray
        Of the dtype of `x`.

    Examples
    --------
    >>> from mxcore import np
    >>> np.nan_to_num(np.array([np.nan, np.inf, 1]), posinf=9)
    array([0., 9., 1.])
    """
    out = kwargs.pop("out", None)
    if kwargs:
        legal("nan_to_num", kwargs)
    if not F.is_value(x):
        _number("abs", x)
        return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
    if not copy and F.eager and out is None:
        out = x
    return F.call("_npi_nan_to_num", x, copy=copy, nan=nan, posinf=posinf, neginf=neginf, out=out)


def clip(F: Any, a: Any, a_min: Any, a_max: Any, out: Any = None) -> Any:
    """Limit values to an interval.

    Parameters
    ----------
    a : ndarray
        Any shape.
    a_min, a_max : number, ndarray or None
        The limits, cast to the dtype of `a`; None for none. Arrays are broadcast.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray
        Where `a_min` is above `a_max`, the latter.

    Raises
    ------
    MXNetError
        (also ValueError) if both limits are None.

    Examples
    --------
    >>> from mxcore import np
    >>> np.clip(np.array([-1, 0.5, 2]), 0, 1)
    array([0. , 0.5, 1. ])
    """
    if a_min is None and a_max is None:
        raise error(ValueError, "np.clip: one of a_min and a_max must be given")
    if not F.is_value(a):
        _number("abs", a)
        return np.clip(a, a_min, a_max)
    if F.is_value(a_min) or F.is_value(a_max):
        above = a if a_min is None else F.maximum(a, a_min, out=out if a_max is None else None)
        return above if a_max is None else F.minimum(above, a_max, out=out)
    low, high = -math.inf if a_min is None else a_min, math.inf if a_max is None else a_max
    return F.call("_npi_clip", a, a_min=low, a_max=high, out=out)


def positive(F: Any, x: Any, out: Any = None, **kwargs: Any) -> Any:
    """A copy.

    Parameters
    ----------
    x : ndarray or number
        Any shape. A number gives NumPy's result.
    out : ndarray, optional
        Where to write: of the shape and dtype of `x`.
    **kwargs
        NumPy's options `where`, `casting`, `order`, `dtype`, `subok`: refused unless they change nothing.

    Examples
    --------
    >>> from mxcore import np
    >>> np.positive(np.array([1, -2]))
    array([ 1., -2.])
    """
    if kwargs:
        legal("positive", kwargs)
    return F.call("_np_copy", x, out=out) if F.is_value(x) else _number("positive", x)


def exp2(F: Any, x: Any, out: Any = None, **kwargs: Any) -> Any:
    """2 to the power of each element.

    Parameters
    ----------
    x : ndarray or number
        Any shape. A number gives NumPy's result.
    out : ndarray, optional
        Where to write: of the shape and dtype of `x`.
    **kwargs
        NumPy's options `where`, `casting`, `order`, `dtype`, `subok`: refused unless they change nothing.

    Examples
    --------
    >>> from mxcore import np
    >>> np.exp2(np.array([3, -1]))
    array([8. , 0.5])
    """
    if kwargs:
        legal("exp2", kwargs)
    return F.with_number("exp2", "_npi_rpower_scalar", x, 2, out) if F.is_value(x) else _number("exp2", x)


def float_power(F: Any, x1: Any, x2: Any, out: Any = None, **kwargs: Any) -> Any:
    """`x1` to the power of `x2`, in float64.

    Parameters
    ----------
    x1, x2 : ndarray or number
        Shapes that broadcast. Two numbers give NumPy's result.
    out : ndarray, optional
        Where to write: of the shape of the result, float64.
    **kwargs
        NumPy's options `where`, `casting`, `order`, `dtype`, `subok`: refused unless they change nothing.

    Examples
    --------
    >>> from mxcore import np
    >>> np.float_power(np.array([2, 3]), 2)
    array([4., 9.], dtype=float64)
    """
    if kwargs:
        legal("float_power", kwargs)
    given = [F.call("Cast", x, dtype="float64") if F.is_value(x) else x for x in (x1, x2)]
    return F.power(*given, out=out) if any(map(F.is_value, given)) else _number("float_power", x1, x2)


def divmod(F: Any, x1: Any, x2: Any) -> Any:
    """The quotient, rounded down, and the remainder: `floor_divide` and `mod`.

    Parameters
    ----------
    x1, x2 : ndarray or number
        Shapes that broadcast.

    Returns
    -------
    tuple of ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.divmod(np.array([7, -7]), 4)
    (array([ 1., -2.]), array([3., 1.]))
    """
    return F.floor_divide(x1, x2), F.mod(x1, x2)


__all__ += ["around", "clip", "divmod", "exp2", "float_power", "nan_to_num", "positive", "round", "round_"]
