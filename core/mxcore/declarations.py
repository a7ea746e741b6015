"""The operators that modules declare, and where their samples stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from ._core.op import Op

__all__ = ["declarations"]


def declarations(*modules: ModuleType, samples: str = "") -> list[Op]:
    """All operators declared in the given modules, also those in module-level lists, tuples and dicts.

    Parameters
    ----------
    *modules : module
    samples : str
        ``"module:table"``, where the samples of those operators stand that were declared without: operator name ->
        samples. The module is imported when somebody asks for samples.
    """
    found: dict[int, Op] = {}

    def take(v: Any, depth: int = 0) -> None:
        if isinstance(v, Op):
            found[id(v)] = v
        elif isinstance(v, (list, tuple, dict)) and depth < 3:
            for x in v.values() if isinstance(v, dict) else v:
                take(x, depth + 1)

    for m in modules:
        for key, v in list(vars(m).items()):
            if not key.startswith("__"):
                take(v)
    for op in found.values() if samples else ():
        op.sampled = op.sampled or partial(_row, samples, op.name)
    return list(found.values())


def _row(table: str, name: str) -> Sequence[Any]:
    """The samples of the operator `name` in ``"module:table"``."""
    module, _, attribute = table.partition(":")
    rows: Mapping[str, Sequence[Any]] = getattr(import_module(module), attribute)
    return rows.get(name, ())
