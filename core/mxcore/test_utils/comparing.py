"""Whether arrays are alike, and what to say when they are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import error
from .tolerances import get_etol, get_tols, host

__all__ = [
    "almost_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_almost_equal_ignore_nan",
    "assert_almost_equal_with_err",
    "assert_exception",
    "checkShapes",
    "compare_ndarray_tuple",
    "locationError",
    "same",
    "same_array",
]

#: Keeps an error that is divided by a tolerance of zero finite.
_TINY = 1e-20


class ShapeMismatch(AssertionError, ValueError):
    """Arrays that were to be compared cannot be broadcast together."""


def same(a: Any, b: Any) -> bool:
    """Whether two arrays have the same shape and the same elements; NaN differs from itself.

    Parameters
    ----------
    a, b : NDArray, numpy.ndarray or array_like

    >>> same(np.ones(2), np.ones(2)), same(np.ones(2), np.ones(3))
    (True, False)
    """
    return bool(np.array_equal(host(a), host(b)))


def same_array(array1: Any, array2: Any) -> bool:
    """Whether what is written to one array appears in the other, element for element.

    Parameters
    ----------
    array1, array2 : NDArray
        They are written, and hold their old values again afterwards.

    >>> import mxcore as mx
    >>> x = mx.nd.ones((4,))
    >>> same_array(x, x), same_array(x, x.copy())
    (True, False)
    """
    if tuple(array1.shape) != tuple(array2.shape) or array1.dtype != array2.dtype:
        return False
    old = array1.copy()
    try:
        for value in (0, 1):  # no array that stands apart holds both
            array1[:] = value
            if not (host(array2) == value).all():
                return False
        return bool(old.size > 0)
    finally:
        array1[:] = old


def _wide(v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """At least float64."""
    return v.astype(np.result_type(v.dtype, np.float64) if v.dtype.kind in "biufc" else np.float64, copy=False)


def _differ(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], rtol: float, atol: float, equal_nan: bool) -> Any:
    """Which elements differ, in the broadcast shape, decided in float64 at least; None if none does."""
    if a.shape == b.shape and (a == b).all():
        return None
    if a.dtype.kind in "biu" and b.dtype.kind in "biu" and not rtol and not atol:
        bad = np.asarray(a != b)  # exact, also where float64 is not
    else:
        x, y = _wide(a), _wide(b)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.asarray((np.abs(x - y) <= atol + rtol * np.abs(y)) & np.isfinite(y))
            near |= x == y
        if equal_nan:
            near |= np.isnan(x) & np.isnan(y)
        bad = ~near
    return bad if bad.any() else None


def _excess(
    a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], bad: Any, rtol: float, atol: float
) -> np.ndarray[Any, Any]:
    """By how many tolerances the elements marked in `bad` differ, 0 elsewhere."""
    x, y = _wide(a), _wide(b)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(bad, np.abs(x - y) / (atol + rtol * np.abs(y) + _TINY), 0.0)


def _broadcast(a: Any, b: Any, names: Sequence[str]) -> tuple[Any, Any]:
    a, b = host(a), host(b)
    for name, v in zip(names, (a, b)):
        if v.dtype.kind not in "biufcV":  # V: bfloat16
            raise error(TypeError, f"{name} is no array of numbers: {_show(v)}")
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise ShapeMismatch(f"shapes do not fit: {names[0]} has {a.shape}, {names[1]} has {b.shape}") from None
    return a, b


def _show(value: Any) -> str:
    with np.printoptions(threshold=100, edgeitems=3):
        return repr(value)


def _values(a: Any, b: Any) -> str:
    return f" ACTUAL: {_show(a)}\n DESIRED: {_show(b)}"


def locationError(a: Any, b: Any, index: Any, names: Sequence[str], maxError: bool = False) -> str:
    """Say where two arrays differ.

    Parameters
    ----------
    a, b : numpy.ndarray
    index : tuple
        The place.
    names : tuple of str
        What the arrays are called.
    maxError : bool
        It is the place of the largest error.

    >>> locationError(np.zeros(3), np.ones(3), (1,), ("x", "y"), maxError=True)
    'Location of maximum error: (1,), x=0.00000000, y=1.00000000'
    """
    # Text formats take scalars; an index may hold arrays of one element.
    x, y = (np.asarray(host(v)[tuple(index)]).reshape(-1)[0] for v in (a, b))
    kind = "maximum error" if maxError else "error"
    return f"Location of {kind}: {tuple(index)}, {names[0]}={_number(x)}, {names[1]}={_number(y)}"


def _number(x: Any) -> str:
    if np.iscomplexobj(x):
        return f"{complex(x):.8f}"
    return f"{x:.8f}" if np.asarray(x).dtype.kind == "f" else f"{float(x):.8f}"


def _report(a: Any, b: Any, bad: Any, rtol: float, atol: float, names: Sequence[str], mismatches: Sequence[int]) -> str:
    """The text of a failure; the largest errors are printed as well, one a line."""
    rows, excess = np.flatnonzero(bad), _excess(a, b, bad, rtol, atol)
    errors = excess.reshape(-1)[rows]
    # The largest first, NaN before all, equal ones in the order of the array.
    order = rows[np.lexsort((rows, -np.nan_to_num(errors, posinf=np.inf), ~np.isnan(errors)))]
    worst = float(excess.reshape(-1)[order[0]])
    head = f"Error {worst:f} exceeds tolerance rtol={rtol:e}, atol={atol:e}"
    if not bad.ndim:
        return f"\nItems differ:\n{head}.\n{_values(a, b)}"
    x, y = np.broadcast_arrays(a, b)
    places = [tuple(int(i) for i in np.unravel_index(at, bad.shape)) for at in order[: max(1, mismatches[0])]]
    shown = places[: mismatches[1]]
    if shown:
        print(
            f"\n*** {len(order)} of {bad.size} elements differ by more "
            f"than rtol={rtol}, atol={atol}; the largest errors:\n"
        )
        for n, place in enumerate(shown, 1):
            print(f"{n:3d}: Error {float(excess[place]):f}  {locationError(x, y, place, names)}")
    share = f"(mismatch {100 * len(order) / bad.size:f}%)"
    return f"\nItems differ:\n{head} {share}.\n{locationError(x, y, places[0], names, maxError=True)}\n{_values(a, b)}"


def _check(
    a: Any, b: Any, rtol: Any, atol: Any, share: float, names: Sequence[str], equal_nan: bool, mismatches: Sequence[int]
) -> None:
    """Raise AssertionError if more than this share of the elements differ."""
    rtol, atol = get_tols(a, b, rtol, atol)
    a, b = _broadcast(a, b, names)
    bad = _differ(a, b, rtol, atol, equal_nan)
    if bad is not None and np.count_nonzero(bad) > share * bad.size:
        raise AssertionError(_report(a, b, bad, rtol, atol, names, mismatches))


def checkShapes(a: Any, b: Any) -> None:
    """Raise AssertionError unless two arrays have the same shape.

    >>> checkShapes(np.ones(2), np.zeros(2))
    """
    if tuple(a.shape) != tuple(b.shape):
        raise ShapeMismatch(
            f"\nItems differ: a.shape = {tuple(a.shape)} and b.shape = {tuple(b.shape)}\n{_values(host(a), host(b))}"
        )


def almost_equal(
    a: Any, b: Any, rtol: Any = None, atol: Any = None, equal_nan: bool = False, use_broadcast: bool = True
) -> bool:
    """Whether two arrays are alike within tolerances; see `assert_almost_equal`.

    >>> almost_equal(np.ones(2), np.ones(2) + 1e-9), almost_equal(np.ones(2), np.zeros(2))
    (True, False)
    """
    if not use_broadcast:
        checkShapes(a, b)
    rtol, atol = get_tols(a, b, rtol, atol)
    x, y = _broadcast(a, b, "ab")
    return _differ(x, y, rtol, atol, equal_nan) is None


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: Any = None,
    atol: Any = None,
    names: Sequence[str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: Sequence[int] = (10, 10),
) -> None:
    """Check that ``|a - b| <= atol + rtol * |b|`` everywhere, decided in float64.

    Parameters
    ----------
    a, b : NDArray, numpy.ndarray or array_like
        What is, and what should be. Sparse arrays are compared as full ones.
    rtol, atol : None, float, or dict of dtype to float
        Tolerances; None is the default of the less exact dtype, see `default_rtols` and `default_atols`.
    names : tuple of str
        What to call the two in the message.
    equal_nan : bool
        NaN equals NaN.
    use_broadcast : bool
        Arrays of different shape are broadcast; else they are an error.
    mismatches : tuple of int
        How many of the largest errors to look for, and how many of these to print.

    Raises
    ------
    AssertionError
        If they differ. The text has the largest error, in tolerances, and its place. It is a ValueError as well if the
        shapes do not fit.

    Examples
    --------
    >>> import mxcore as mx
    >>> assert_almost_equal(mx.nd.ones((2, 3)), np.ones((2, 3)))
    """
    if not use_broadcast:
        checkShapes(a, b)
    _check(a, b, rtol, atol, 0, names, equal_nan, mismatches)


def assert_allclose(a: Any, b: Any, rtol: float = 1e-07, atol: float = 0, equal_nan: bool = True) -> None:
    """`assert_almost_equal` with the defaults of ``numpy.testing.assert_allclose``.

    >>> assert_allclose([1.0, np.nan], [1.0, np.nan])
    """
    assert_almost_equal(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def assert_almost_equal_with_err(
    a: Any,
    b: Any,
    rtol: Any = None,
    atol: Any = None,
    etol: float | None = None,
    names: Sequence[str] = ("a", "b"),
    equal_nan: bool = False,
    mismatches: Sequence[int] = (10, 10),
) -> None:
    """`assert_almost_equal`, but a share `etol` of the elements may differ.

    >>> assert_almost_equal_with_err(np.zeros(10), np.eye(1, 10)[0], etol=0.1)
    """
    _check(a, b, rtol, atol, get_etol(etol), names, equal_nan, mismatches)


def assert_almost_equal_ignore_nan(
    a: Any, b: Any, rtol: Any = None, atol: Any = None, names: Sequence[str] = ("a", "b")
) -> None:
    """`assert_almost_equal` where neither is NaN.

    >>> assert_almost_equal_ignore_nan(np.array([np.nan, 1]), np.array([5.0, 1]))
    """
    tols = get_tols(a, b, rtol, atol)
    a, b = _broadcast(a, b, names)
    skip = np.isnan(a) | np.isnan(b)
    a, b = (np.where(skip, 0, v) for v in (a, b))
    assert_almost_equal(a, b, *tols, names)


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: Any = None, atol: Any = None) -> None:
    """`assert_almost_equal` over the arrays in two tuples of one structure, such as optimizer states.

    Parameters
    ----------
    t1, t2 : NDArray, None, or (nested) tuple or list of these
        Where one is None nothing is compared.

    >>> import mxcore as mx
    >>> compare_ndarray_tuple((mx.nd.ones(2), None), (mx.nd.ones(2), None))
    """
    if t1 is None or t2 is None:
        return
    if isinstance(t1, (tuple, list)):
        if not isinstance(t2, (tuple, list)) or len(t1) != len(t2):
            found = f"{len(t2)} items" if isinstance(t2, (tuple, list)) else type(t2).__name__
            raise AssertionError(f"compare_ndarray_tuple: {len(t1)} items against {found}")
        for x, y in zip(t1, t2):
            compare_ndarray_tuple(x, y, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)


def assert_exception(f: Callable[..., Any], exception_type: type[BaseException], *args: Any, **kwargs: Any) -> None:
    """Check that a call raises an exception; others pass through.

    Parameters
    ----------
    f : callable
    exception_type : type
    *args, **kwargs
        What to call `f` with.

    >>> assert_exception(int, ValueError, "x")
    """
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    name = getattr(f, "__name__", repr(f))
    raise error(AssertionError, f"{name} raised nothing, but {exception_type.__name__} was expected")
