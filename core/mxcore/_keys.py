"""Keys of caches: values that Python takes for equal, and that are not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["told"]


def told(values: Iterable[Any]) -> tuple[Any, ...]:
    """What tells some values from others that they equal, beside their classes: what tuples hold, and signs of zeros.

    Examples
    --------
    >>> [told([v]) for v in (1, (2, 3), (2, 3.5), (True,), 0.5, -0.0)]
    [(), (None,), ((<class 'int'>, '3.5'),), ((<class 'bool'>,),), (), ('-0.0',)]
    """
    return tuple([_inner(v) for v in values if v.__class__ is tuple or isinstance(v, (float, np.floating)) and not v])


def _inner(v: Any) -> Any:
    if v.__class__ is not tuple:
        return repr(v) if isinstance(v, (float, np.floating)) else v.__class__
    return None if {*map(type, v)} == {int} else tuple(map(_inner, v))
