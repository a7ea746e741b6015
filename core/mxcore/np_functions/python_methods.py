"""Python's operators of arrays and symbols of ``mx.np`` that functions compute: ``@``, `divmod`, `round`."""

from __future__ import annotations

import numbers
from typing import Any

__all__ = ["give_methods"]


def give_methods(F: Any) -> None:
    """Give the values of a face the methods that Python calls for ``@``, `divmod` and `round`."""

    def two(name: str, swapped: bool = False) -> Any:
        def method(self: Any, other: Any) -> Any:
            if not F.is_value(other) and (name == "matmul" or not isinstance(other, numbers.Number)):
                return NotImplemented
            return getattr(F, name)(other, self) if swapped else getattr(F, name)(self, other)

        return method

    made = {
        "__matmul__": two("matmul"),
        "__rmatmul__": two("matmul", True),
        "__divmod__": two("divmod"),
        "__rdivmod__": two("divmod", True),
        "__round__": lambda self, ndigits=None: F.around(self, ndigits or 0),
    }
    for name, fn in made.items():
        fn.__name__, fn.__qualname__ = name, f"{F.value.__name__}.{name}"
        setattr(F.value, name, fn)
