"""Keys, values and numbers as users give them."""

from __future__ import annotations

import math
import operator
from typing import Any, TypeAlias

from ..base import asserted, error
from ..ndarray import NDArray

__all__ = ["Groups", "Key", "check_index", "check_number", "group", "pairs", "singles"]

Key: TypeAlias = int | str
#: Arrays by key: from each device one, or one for each.
Groups: TypeAlias = dict[Key, list[NDArray]]


def pairs(key: Any, value: Any) -> list[tuple[Key, list[NDArray]]]:
    """Match keys with arrays, in the order given.

    Parameters
    ----------
    key : int or str, or a list of keys
        Which values; all of one type.
    value : NDArray, or a list
        For one key an array or a list of arrays, for a list of keys a list of such things.

    Returns
    -------
    list of (key, list of NDArray)

    Raises
    ------
    MXNetError
        (also ValueError or TypeError) naming the key, if the two do not match.

    Examples
    --------
    >>> import mxcore as mx
    >>> a = mx.nd.ones(1)
    >>> [(k, len(arrays)) for k, arrays in pairs([3, 5], [a, [a, a]])]
    [(3, 1), (5, 2)]
    """
    if not isinstance(key, (list, tuple)):
        return [(_key(key), _arrays(key, value))]
    if not isinstance(value, (list, tuple)):
        raise error(TypeError, f"kvstore: {len(key)} keys need a list of as many values, got {_kind(value)}")
    if len(value) != len(key):
        raise error(ValueError, f"kvstore: {len(key)} keys were given, but {len(value)} values")
    found = [pair for k, v in zip(key, value) for pair in pairs(k, v)]
    if len({type(k) for k, _ in found}) > 1:
        raise error(TypeError, f"kvstore: keys must be all int or all str, got {[k for k, _ in found][:10]}")
    return found


def group(key: Any, value: Any) -> Groups:
    """Match keys with arrays; those of a key that comes twice are put together. Arguments as for `pairs`."""
    groups: Groups = {}
    for k, arrays in pairs(key, value):
        groups.setdefault(k, []).extend(arrays)
    return groups


def singles(verb: str, key: Any, value: Any) -> list[tuple[Key, NDArray]]:
    """Match keys with values, one array for each; as `pairs` does, for what is done: 'init', 'broadcast'."""
    values = pairs(key, value)
    for k, arrays in values:
        if len(arrays) != 1:
            raise error(ValueError, f"kvstore: {verb} takes one array for key {k!r}, got {len(arrays)}")
    return [(k, array) for k, (array,) in values]


def check_index(what: str, value: Any) -> int:
    """An int, of any type that stands for one; what it is for is said if it is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise error(TypeError, f"kvstore: {what} is an int, not {value!r}") from None


def check_number(what: str, value: Any) -> float:
    """A number as a float; what it is for is said if it is none."""
    if not hasattr(value, "__float__") or math.isnan(value):
        raise error(TypeError, f"kvstore: {what} is a number, not {value!r}")
    return float(value)


def _key(key: Any) -> Key:
    if isinstance(key, str):
        return str(key)
    try:
        return operator.index(key)
    except TypeError:
        raise asserted(TypeError, f"kvstore: a key is an int or a str, got {_kind(key)} {key!r}") from None


def _arrays(key: Any, value: Any) -> list[NDArray]:
    arrays = list(value) if isinstance(value, (list, tuple)) else [value]
    if not arrays:
        raise error(ValueError, f"kvstore: an empty list was given for key {key!r}; give at least one array")
    for a in arrays:
        if not isinstance(a, NDArray):
            raise error(TypeError, f"kvstore: key {key!r} takes an NDArray or a list of them, got {_kind(a)}")
    return arrays


def _kind(x: Any) -> str:
    return f"a list of {len(x)}" if isinstance(x, (list, tuple)) else type(x).__name__
