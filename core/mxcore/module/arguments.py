"""Are arguments of the kind that is meant? Asked before any work begins, so that a slip costs no epoch."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from ..base import error
from .names import as_list

__all__ = ["callbacks", "data_source", "epochs", "initializer_of", "names", "options", "parts_of", "work_loads"]


def names(value: Any, what: str) -> list[str]:
    """A list of names; None is none.

    Raises
    ------
    MXNetError
        (also TypeError) for one name that stands alone, or what is no name.
    """
    if value is None:
        return []
    if not isinstance(value, (list, tuple, set, frozenset, Mapping)) or not all(isinstance(v, str) for v in value):
        hint = f"; write [{value!r}]" if isinstance(value, str) else ""
        raise error(TypeError, f"{what} must be a list of names, got {value!r}{hint}")
    return list(value)


def work_loads(value: Any, count: int) -> list[float]:
    """The share of each of `count` contexts; equal for None."""
    if value is None:
        return [1] * count
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, (int, float)) and v > 0 for v in value):
        raise error(TypeError, f"work_load_list must be a list with a number above 0 for each context, got {value!r}")
    if len(value) != count:
        raise error(AssertionError, f"work_load_list has {len(value)} entries for {count} contexts")
    return list(value)


def callbacks(value: Any, what: str) -> list[Callable[..., Any]]:
    """A callable or several as a list; None is none."""
    found = [] if value is None else as_list(value)
    wrong = [c for c in found if not callable(c)]
    if wrong:
        raise error(TypeError, f"{what} must be a callable or a list of them, got {wrong[0]!r}")
    return found


def data_source(value: Any, what: str, *needed: str) -> Any:
    """A DataIter, or whatever else can be gone through and has the attributes that are `needed`."""
    lacking = [n for n in needed if not hasattr(value, n)]
    if lacking or not hasattr(value, "__iter__"):
        raise error(
            TypeError,
            f"{what} must be a DataIter, got {type(value).__name__}"
            + (f", which has no {', '.join(lacking)}" if lacking else "")
            + "; arrays become one by mx.io.NDArrayIter(data, label, batch_size)",
        )
    return value


def epochs(begin: Any, end: Any) -> range:
    """The epochs from `begin` to before `end`."""
    if end is None:
        raise error(AssertionError, "fit: please specify the number of epochs, num_epoch=…")
    try:
        return range(operator.index(begin), operator.index(end))
    except TypeError:
        raise error(
            TypeError, f"fit: begin_epoch and num_epoch must be whole numbers, got {begin!r} and {end!r}"
        ) from None


def initializer_of(value: Any) -> Any:
    """An initializer: a callable of description and array."""
    if isinstance(value, type) or not callable(value):
        raise error(
            TypeError,
            "initializer must be an Initializer such as mx.init.Xavier(), "
            f"or a function of name and array, got {value!r}",
        )
    return value


def options(value: Any, what: str) -> dict[str, Any]:
    """Arguments by name, from a dict or pairs; None is none."""
    try:
        return dict(value or ())
    except (TypeError, ValueError):
        raise error(TypeError, f"{what} must be a dict or a list of (name, value), got {value!r}") from None


def parts_of(batch: Any) -> list[Any] | None:
    """The batches of a list with one for each context; None for a whole batch, which may be any object with `data`.

    Raises
    ------
    MXNetError
        (also TypeError) if it is neither.
    """
    whole = hasattr(batch, "data") or not isinstance(batch, (list, tuple))  # namedtuples are batches, too
    for one in [batch] if whole else batch:
        if not isinstance(getattr(one, "data", None), (list, tuple)):
            raise error(
                TypeError,
                f"forward takes a DataBatch, got {type(one).__name__}; write mx.io.DataBatch([data], [label])",
            )
    return None if whole else list(batch)
