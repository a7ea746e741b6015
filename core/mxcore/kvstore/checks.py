"""What stores refuse, in the same words whatever their type: for types of store, in any plugin."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from ..base import MXNetWarning, error
from ..ndarray import NDArray
from .keys import Key

__all__ = ["check_arrays", "check_fresh", "check_row_sparse", "leaves_sparse"]


def check_fresh(keys: Iterable[Key], known: Collection[Key]) -> None:
    """Refuse first values for keys that have one, or are of another type than the others.

    Parameters
    ----------
    keys : iterable of int or str
        Those that get a value.
    known : collection of int or str
        Those that have one.

    Raises
    ------
    MXNetError
        (also TypeError or ValueError) naming the key.

    Examples
    --------
    >>> check_fresh(["a", "b"], [])
    >>> check_fresh([3], {3})
    Traceback (most recent call last):
        ...
    mxcore.base.MXNetValueError: kvstore: key 3 was initialised before; init and broadcast take a key once
    """
    fresh: set[Key] = set()
    kind = None if not known else type(next(iter(known)))
    for key in keys:
        kind = kind or type(key)
        if type(key) is not kind:
            raise error(
                TypeError,
                f"kvstore: key {key!r} is of type {type(key).__name__}, but the keys of this store are {kind.__name__}",
            )
        if key in known or key in fresh:
            raise error(ValueError, f"kvstore: key {key!r} was initialised before; init and broadcast take a key once")
        fresh.add(key)


def check_arrays(verb: str, key: Key, value: NDArray | None, arrays: Sequence[NDArray]) -> None:
    """Refuse arrays that do not fit the value of a key.

    Parameters
    ----------
    verb : str
        What is done: 'push', 'pull', …
    key : int or str
    value : NDArray or None
        Its value, or an array like it; None: it has none.
    arrays : sequence of NDArray

    Raises
    ------
    MXNetError
        (also KeyError, ValueError or TypeError) naming what is done and the key.

    Examples
    --------
    >>> import mxcore as mx
    >>> check_arrays("push", "w", mx.nd.ones(2), [mx.nd.ones(2)])
    """
    if value is None:
        raise error(
            KeyError, f"kvstore: {verb} of key {key!r}, which was not initialised; call init or broadcast first"
        )
    for a in arrays:
        if a.shape != value.shape:
            raise error(
                ValueError,
                f"kvstore: {verb} of key {key!r}: its value has shape {value.shape}, but the array "
                f"on {a.context} has shape {a.shape}",
            )
        if verb == "push" and a.dtype != value.dtype:
            raise error(
                TypeError,
                f"kvstore: push of key {key!r}: its value is {np.dtype(value.dtype).name}, the array on {a.context} "
                f"is {np.dtype(a.dtype).name}; use astype",
            )
        if verb == "push" and a.stype == "csr":
            raise error(
                TypeError,
                f"kvstore: push of key {key!r}: a csr array cannot be pushed; use tostype('default') "
                "or tostype('row_sparse')",
            )


def check_row_sparse(key: Key, value: NDArray, outs: Sequence[NDArray]) -> None:
    """Refuse to pull rows unless value and arrays are row-sparse.

    Parameters
    ----------
    key : int or str
    value : NDArray
        Its value, or an array like it.
    outs : sequence of NDArray
        Where rows go.

    Raises
    ------
    MXNetError
        (also TypeError) naming the key, and which of them is not.

    Examples
    --------
    >>> import mxcore as mx
    >>> rows = mx.nd.sparse.zeros("row_sparse", (4, 2))
    >>> check_row_sparse("w", rows, [rows])
    """
    for what, array in (("the value", value), *(("out", out) for out in outs)):
        if array.stype != "row_sparse":
            raise error(
                TypeError, f"kvstore: row_sparse_pull of key {key!r}: {what} must be row_sparse, it is {array.stype}"
            )


def leaves_sparse(key: Key, out: NDArray, ignore_sparse: bool) -> bool:
    """Whether a pull leaves an array as it is, which is said: a sparse one, unless the user wants those filled, too.

    Parameters
    ----------
    key : int or str
    out : NDArray
    ignore_sparse : bool
        What the user says.

    Examples
    --------
    >>> import mxcore as mx
    >>> leaves_sparse("w", mx.nd.ones(2), True)
    False
    """
    if not ignore_sparse or out.stype == "default":
        return False
    warnings.warn(
        f"kvstore: pull of key {key!r} leaves a {out.stype} array as it is; use "
        "row_sparse_pull, or ignore_sparse=False",
        MXNetWarning,
        stacklevel=6,
    )
    return True
