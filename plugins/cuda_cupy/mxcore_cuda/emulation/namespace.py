"""The array namespace of emulated devices: CuPy's, over NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import EmulatedArray, from_dlpack, launch, update, upload
from .devices import active
from .rules import rules
from .semantics import OVERRIDES, check_function, check_scatter, check_ufunc

__all__ = ["Namespace"]

#: Functions that write into their first argument.
_WRITERS = frozenset("copyto put put_along_axis place fill_diagonal".split())


class Namespace:
    """Functions of CuPy, by name; those that it does not have are errors."""

    ndarray = EmulatedArray
    from_dlpack = staticmethod(from_dlpack)

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full, table = self._prefix + name, rules()
        if name in ("linalg", "fft") and not self._prefix:
            found: Any = Namespace(f"{name}.")
        elif full in table["ufuncs"]:
            found = Universal(full)
        elif full in table["functions"]:
            found = _function(full)
        else:
            found = getattr(np, name, None)
            if self._prefix or found is None or callable(found) and not isinstance(found, type):
                raise AttributeError(f"module 'cupy' has no attribute {full!r}, or it is not in the emulation's table")
        setattr(self, name, found)
        return found


class Universal:
    """A universal function."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._fn: Any = OVERRIDES.get(name) or getattr(np, name)
        rule = rules()["ufuncs"][name]
        self.nin: int = rule["nin"]
        self.nout: int = rule["nout"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        check_ufunc(self.__name__, args, kwargs)
        if len(args) > self.nin:
            kwargs["out"], args = args[self.nin], args[: self.nin]
        return launch(self.__name__, self._fn, args, kwargs)

    def at(self, a: EmulatedArray, indices: Any, b: Any) -> None:
        """Unbuffered, for indices that come more than once."""
        check_scatter(self.__name__, a.dtype)
        update(self._fn.at, (a, indices, b), {})


def _function(name: str) -> Callable[..., Any]:
    module: Any = np
    for part in name.split(".")[:-1]:
        module = getattr(module, part)
    fn = OVERRIDES.get(name) or getattr(module, name.rpartition(".")[2])

    def call(*args: Any, **kwargs: Any) -> Any:
        check_function(name, args, kwargs)
        if name in ("array", "asarray", "ascontiguousarray") and args and not isinstance(args[0], EmulatedArray):
            if not isinstance(args[0], (list, tuple)) or not any(isinstance(v, EmulatedArray) for v in args[0]):
                return upload(fn(*args, **kwargs), active())  # a copy from the host, as CuPy makes it
        if name in _WRITERS:
            return update(fn, args, kwargs)
        return launch(name, fn, args, kwargs)

    call.__name__ = name
    return call
