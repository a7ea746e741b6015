"""Options of NumPy's functions that ``mx.np`` refuses: told of by name, never ignored."""

from __future__ import annotations

from typing import Any

from .._core.errors import error

__all__ = ["changes_nothing", "legal", "refuse", "whole"]

#: Options of NumPy's universal functions, and the values that change nothing.
_LEGAL: dict[str, tuple[Any, ...]] = {
    "where": (True,),
    "casting": ("same_kind",),
    "order": ("K",),
    "dtype": (None,),
    "subok": (True,),
}


def legal(name: str, options: dict[str, Any]) -> None:
    """Refuse options of a universal function that would change its result.

    Parameters
    ----------
    name : str
        The function.
    options : dict
        Keywords that it was given beside its own.

    Raises
    ------
    MXNetError
        (also NotImplementedError) for an option of NumPy's that is not there; (also TypeError) for any other.
    """
    for key, value in options.items():
        if key not in _LEGAL:
            raise error(TypeError, f"np.{name} has no argument '{key}'; it takes {', '.join(['out', *_LEGAL])}")
        if not changes_nothing(key, value):
            raise refuse(name, key, value, _LEGAL[key][0])


def changes_nothing(key: str, value: Any) -> bool:
    """Whether an option of NumPy's universal functions has a value under which they do what they do without it."""
    return any(value is v or isinstance(value, str) and value == v for v in _LEGAL.get(key, ()))


def refuse(name: str, key: str, value: Any, only: Any) -> Exception:
    """The error for an option of NumPy's that is not there."""
    return error(
        NotImplementedError,
        f"np.{name}: {key}={value!r} is not supported; leave it out (it is {only!r}), or compute with NumPy: "
        f"onp.{name}(x.asnumpy(), …)",
    )


def whole(name: str, where: Any) -> None:
    """Refuse to reduce some of the elements only."""
    if where is not True:
        raise refuse(name, "where", where, True)
