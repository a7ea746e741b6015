"""The parameter of operators that know how to give some dtypes only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...parameters import DType

__all__ = ["Among"]


class Among(DType):
    """A dtype among those with the given `names`; the first positional argument is the default.

    Examples
    --------
    >>> Among("float32", names="int32 float32").parse("int32")
    dtype('int32')
    >>> Among("float32", names="int32 float32").parse("bool")
    Traceback (most recent call last):
        ...
    TypeError: must be one of the dtypes int32, float32; got bool
    """

    def __init__(self, default: str, *, names: str, **more: Any) -> None:
        super().__init__(np.dtype(default), **more)
        self.names = tuple(names.split())

    def convert(self, value: Any) -> np.dtype[Any]:
        found = super().convert(value)
        if found.name not in self.names:
            raise TypeError(f"must be {self.allowed()}; got {found.name}")
        return found

    def allowed(self) -> str:
        return f"one of the dtypes {', '.join(self.names)}"
