"""Nested arguments: what is in them, flat and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import ndarray as nd
from ...base import error

__all__ = ["arrays_in", "count", "flatten", "is_symbol", "regroup"]


def is_symbol(x: Any) -> bool:
    """Whether `x` is a symbol; asks without loading the symbol face for arrays and numbers."""
    if isinstance(x, (nd.NDArray, int, float, str, type(None), list, tuple)):
        return False
    from ... import symbol

    return isinstance(x, symbol.Symbol)


def arrays_in(x: Any, found: list[Any]) -> list[Any]:
    """Collect the arrays and symbols of nested lists and tuples in `found`; the rest is passed over."""
    if isinstance(x, (list, tuple)):
        for item in x:
            arrays_in(item, found)
    elif isinstance(x, nd.NDArray) or is_symbol(x):
        found.append(x)
    return found


def flatten(x: Any, leaves: list[Any], what: str = "input") -> int | list[Any]:
    """Collect the leaves of nested lists and tuples.

    Parameters
    ----------
    x : NDArray or Symbol or None or nested list of them
    leaves : list
        Where the arrays and symbols go.
    what : str
        'input' or 'output', for messages.

    Returns
    -------
    int or list
        The structure: 0 for a leaf, -1 for None, a list for a list; a symbol of several outputs is a list.

    Raises
    ------
    MXNetError (ValueError)
        If there is something else inside.
    """
    if x is None:
        return -1
    if isinstance(x, (list, tuple)):
        return [flatten(item, leaves, what) for item in x]
    if isinstance(x, nd.NDArray):
        leaves.append(x)
        return 0
    if is_symbol(x):
        leaves += [x] if x.num_outputs == 1 else list(x)
        return 0 if x.num_outputs == 1 else [0] * x.num_outputs
    raise error(
        ValueError,
        f"When hybridized, the {what} of HybridBlock must be (nested) list of Symbol or NDArray, "
        f"but got {x!r} of type {type(x)}",
    )


def regroup(leaves: Iterator[Any], structure: Any) -> Any:
    """Undo `flatten`: take from the iterator `leaves` what `structure` asks for."""
    if structure == -1:
        return None
    if structure == 0:
        return next(leaves)
    return [regroup(leaves, part) for part in structure]


def count(structure: Any) -> int:
    """How many leaves a structure has."""
    return sum(map(count, structure)) if isinstance(structure, list) else int(structure == 0)
