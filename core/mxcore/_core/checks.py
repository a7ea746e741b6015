"""Checks of declarations, made as they are made. Who knows what a part of one must be like enters a check of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["CHECKS", "checked"]

#: What is declared -> ``(it, or its operator and it)``, which raises if it is wrong (:mod:`mxcore.wellformed`).
CHECKS: dict[str, Callable[..., None]] = {}


def checked(what: str, *given: Any) -> Any:
    """The last of what was `given`, which is `what`, after the check of that, if there is one."""
    if what in CHECKS:
        CHECKS[what](*given)
    return given[-1]
