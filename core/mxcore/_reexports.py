"""Names that MXNet's modules show in their public faces although others define them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _importing

__all__ = ["reexports"]


def reexports(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module that shows such names, which `compat.names` knows once one is asked for.

    Parameters
    ----------
    module : str
        Its ``__name__``.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.operator.py_str(b"data")
    'data'
    """

    def find(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return _importing.load("mxcore.compat.names").reexports(module, name)

    return find
