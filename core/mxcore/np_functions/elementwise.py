"""Functions of each element, and of two arrays that are broadcast together: NumPy's universal functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.errors import error
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
_BINARY_DOC = """{}

    Parameters
    ----------
    x1, x2 : ndarray or number
        Shapes that broadcast. Two numbers give NumPy's result; a number is cast to the dtype of the array.
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
_SAME = "Of the dtype of `x`; truth values count as float32."
_TRUTH = "Of dtype bool."
_COMMON = "Of the wider dtype of both: floats win over whole numbers."


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


def _binary(name: str, op: str, right: str, left: str, options: bool) -> Callable[..., Any]:
    """`right` is the operator with a number on the right, `left` with one on the left."""

    def compute(F: Any, x1: Any, x2: Any, out: Any) -> Any:
        if F.is_value(x1):
            return F.call(op, x1, x2, out=out) if F.is_value(x2) else F.with_number(name, right, x1, x2, out)
        return F.with_number(name, left, x2, x1, out) if F.is_value(x2) else _number(name, x1, x2)

    def fn(F: Any, x1: Any, x2: Any, out: Any = None, **kwargs: Any) -> Any:
        if kwargs:
            legal(name, kwargs)
        return compute(F, x1, x2, out)

    def plain(F: Any, x1: Any, x2: Any, out: Any = None) -> Any:
        return compute(F, x1, x2, out)

    return fn if options else plain


#: name -> (operator, summary, dtype of the result, example)
_UNARY: dict[str, tuple[str, str, str, str]] = {
    "exp": ("_npi_exp", "The exponential function of each element.", _SAME, "exp(np.zeros(2))\n    array([1., 1.])")
}
#: name -> (operator, with a number right, left, summary, dtype of the result, example, whether it takes options)
_BINARY: dict[str, tuple[str, str, str, str, str, str, bool]] = {
    "add": (
        "_npi_add",
        "_npi_add_scalar",
        "_npi_add_scalar",
        "The sum of two arrays, element by element.",
        _COMMON,
        "add(np.array([1, 2]), 1)\n    array([2., 3.])",
        True,
    )
}


def _made(name: str, fn: Callable[..., Any], doc: str) -> None:
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    globals()[name] = fn
    __all__.append(name)


for _name, (_op, _summary, _gives, _example) in _UNARY.items():
    _made(_name, _unary(_name, _op), _UNARY_DOC.format(_summary, _gives, _example))
for _name, (_op, _right, _left, _summary, _gives, _example, _options) in _BINARY.items():
    _made(_name, _binary(_name, _op, _right, _left, _options), _BINARY_DOC.format(_summary, _gives, _example))
