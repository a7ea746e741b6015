"""A strict array namespace, and a device on it: NumPy, less everything that a reference body may not rely on.

It has the functions, arguments, methods and attributes of the contract (`mxcore.array_api.contract`, docs/arrays.md)
and no others; its arrays neither turn into NumPy arrays nor mix with them, and have no truth value. A body that runs
here runs on every device.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .._core.device import Device
from ..array_api.contract import ATTRIBUTES, CONSTANTS, entries

__all__ = ["StrictArray", "StrictDevice", "xp"]

_FUNCTIONS, _METHODS = entries()

#: Functions that take host data on purpose.
_FROM_HOST = frozenset({"asarray", "array", "ascontiguousarray"})


class StrictArray:
    """An array that does only what the device contract lists.

    Parameters
    ----------
    value : numpy.ndarray
    """

    __slots__ = ("value", "__weakref__")
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)

    def __getattr__(self, name: str) -> Any:
        if name in ATTRIBUTES:
            return _wrap(getattr(self.value, name))
        if name in _METHODS:
            method = getattr(self.value, name)

            def call(*args: Any, **kw: Any) -> Any:
                _check(_METHODS[name], args, kw)
                return _wrap(method(*map(_unwrap, args), **{k: _unwrap(v) for k, v in kw.items()}))

            return call
        raise AttributeError(f"arrays of devices have no {name!r} that bodies may use; see mxcore.array_api.contract")

    @property
    def base(self) -> Any:
        """What the core asks to find views."""
        return self.value.base

    def __getitem__(self, key: Any) -> StrictArray:
        return StrictArray(self.value[_unwrap(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.value[_unwrap(key)] = _unwrap(value)

    def _refuse(self, *args: Any, **kw: Any) -> Any:
        raise TypeError(
            "an array of a device does not become a host value by itself; that would hide a copy to the host"
        )

    __array__ = __array_function__ = __bool__ = __float__ = __int__ = __index__ = __len__ = __iter__ = _refuse


def _check(entry: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> None:
    """Refuse arguments that the contract does not list."""
    try:
        entry.signature.bind(*args, **kw)
    except TypeError as e:
        raise TypeError(f"{e}; bodies may use {entry.text}, by mxcore.array_api.contract") from None


def _wrap(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return StrictArray(value)
    if isinstance(value, (tuple, list)) and any(isinstance(v, (np.ndarray, np.generic)) for v in value):
        return tuple(map(_wrap, value))
    return value


def _unwrap(value: Any, host: bool = False) -> Any:
    if isinstance(value, StrictArray):
        return value.value
    if isinstance(value, (tuple, list)):
        return type(value)([_unwrap(v, host) for v in value])
    if isinstance(value, np.ndarray) and not host:
        raise TypeError("a NumPy array meets an array of a device; make a device array of it with xp.asarray")
    return value


def _binary(fn: Any, swap: bool = False) -> Any:
    def method(self: StrictArray, other: Any) -> Any:
        if isinstance(other, (StrictArray, int, float, complex, np.generic)):
            a, b = self.value, _unwrap(other)
            return StrictArray(fn(b, a) if swap else fn(a, b))
        if isinstance(other, np.ndarray):
            _unwrap(other)
        return NotImplemented

    return method


def _inplace(fn: Any) -> Any:
    def method(self: StrictArray, other: Any) -> StrictArray:
        self.value = fn(self.value, _unwrap(other))
        return self

    return method


for _name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split():
    _fn = getattr(operator, f"__{_name}__")
    setattr(StrictArray, f"__{_name}__", _binary(_fn))
    setattr(StrictArray, f"__r{_name}__", _binary(_fn, swap=True))
    setattr(StrictArray, f"__i{_name}__", _inplace(getattr(operator, f"__i{_name}__")))
for _name in "lt le eq ne gt ge".split():
    setattr(StrictArray, f"__{_name}__", _binary(getattr(operator, f"__{_name}__")))
for _name in "neg abs invert".split():
    setattr(StrictArray, f"__{_name}__", lambda self, fn=getattr(operator, f"__{_name}__"): StrictArray(fn(self.value)))


class _Function:
    """A function of the namespace; ``xp.add.at`` is the one method of one."""

    def __init__(self, name: str, fn: Any) -> None:
        self.__name__, self._fn, self._entry = name.rpartition(".")[2], fn, _FUNCTIONS[name]

    def __call__(self, *args: Any, **kw: Any) -> Any:
        _check(self._entry, args, kw)
        host = self.__name__ in _FROM_HOST
        return _wrap(self._fn(*[_unwrap(a, host) for a in args], **{k: _unwrap(v, host) for k, v in kw.items()}))

    def at(self, a: StrictArray, *rest: Any) -> None:
        """Unbuffered in-place addition."""
        if self.__name__ != "add":
            raise AttributeError(f"xp.{self.__name__}.at is not in the device contract; only xp.add.at is")
        np.add.at(a.value, *map(_unwrap, rest))


class Namespace:
    """The functions of a module that the contract lists.

    Parameters
    ----------
    module : module
    prefix : str
        What stands before their names in the contract.
    """

    def __init__(self, module: Any, prefix: str = "") -> None:
        self.__name__ = f"strict {module.__name__}"
        self._module, self._prefix = module, prefix

    def __getattr__(self, name: str) -> Any:
        full = self._prefix + name
        if full in CONSTANTS:
            found = getattr(self._module, name)
        elif full in ("linalg", "fft"):
            found = Namespace(getattr(self._module, name), f"{name}.")
        elif full in _FUNCTIONS:
            found = _Function(full, getattr(self._module, name))
        else:
            raise AttributeError(f"xp has no {full!r} that bodies may use; see mxcore.array_api.contract")
        self.__dict__[name] = found
        return found


#: The strict namespace.
xp = Namespace(np)


class StrictDevice(Device):
    """A device whose arrays are :class:`StrictArray`; kept out of the registry."""

    type, type_id, xp = "strict", 999, xp

    def count(self) -> int:
        """One."""
        return 1

    def to_host(self, a: Any) -> np.ndarray[Any, Any]:
        return np.array(a.value, order="C")

    def from_host(self, a: np.ndarray[Any, Any], index: int) -> StrictArray:
        return StrictArray(np.array(a, order="C"))

    def copy(self, a: Any, dst: Any) -> None:
        np.copyto(dst.value, a.value.copy() if self.shares(a, dst) else a.value, casting="unsafe")

    def shares(self, a: Any, b: Any) -> bool:
        return np.may_share_memory(a.value, b.value)
