"""Functions of ``mx.sym`` that make or combine symbols and are more than one operator."""

from __future__ import annotations

import math
import numbers
from typing import Any

from .._core.errors import error
from .symbol import Symbol, compose

__all__ = [
    "arange",
    "eye",
    "full",
    "histogram",
    "hypot",
    "linspace",
    "maximum",
    "minimum",
    "ones",
    "pow",
    "power",
    "split_v2",
    "zeros",
]


def _dtype(dtype: Any) -> Any:
    return "float32" if dtype is None else dtype


def zeros(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Zeros.

    Parameters
    ----------
    shape : int or tuple of int
        0 is a dimension that the consumer decides.
    dtype : dtype, optional
        float32 unless told.
    **kwargs
        ``name``, ``attr``.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.sym.zeros((2, 3)).infer_shape()[1]
    [(2, 3)]
    """
    return compose("_zeros", (), {"shape": shape, "dtype": _dtype(dtype), **kwargs})


def ones(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Ones; parameters as in `zeros`."""
    return compose("_ones", (), {"shape": shape, "dtype": _dtype(dtype), **kwargs})


def full(shape: Any, val: float, dtype: Any = None, **kwargs: Any) -> Symbol:
    """The number `val` everywhere; further parameters as in `zeros`."""
    return compose(
        "_full",
        (),
        {
            "shape": shape,
            "dtype": _dtype(dtype),
            "value": float(val) if isinstance(val, numbers.Real) else val,
            **kwargs,
        },
    )


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    name: str | None = None,
    dtype: Any = None,
) -> Symbol:
    """Evenly spaced values from `start` to below `stop` (without it from 0 to below `start`), each `repeat` times.

    Parameters
    ----------
    infer_range : bool
        The consumer's shape decides where to stop.
    """
    return compose(
        "_arange",
        (),
        dict(start=start, stop=stop, step=step, repeat=repeat, infer_range=infer_range, name=name, dtype=_dtype(dtype)),
    )


def linspace(
    start: float, stop: float, num: int, endpoint: bool = True, name: str | None = None, dtype: Any = None
) -> Symbol:
    """`num` evenly spaced values from `start` to `stop`, which is left out without `endpoint`."""
    return compose(
        "_linspace", (), dict(start=start, stop=stop, num=num, endpoint=endpoint, name=name, dtype=_dtype(dtype))
    )


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = None, **kwargs: Any) -> Symbol:
    """A matrix of N rows and M (N if 0) columns with ones on the `k`-th diagonal."""
    return compose("_eye", (), {"N": N, "M": M, "k": k, "dtype": _dtype(dtype), **kwargs})


def histogram(a: Symbol, bins: Any = 10, range: tuple[float, float] | None = None, **kwargs: Any) -> Symbol:
    """Counts of values in bins, and the edges of the bins.

    Parameters
    ----------
    bins : int or Symbol
        Number of equal bins over `range`, which must be given then, or the edges.
    """
    if isinstance(bins, Symbol):
        return compose("_histogram", (a, bins), kwargs)
    if range is None:
        raise error(ValueError, "histogram: a graph does not know the values yet; give the range, or bins as a Symbol")
    return compose("_histogram", (a,), {"bin_cnt": bins, "range": range, **kwargs})


def split_v2(ary: Symbol, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Symbol:
    """Split at indices (a tuple) or into equal sections (an int)."""
    if isinstance(indices_or_sections, int):
        indices, sections = [], indices_or_sections
    elif isinstance(indices_or_sections, (tuple, list)):
        indices, sections = [0, *indices_or_sections], 0
    else:
        raise error(
            ValueError, f"split_v2: indices_or_sections must be an int or a tuple of ints, got {indices_or_sections!r}"
        )
    return compose("_split_v2", (ary,), dict(indices=indices, axis=axis, squeeze_axis=squeeze_axis, sections=sections))


def _two(called: str, left: Any, right: Any, both: str, scalar: str, reverse: str, numbers: Any) -> Any:
    """Two symbols, a symbol and a number, or two numbers, with the operator for each."""
    symbols = isinstance(left, Symbol), isinstance(right, Symbol)
    for v, symbol in zip((left, right), symbols):
        if not symbol and not isinstance(v, (int, float)) and not hasattr(v, "__float__"):
            raise error(
                TypeError, f"{called} takes Symbols and numbers, got {type(left).__name__} and {type(right).__name__}"
            )
    if all(symbols):
        return compose(both, (left, right), {})
    if symbols[0]:
        return compose(scalar, (left,), {"scalar": right})
    return compose(reverse, (right,), {"scalar": left}) if symbols[1] else numbers(left, right)


def pow(base: Any, exp: Any) -> Any:
    """`base` to the power of `exp`, each a Symbol or a number; of two numbers a number."""
    return _two("pow", base, exp, "_Power", "_PowerScalar", "_RPowerScalar", lambda b, e: b**e)


power = pow


def maximum(left: Any, right: Any) -> Any:
    """The greater of two, elementwise, each a Symbol or a number; of two numbers a number."""
    return _two("maximum", left, right, "_Maximum", "_MaximumScalar", "_MaximumScalar", max)


def minimum(left: Any, right: Any) -> Any:
    """The smaller of two, elementwise, each a Symbol or a number; of two numbers a number."""
    return _two("minimum", left, right, "_Minimum", "_MinimumScalar", "_MinimumScalar", min)


def hypot(left: Any, right: Any) -> Any:
    """``sqrt(left**2 + right**2)``, elementwise, each a Symbol or a number; of two numbers a number."""
    return _two("hypot", left, right, "_Hypot", "_HypotScalar", "_HypotScalar", math.hypot)
