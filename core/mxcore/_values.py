"""Values of users: as Python's own, and told apart where Python takes them for equal."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Number
from typing import Any

import numpy as np

__all__ = ["plain", "text", "told"]


def told(values: Iterable[Any]) -> tuple[Any, ...]:
    """What tells some values from others that they equal, beside their classes: what tuples hold, and signs of zeros.

    Examples
    --------
    >>> [told([v]) for v in (1, (2, 3), (2, 3.5), (True,), 0.5, -0.0)]
    [(), (None,), ((<class 'int'>, '3.5'),), ((<class 'bool'>,),), (), ('-0.0',)]
    """
    found: tuple[Any, ...] = ()
    for v in values:  # of nearly all calls, so that each test counts
        if (kind := v.__class__) is int or kind is str or kind is bool or v is None:
            continue
        if isinstance(v, tuple) or _is_odd(v):
            found += (_inner(v),)
    return found


_INTEGERS, _FLOATS, _EXACT = {int}, (float, np.floating), (int, float, complex, np.generic)


def _is_odd(v: Any) -> bool:
    """Whether equal ones may differ: zeros, which have signs, and numbers that know how they are written."""
    return not v if isinstance(v, _FLOATS) else isinstance(v, Number) and not isinstance(v, _EXACT)


def _inner(v: Any) -> Any:
    if not isinstance(v, tuple):
        return repr(v) if isinstance(v, _FLOATS) or _is_odd(v) else v.__class__
    if v.__class__ is tuple:
        return None if {*map(type, v)} == _INTEGERS else tuple(map(_inner, v))
    return (v.__class__, *map(_inner, v))


def plain(value: Any) -> Any:
    """A number of NumPy's as Python's own, also as an item of a tuple, list or dictionary; anything else as it is.

    NumPy's numbers wrap around where Python's grow, JSON has no place for them, and in a tuple they print as
    ``np.int64(3)``.

    Examples
    --------
    >>> plain(np.uint8(3)), plain((np.int64(2), 3)), plain({"a": np.float64(0.5)}), plain("a")
    (3, (2, 3), {'a': 0.5}, 'a')
    """
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    if type(value) is dict:
        return {k: plain(v) for k, v in value.items()}
    return value.item() if isinstance(value, (np.number, np.bool_)) else value


def text(value: Any) -> str:
    """What ``str`` gave before NumPy 2: numbers of NumPy's say in tuples no more than alone.

    Examples
    --------
    >>> text((np.int64(3), 4)), text(np.float32(0.1))
    ('(3, 4)', '0.1')
    """
    return str(value if isinstance(value, np.generic) else plain(value))
