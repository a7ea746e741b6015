"""Bulk execution, as ``mxnet.engine``: how many operators MXNet's engine takes together.

Here operators run when they are called, or as a whole graph; the number is kept, and read back, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ._reexports import reexports
from .base import error

__all__ = ["bulk", "set_bulk_size"]

_size = 0


def set_bulk_size(size: int) -> int:
    """Set how many operators are taken together at most; returns what it was.

    Parameters
    ----------
    size : int
        Not below 0.

    Examples
    --------
    >>> import mxcore as mx
    >>> old = mx.engine.set_bulk_size(30)
    >>> mx.engine.set_bulk_size(old)
    30
    """
    global _size
    if not isinstance(size, int) or size < 0:
        raise error(ValueError, f"set_bulk_size: size must be a whole number, not below 0, got {size!r}")
    old, _size = _size, size
    return old


@contextmanager
def bulk(size: int) -> Iterator[None]:
    """A with-block with another bulk size.

    >>> import mxcore as mx
    >>> with mx.engine.bulk(10):
    ...     x = mx.nd.ones((2,)) + 1
    """
    old = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(old)


__getattr__ = reexports(__name__)
