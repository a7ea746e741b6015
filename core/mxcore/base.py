"""Errors and small things that MXNet keeps in ``mxnet.base``."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ._core.errors import MXNetError, MXNetWarning, error
from ._reexports import reexports
from ._values import plain

__all__ = [
    "MXNetError",
    "MXNetWarning",
    "NotImplementedForSymbol",
    "asserted",
    "classproperty",
    "error",
    "finite",
    "integer_types",
    "mx_real_t",
    "numeric_types",
    "plain",
    "string_types",
    "with_metaclass",
]

#: What MXNet's Python 3 takes for text, numbers and integers, and its default dtype.
string_types = (str,)
integer_types = (int, np.int32, np.int64)
numeric_types = (float, int, np.generic)
mx_real_t = np.float32


class _AssertedKeyError(KeyError, AssertionError):
    """A KeyError where MXNet asserts."""


class _AssertedTypeError(TypeError, AssertionError):
    """A TypeError where MXNet asserts."""


class _AssertedValueError(ValueError, AssertionError):
    """A ValueError where MXNet asserts."""


_ASSERTED: dict[type[Exception], type[Exception]] = {
    KeyError: _AssertedKeyError,
    TypeError: _AssertedTypeError,
    ValueError: _AssertedValueError,
}


def asserted(kind: type[Exception], text: str) -> MXNetError:
    """As `error`, where MXNet has an ``assert``: scripts may catch an AssertionError, too.

    Parameters
    ----------
    kind : {KeyError, TypeError, ValueError}
    text : str
        As for `error`.

    >>> from mxcore.base import asserted
    >>> e = asserted(ValueError, "bad")
    >>> isinstance(e, MXNetError) and isinstance(e, ValueError) and isinstance(e, AssertionError)
    True
    """
    return error(_ASSERTED[kind], text)


def finite(value: Any, what: str) -> Any:
    """A number as it is.

    Raises
    ------
    MXNetError
        If it is none, infinite, or not a number; names `what`.

    >>> finite(0.5, "Jitter: hue")
    0.5
    """
    try:
        good = not isinstance(value, str) and math.isfinite(value)
    except (TypeError, ValueError, OverflowError):
        good = False
    if not good:
        raise error(
            ValueError if isinstance(value, float) else TypeError, f"{what} must be a finite number, got {value!r}"
        )
    return value


def _as_list(obj: Any) -> list[Any]:
    """A list or tuple as it is, anything else as a list of one."""
    return obj if isinstance(obj, (list, tuple)) else [obj]  # type: ignore[return-value]


class classproperty:
    """A property of a class itself.

    >>> class Net:
    ...     depth = classproperty(lambda cls: 3)
    >>> Net.depth
    3
    """

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.func = func

    def __get__(self, obj: Any, cls: type) -> Any:
        return self.func(cls)


def with_metaclass(meta: type, *bases: type) -> type:
    """A base class with a metaclass, as Python 2 and 3 both understood it."""
    made: type = meta("temporary_class", bases or (object,), {})
    return made


class NotImplementedForSymbol(MXNetError, NotImplementedError, TypeError):
    """A function of arrays was called on a symbol, which has no numbers.

    Parameters
    ----------
    function : callable
    alias : str, optional
        How the function is also written, ``bool`` for ``__bool__``.
    *args
        What it was called with.
    """

    def __init__(self, function: Any, alias: str | None = None, *args: Any) -> None:
        super().__init__(function, alias, *args)
        self.function = getattr(function, "__name__", str(function))
        self.alias = alias

    def __str__(self) -> str:
        also = f" ({self.alias})" if self.alias else ""
        return (
            f"{self.function}{also} needs numbers, which a Symbol does not have; bind() or eval() it, or use an NDArray"
        )

    def __reduce__(self) -> Any:
        return type(self), (self.function, self.alias)


__getattr__ = reexports(__name__)
