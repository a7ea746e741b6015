"""`inspect.getargspec`, which Python 3.11 removed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple


class ArgSpec(NamedTuple):
    """What `getargspec` returns."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(func: Callable[..., Any]) -> ArgSpec:
    """Names and defaults of a function's arguments; keyword-only arguments are a ValueError."""
    spec = inspect.getfullargspec(func)
    if spec.kwonlyargs or spec.annotations:
        raise ValueError("getargspec: keyword-only arguments or annotations; use inspect.signature")
    return ArgSpec(spec.args, spec.varargs, spec.varkw, spec.defaults)
