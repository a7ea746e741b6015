"""Functions of each element: those of ``mx.np`` under the standard's names, for the dtypes that it lets them take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..face import arrays as F
from ..multiarray import ndarray
from .arguments import alike, check, common, kind_of, number

__all__: list[str] = ["clip"]

_UNARY_DOC = """{summary}

    Parameters
    ----------
    x : ndarray
        Any shape; the dtype must be {category}.

    Returns
    -------
    ndarray
        {gives}

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.{name}(xp.asarray({argument}))
    array({result})
    """
_BINARY_DOC = """{summary}

    Parameters
    ----------
    x1, x2 : ndarray or number
        Shapes that broadcast; the dtypes must be {category}. One of them may be a number of Python's, which takes the
        dtype of the other.

    Returns
    -------
    ndarray
        {gives}

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.{name}(xp.asarray({argument}), {number})
    array({result})
    """
_SAME, _TRUTH = "Of the dtype of `x`.", "Of dtype bool."
_PROMOTED = "Of the dtype that those of the arrays are promoted to."


# -- what mx.np has otherwise ---------------------------------------------------------------------------------------


def _like(x: Any, value: float) -> Any:
    return number("", value, x.dtype, x.ctx)


def _sign(x: Any) -> Any:
    """`mx.np.sign` of a NaN is 0, as in MXNet."""
    return F.where(x != x, x, F.sign(x)) if kind_of(x.dtype) == "f" else F.sign(x)


def _signbit(x: Any) -> Any:
    """A NaN counts as plus, whatever its bit."""
    return F.logical_or(x < 0, F.logical_and(x == 0, F.reciprocal(x) < 0))


def _remainder(x1: Any, x2: Any) -> Any:
    """`mx.np.mod` by 0 is 0, as in MXNet."""
    found = F.mod(x1, x2)
    return F.where(x2 == 0, _like(found, float("nan")), found) if kind_of(found.dtype) == "f" else found


def _logaddexp(x1: Any, x2: Any) -> Any:
    high = F.maximum(x1, x2)
    gap = F.abs(x1 - x2)
    # Equal infinities have no difference.
    return high + F.log1p(F.exp(-F.where(x1 == x2, F.zeros_like(gap), gap)))


def _nextafter(x1: Any, x2: Any) -> Any:
    """The neighbour of each element, by steps that rounding takes to it (Rump et al., BIT 49, 2009)."""
    limits = np.finfo(x1.dtype)
    unit, least = float(limits.epsneg), float(limits.smallest_subnormal)
    step, tiny = unit * (1 + 2 * unit), least / unit
    size = F.abs(x1)
    near, middle = size < tiny, size < tiny / (2 * unit)
    scaled = x1 * (1 / unit)
    up = F.where(x1 < x2, _like(x1, 1.0), _like(x1, -1.0))
    by_scale = (scaled + up * (F.abs(scaled) * step)) * unit
    found = F.where(near, x1 + up * least, F.where(middle, by_scale, x1 + up * (size * step)))
    # From an infinity the way leads to the largest number.
    found = F.where(F.isinf(x1), F.sign(x1) * float(limits.max), found)
    found = F.where(x1 == x2, x2 + F.zeros_like(x1), found)
    return F.where(F.logical_or(x1 != x1, x2 != x2), x1 + x2, found)


def _real(x: Any) -> Any:
    return x


#: Name -> (function, category of dtypes, result, summary, argument and result of the example).
_UNARY: dict[str, tuple[Callable[..., Any] | str, str, str, str, str, str]] = {
    "abs": ("abs", "numeric", _SAME, "The absolute value of each element.", "[-1.5, 2]", "[1.5, 2. ]"),
    "acos": (
        "arccos",
        "floating-point",
        _SAME,
        "The angle between 0 and pi whose cosine each element is.",
        "[1.0]",
        "[0.]",
    ),
    "acosh": (
        "arccosh",
        "floating-point",
        _SAME,
        "The number whose hyperbolic cosine each element is.",
        "[1.0]",
        "[0.]",
    ),
    "asin": (
        "arcsin",
        "floating-point",
        _SAME,
        "The angle between -pi/2 and pi/2 whose sine each element is.",
        "[0.0]",
        "[0.]",
    ),
    "asinh": ("arcsinh", "floating-point", _SAME, "The number whose hyperbolic sine each element is.", "[0.0]", "[0.]"),
    "atan": (
        "arctan",
        "floating-point",
        _SAME,
        "The angle between -pi/2 and pi/2 whose tangent each element is.",
        "[0.0]",
        "[0.]",
    ),
    "atanh": (
        "arctanh",
        "floating-point",
        _SAME,
        "The number whose hyperbolic tangent each element is.",
        "[0.0]",
        "[0.]",
    ),
    "bitwise_invert": (
        "bitwise_not",
        "integer or boolean",
        _SAME,
        "All bits the other way.",
        "[True, False]",
        "[False,  True]",
    ),
    "ceil": ("ceil", "real numeric", _SAME, "The least whole number that is not below each element.", "[0.2]", "[1.]"),
    "conj": (_real, "numeric", "`x` itself.", "The complex conjugate: of real numbers these.", "[1.5]", "[1.5]"),
    "cos": ("cos", "floating-point", _SAME, "The cosine of each element.", "[0.0]", "[1.]"),
    "cosh": ("cosh", "floating-point", _SAME, "The hyperbolic cosine of each element.", "[0.0]", "[1.]"),
    "exp": ("exp", "floating-point", _SAME, "The exponential function of each element.", "[0.0]", "[1.]"),
    "expm1": ("expm1", "floating-point", _SAME, "The exponential function of each element less 1.", "[0.0]", "[0.]"),
    "floor": (
        "floor",
        "real numeric",
        _SAME,
        "The greatest whole number that is not above each element.",
        "[1.8]",
        "[1.]",
    ),
    "isfinite": (
        "isfinite",
        "numeric",
        _TRUTH,
        "Whether each element is neither infinite nor a NaN.",
        "[1, 2]",
        "[ True,  True]",
    ),
    "isinf": ("isinf", "numeric", _TRUTH, "Whether each element is infinite.", "[1, 2]", "[False, False]"),
    "isnan": ("isnan", "numeric", _TRUTH, "Whether each element is a NaN.", "[1, 2]", "[False, False]"),
    "log": ("log", "floating-point", _SAME, "The natural logarithm of each element.", "[1.0]", "[0.]"),
    "log10": ("log10", "floating-point", _SAME, "The logarithm of each element to base 10.", "[10.0]", "[1.]"),
    "log1p": ("log1p", "floating-point", _SAME, "The natural logarithm of 1 and each element.", "[0.0]", "[0.]"),
    "log2": ("log2", "floating-point", _SAME, "The logarithm of each element to base 2.", "[8.0]", "[3.]"),
    "logical_not": (
        "logical_not",
        "boolean",
        _TRUTH,
        "The opposite of each truth value.",
        "[True, False]",
        "[False,  True]",
    ),
    "negative": ("negative", "numeric", _SAME, "Each element with the other sign.", "[1.0, -2.0]", "[-1.,  2.]"),
    "positive": ("positive", "numeric", _SAME, "A copy.", "[1.0, -2.0]", "[ 1., -2.]"),
    "real": (_real, "numeric", "`x` itself.", "The real part: of real numbers these.", "[1.5]", "[1.5]"),
    "reciprocal": ("reciprocal", "floating-point", _SAME, "1 divided by each element.", "[2.0, 4.0]", "[0.5 , 0.25]"),
    "round": (
        "round",
        "numeric",
        _SAME,
        "Each element rounded, halves to the even neighbour.",
        "[0.5, 1.5]",
        "[0., 2.]",
    ),
    "sign": (_sign, "numeric", _SAME, "-1, 0 or 1 for each element, a NaN for a NaN.", "[-3.0, 0.0]", "[-1.,  0.]"),
    "signbit": (
        _signbit,
        "real floating-point",
        _TRUTH,
        "Whether each element has the minus sign, zeros too; a NaN counts as plus.",
        "[-0.0, 1.0]",
        "[ True, False]",
    ),
    "sin": ("sin", "floating-point", _SAME, "The sine of each element.", "[0.0]", "[0.]"),
    "sinh": ("sinh", "floating-point", _SAME, "The hyperbolic sine of each element.", "[0.0]", "[0.]"),
    "sqrt": ("sqrt", "floating-point", _SAME, "The square root of each element.", "[4.0]", "[2.]"),
    "square": ("square", "numeric", _SAME, "The square of each element.", "[-2.0]", "[4.]"),
    "tan": ("tan", "floating-point", _SAME, "The tangent of each element.", "[0.0]", "[0.]"),
    "tanh": ("tanh", "floating-point", _SAME, "The hyperbolic tangent of each element.", "[0.0]", "[0.]"),
    "trunc": ("trunc", "real numeric", _SAME, "Each element rounded towards 0.", "[1.8, -1.8]", "[ 1., -1.]"),
}
#: Name -> (function, category of dtypes, result, summary, arguments and result of the example).
_BINARY: dict[str, tuple[Callable[..., Any] | str, str, str, str, str, str, str]] = {
    "add": ("add", "numeric", _PROMOTED, "The sum.", "[1.0, 2.0]", "1", "[2., 3.]"),
    "atan2": (
        "arctan2",
        "real floating-point",
        _PROMOTED,
        "The angle of the point ``(x2, x1)``.",
        "[0.0]",
        "1.0",
        "[0.]",
    ),
    "bitwise_and": (
        "bitwise_and",
        "integer or boolean",
        _PROMOTED,
        "Bits that are set in both.",
        "[True]",
        "False",
        "[False]",
    ),
    "bitwise_left_shift": (
        "bitwise_left_shift",
        "integer",
        _PROMOTED,
        "Bits moved to the left by as many places as `x2` says.",
        "[5]",
        "1",
        "[10], dtype=int64",
    ),
    "bitwise_or": (
        "bitwise_or",
        "integer or boolean",
        _PROMOTED,
        "Bits that are set in one or both.",
        "[True]",
        "False",
        "[ True]",
    ),
    "bitwise_right_shift": (
        "bitwise_right_shift",
        "integer",
        _PROMOTED,
        "Bits moved to the right by as many places as `x2` says; the sign stays.",
        "[5]",
        "1",
        "[2], dtype=int64",
    ),
    "bitwise_xor": ("bitwise_xor", "integer or boolean", _PROMOTED, "Bits that differ.", "[True]", "False", "[ True]"),
    "copysign": (
        "copysign",
        "real floating-point",
        _PROMOTED,
        "`x1` with the signs of `x2`; that of a NaN counts as plus.",
        "[1.0, 2.0]",
        "-1.0",
        "[-1., -2.]",
    ),
    "divide": ("divide", "floating-point", _PROMOTED, "The quotient.", "[1.0, 2.0]", "4", "[0.25, 0.5 ]"),
    "equal": ("equal", "all", _TRUTH, "Whether elements are equal.", "[1.0, 2.0]", "2", "[False,  True]"),
    "floor_divide": (
        "floor_divide",
        "real numeric",
        _PROMOTED,
        "The quotient, rounded down.",
        "[7.0, -7.0]",
        "2",
        "[ 3., -4.]",
    ),
    "greater": (
        "greater",
        "real numeric",
        _TRUTH,
        "Whether elements of `x1` are above those of `x2`.",
        "[1.0, 2.0]",
        "1",
        "[False,  True]",
    ),
    "greater_equal": (
        "greater_equal",
        "real numeric",
        _TRUTH,
        "Whether elements of `x1` are not below those of `x2`.",
        "[1.0, 2.0]",
        "2",
        "[False,  True]",
    ),
    "hypot": (
        "hypot",
        "real floating-point",
        _PROMOTED,
        "The length of the vector ``(x1, x2)``.",
        "[3.0]",
        "4",
        "[5.]",
    ),
    "less": (
        "less",
        "real numeric",
        _TRUTH,
        "Whether elements of `x1` are below those of `x2`.",
        "[1.0, 2.0]",
        "2",
        "[ True, False]",
    ),
    "less_equal": (
        "less_equal",
        "real numeric",
        _TRUTH,
        "Whether elements of `x1` are not above those of `x2`.",
        "[1.0, 2.0]",
        "1",
        "[ True, False]",
    ),
    "logaddexp": (
        _logaddexp,
        "real floating-point",
        _PROMOTED,
        "The logarithm of the sum of exponential functions.",
        "[0.0]",
        "0.0",
        "[0.6931472]",
    ),
    "logical_and": ("logical_and", "boolean", _TRUTH, "Whether both are true.", "[True]", "False", "[False]"),
    "logical_or": ("logical_or", "boolean", _TRUTH, "Whether one or both are true.", "[True]", "False", "[ True]"),
    "logical_xor": ("logical_xor", "boolean", _TRUTH, "Whether one alone is true.", "[True]", "False", "[ True]"),
    "maximum": (
        "maximum",
        "real numeric",
        _PROMOTED,
        "The larger element; a NaN beside a NaN.",
        "[1.0, 3.0]",
        "2",
        "[2., 3.]",
    ),
    "minimum": (
        "minimum",
        "real numeric",
        _PROMOTED,
        "The smaller element; a NaN beside a NaN.",
        "[1.0, 3.0]",
        "2",
        "[1., 2.]",
    ),
    "multiply": ("multiply", "numeric", _PROMOTED, "The product.", "[1.0, 2.0]", "3", "[3., 6.]"),
    "nextafter": (
        _nextafter,
        "real floating-point",
        _PROMOTED,
        "The neighbour of each element of `x1` on the way to `x2`.",
        "[1.0]",
        "2",
        "[1.0000001]",
    ),
    "not_equal": ("not_equal", "all", _TRUTH, "Whether elements differ.", "[1.0, 2.0]", "2", "[ True, False]"),
    "pow": ("power", "numeric", _PROMOTED, "`x1` to the power of `x2`.", "[2.0, 3.0]", "2", "[4., 9.]"),
    "remainder": (
        _remainder,
        "real numeric",
        _PROMOTED,
        "The remainder of a division, with the sign of `x2`.",
        "[7.0, -7.0]",
        "4",
        "[3., 1.]",
    ),
    "subtract": ("subtract", "numeric", _PROMOTED, "The difference.", "[1.0, 2.0]", "1", "[0., 1.]"),
}


def _of_one(name: str, fn: Callable[..., Any] | str, category: str) -> Callable[..., Any]:
    compute: Any = getattr(F, fn) if isinstance(fn, str) else fn

    def f(x: ndarray, /) -> Any:
        check(name, category, x)
        return compute(x)

    return f


def _of_two(name: str, fn: Callable[..., Any] | str, category: str) -> Callable[..., Any]:
    compute: Any = getattr(F, fn) if isinstance(fn, str) else fn

    def f(x1: ndarray | float, x2: ndarray | float, /) -> Any:
        return compute(*common(name, *alike(name, category, x1, x2)))

    return f


def imag(x: ndarray, /) -> Any:
    """The imaginary part of each element: an error, for no array of mxcore has one.

    Parameters
    ----------
    x : ndarray

    Raises
    ------
    MXNetError
        (also TypeError) for all arrays: the standard leaves real numbers out, and mxcore has no others.
    """
    check("imag", "complex floating-point", x)
    return x


def clip(x: ndarray, /, min: Any = None, max: Any = None) -> Any:
    """Each element, or the limit that it lies beyond.

    Parameters
    ----------
    x : ndarray
        Any shape; the dtype must be real numeric.
    min, max : number or ndarray, optional
        The limits, of the kind of numbers that `x` has; arrays broadcast with it.

    Returns
    -------
    ndarray
        Of the dtype of `x`; NaN where it is.

    Examples
    --------
    >>> from mxcore.ndarray.numpy import array_api as xp
    >>> xp.clip(xp.asarray([-1.0, 0.5, 2.0]), 0, 1)
    array([0. , 0.5, 1. ])
    """
    check("clip", "real numeric", x)
    found = x
    for limit, nearer in ((min, F.maximum), (max, F.minimum)):
        if limit is not None:
            found = nearer(*common("clip", *alike("clip", "real numeric", found, limit)))
    return found.astype(x.dtype, copy=found is x)


def _made(name: str, fn: Callable[..., Any], doc: str) -> None:
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    globals()[name] = fn
    __all__.append(name)


for _name, (_fn, _category, _gives, _summary, _x, _y) in _UNARY.items():
    _made(
        _name,
        _of_one(_name, _fn, _category),
        _UNARY_DOC.format(name=_name, summary=_summary, category=_category, gives=_gives, argument=_x, result=_y),
    )
for _name, (_fn, _category, _gives, _summary, _x, _n, _y) in _BINARY.items():
    _made(
        _name,
        _of_two(_name, _fn, _category),
        _BINARY_DOC.format(
            name=_name, summary=_summary, category=_category, gives=_gives, argument=_x, number=_n, result=_y
        ),
    )
__all__ += ["imag"]
