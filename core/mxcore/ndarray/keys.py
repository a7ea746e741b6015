"""How keys of MXNet's indexing are read: functions that scripts take from MXNet's module."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import error
from .ndarray import NDArray

__all__ = ["get_indexing_dispatch_code", "get_oshape_of_gather_nd_op", "indexing_key_expand_implicit_axes"]

_BASIC, _ADVANCED = 0, 1
_NO_BOOL, _FALSE, _TRUE = -1, 0, 1


def get_indexing_dispatch_code(key: tuple[Any, ...]) -> int:
    """Whether a key is read in a basic way (0) or by arrays (1).

    Parameters
    ----------
    key : tuple
        Without an ellipsis, see `indexing_key_expand_implicit_axes`.

    Raises
    ------
    MXNetError
        (also ValueError) if part of it cannot be a key.

    Examples
    --------
    >>> get_indexing_dispatch_code((1, slice(None))), get_indexing_dispatch_code(([0, 1],))
    (0, 1)
    """
    code = _BASIC
    for part in key:
        if isinstance(part, (NDArray, np.ndarray, list, tuple, range)):
            code = _ADVANCED
        elif part is not None and not isinstance(part, (slice, numbers.Integral, np.bool_)):
            raise error(ValueError, f"NDArray does not support slicing with key {part} of type {type(part)}.")
    return code


def get_oshape_of_gather_nd_op(dshape: Sequence[int], ishape: Sequence[int]) -> tuple[int, ...]:
    """The shape that ``gather_nd`` gives for data and indices of these shapes.

    >>> get_oshape_of_gather_nd_op((2, 3, 4), (2, 5))
    (5, 4)
    """
    if not ishape or ishape[0] > len(dshape):
        raise error(
            ValueError,
            f"gather_nd: indices of shape {tuple(ishape)} name {ishape[0] if ishape else 0} axes, "
            f"data {tuple(dshape)} has {len(dshape)}",
        )
    return (*ishape[1:], *dshape[ishape[0] :])


def indexing_key_expand_implicit_axes(key: Any, shape: Sequence[int]) -> tuple[tuple[Any, ...], int]:
    """A key with a part for each axis of an array, and whether there is a bool without dimensions in it.

    Parameters
    ----------
    key : index or tuple of them
    shape : sequence of int
        The array's.

    Returns
    -------
    key : tuple
        An ellipsis is written out, bools without dimensions become a slice.
    bool_code : int
        -1 without such a bool, 0 if one is false, else 1.

    Raises
    ------
    MXNetError
        (also IndexError) for more than one ellipsis.

    Examples
    --------
    >>> indexing_key_expand_implicit_axes((..., 1), (2, 3))
    ((slice(None, None, None), 1), -1)
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    code = _NO_BOOL
    for i, part in enumerate(parts):
        if isinstance(part, (bool, np.bool_)):
            code = _FALSE if code == _FALSE or not part else _TRUE
            parts[i] = slice(None)
    places = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(places) > 1:
        raise error(IndexError, "Cannot use more than one ellipsis (`...`) for indexing")
    used = sum(
        part.ndim if isinstance(part, (NDArray, np.ndarray)) and part.dtype == np.bool_ else 1
        for part in parts
        if part is not None and part is not Ellipsis
    )
    at = places[0] if places else len(parts)
    return (*parts[:at], *[slice(None)] * (len(shape) - used), *parts[at + len(places) :]), code
