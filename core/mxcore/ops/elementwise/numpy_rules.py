"""What the elementwise operators of ``mx.np`` share: dtypes of results, and gradients of inputs that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.infer import merge_dtype
from ..._core.params import Params
from ...typing import Operand, Operators

__all__ = [
    "BOOL",
    "FLOAT32",
    "FLOAT64",
    "INT64",
    "INT8",
    "cast_first",
    "common_dtype",
    "counted",
    "floating",
    "gradient_of_quotient",
    "gradients_of_two",
    "measured",
    "rule_of_one",
    "rule_of_two",
    "signed",
    "truth",
    "truth_as",
    "whole",
]

BOOL, INT8, INT64 = np.dtype("bool"), np.dtype("int8"), np.dtype("int64")
FLOAT32, FLOAT64 = np.dtype("float32"), np.dtype("float64")


# -- dtypes of results ----------------------------------------------------------------------------------------------


def common_dtype(*dtypes: Any) -> Any:
    """The dtype in which arrays of several dtypes are computed: the widest float, else what NumPy promotes to.

    Whole numbers never widen floats, as in MXNet: int64 and float16 give float16.
    """
    floats = [t for t in dtypes if t.kind not in "iub"]
    return np.result_type(*(floats or dtypes))


def floating(*dtypes: Any) -> Any:
    """Of values that are no whole numbers, where those of one dtype are counted as float32."""
    found = common_dtype(*dtypes)
    return FLOAT32 if found.kind in "iub" else found


def measured(*dtypes: Any) -> Any:
    """The common dtype, float32 of truth values, which have neither sign nor exponent."""
    found = common_dtype(*dtypes)
    return FLOAT32 if found == BOOL else found


def counted(*dtypes: Any) -> Any:
    """The common dtype, int8 of truth values, as in NumPy."""
    found = common_dtype(*dtypes)
    return INT8 if found == BOOL else found


def signed(*dtypes: Any) -> Any:
    """The common dtype of what can be subtracted: truth values cannot, as in NumPy."""
    found = common_dtype(*dtypes)
    if found == BOOL:
        raise TypeError("truth values cannot be subtracted; use ^ (np.logical_xor), or cast them first")
    return found


def whole(*dtypes: Any) -> Any:
    """The common dtype of whole numbers or truth values; others are refused."""
    found = common_dtype(*dtypes)
    if found.kind not in "iub":
        raise TypeError(f"whole numbers or truth values are needed, got {found.name}; x.astype('int64') makes some")
    return found


def truth(*dtypes: Any) -> Any:
    """Bool, whatever the dtypes are."""
    return BOOL


def rule_of_two(dtype: Callable[..., Any]) -> Callable[..., Any]:
    """The dtype rule of two arrays whose result is of the dtype that a function tells from theirs."""

    def rule(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        a, b = ins
        if a is not None and b is not None:
            return ins, [dtype(a, b)]
        if dtype is truth:  # what is not known yet is like the rest
            t = a if b is None else b
            return [t, t], [BOOL]
        t = merge_dtype(a if b is None else b, outs[0] if a is b else None)
        return [t, t], [None if t is None else dtype(t, t)]

    return rule


def rule_of_one(dtype: Callable[..., Any]) -> Callable[..., Any]:
    """The dtype rule of one array whose result is of the dtype that a function tells from its."""

    def rule(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        if ins[0] is None and (outs[0] is None or dtype is truth):
            return ins, [BOOL if dtype is truth else None]
        t = outs[0] if ins[0] is None else ins[0]
        return [t], [dtype(t)]

    return rule


def cast_first(body: Any, dtype: Callable[[Any], Any]) -> Any:
    """A body of one array that is cast to the dtype of the result first."""
    return lambda k, p, x: body(k, p, x.astype(dtype(x.dtype), copy=False))


def truth_as(other: Any) -> Callable[[Any], Any]:
    """The dtype of an array, another one of truth values."""
    return lambda t: other if t == BOOL else t


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


def gradients_of_two(g: Any) -> Any:
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


def gradient_of_quotient(rule: Any) -> Any:
    """The gradient rule of a quotient with a number, of an array whose dtype may not be that of the quotient."""
    if rule.__code__.co_argcount == 3:
        return lambda F, p, dy, like_data: _like(F, rule(F, p, dy), like_data)
    return lambda F, p, dy, data: _like(F, rule(F, p, dy, _like(F, data, dy)), data)
