"""What gradients are computed of, and by which gradients: arrays, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._core.array import Array
from ._core.errors import error

__all__ = ["check_arrays"]


def check_arrays(what: str, given: Sequence[Any], optional: bool = False) -> None:
    """Refuse what is no array; `what` it is to be, for the error. None stands for the default if it is `optional`."""
    for i, x in enumerate(given):
        if not (isinstance(x, Array) or optional and x is None):
            raise error(
                TypeError,
                f"{what} {i} must be an array (mx.nd.array makes one){' or None' if optional else ''}, "
                f"got {type(x).__name__}",
            )
