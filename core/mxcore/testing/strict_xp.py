"""A strict array namespace, and a device on it: NumPy, less everything that a reference body may not rely on.

It has the functions, methods and attributes listed below and no others; its arrays neither turn
into NumPy arrays nor mix with them, and have no truth value. A body that runs here runs on every device.
"""
from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .._core.device import Device

__all__ = ["ARRAY_ATTRIBUTES", "ARRAY_METHODS", "FFT_FUNCTIONS", "LINALG_FUNCTIONS", "StrictArray", "StrictDevice", "XP_CONSTANTS", "XP_FUNCTIONS", "xp"]

#: Functions of a device's array namespace that reference bodies may call, with NumPy's meaning.
XP_FUNCTIONS = frozenset("""
    empty zeros ones full arange linspace eye asarray ascontiguousarray array empty_like zeros_like ones_like full_like copyto
    add subtract multiply divide true_divide floor_divide mod fmod power negative absolute abs sign square sqrt cbrt reciprocal
    exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh
    hypot floor ceil trunc rint fix degrees radians maximum minimum fmax fmin clip where isnan isinf isfinite sum prod mean max min
    amax amin var std nansum nanprod all any argmax argmin argsort sort argpartition partition cumsum cumprod
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not bitwise_and
    bitwise_or bitwise_xor left_shift right_shift invert reshape transpose swapaxes moveaxis expand_dims squeeze broadcast_to broadcast_arrays
    concatenate stack split array_split tile repeat flip roll pad diag diagonal tril triu nonzero flatnonzero unique searchsorted
    take take_along_axis put_along_axis matmul dot tensordot einsum outer bincount histogram diff nan_to_num ravel atleast_1d
    result_type can_cast unravel_index ravel_multi_index meshgrid indices tri isclose allclose count_nonzero lexsort
""".split())

#: Constants and types of the namespace.
XP_CONSTANTS = frozenset("""
    float16 float32 float64 uint8 int8 int16 int32 int64 uint16 uint32 uint64 bool_ dtype pi inf nan newaxis e
""".split())

#: Methods of arrays that reference bodies may call.
ARRAY_METHODS = frozenset("""
    reshape transpose astype copy sum prod max min mean argmax argmin argsort sort cumsum any all ravel flatten swapaxes squeeze take
    repeat clip view fill item dot round nonzero diagonal conj
""".split())

#: Attributes of arrays that reference bodies may read.
ARRAY_ATTRIBUTES = frozenset("shape dtype ndim size T itemsize nbytes".split())

#: Sub-modules: ``xp.linalg.X``, ``xp.fft.X`` and ``xp.add.at`` (the only ufunc method).
LINALG_FUNCTIONS = frozenset("cholesky inv solve qr eigh svd det slogdet norm eigvalsh".split())
FFT_FUNCTIONS = frozenset("fft ifft".split())

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
        if name in ARRAY_ATTRIBUTES:
            return _wrap(getattr(self.value, name))
        if name in ARRAY_METHODS:
            method = getattr(self.value, name)
            return lambda *args, **kw: _wrap(method(*map(_unwrap, args), **{k: _unwrap(v) for k, v in kw.items()}))
        raise AttributeError(f"arrays of devices have no {name!r} that bodies may use; see ARRAY_METHODS of mxcore.testing.strict_xp")

    @property
    def base(self) -> Any:
        """What the core asks to find views."""
        return self.value.base

    def __getitem__(self, key: Any) -> StrictArray:
        return StrictArray(self.value[_unwrap(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.value[_unwrap(key)] = _unwrap(value)

    def _refuse(self, *args: Any, **kw: Any) -> Any:
        raise TypeError("an array of a device does not become a host value by itself; that would hide a copy to the host")

    __array__ = __array_function__ = __bool__ = __float__ = __int__ = __index__ = __len__ = __iter__ = _refuse


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
    """A function of the namespace; ``xp.add.at`` is the one ufunc method."""

    def __init__(self, name: str, fn: Any) -> None:
        self.__name__, self._fn = name, fn

    def __call__(self, *args: Any, **kw: Any) -> Any:
        host = self.__name__ in _FROM_HOST
        return _wrap(self._fn(*[_unwrap(a, host) for a in args], **{k: _unwrap(v, host) for k, v in kw.items()}))

    def at(self, a: StrictArray, *rest: Any) -> None:
        """Unbuffered in-place addition."""
        if self.__name__ != "add":
            raise AttributeError(f"xp.{self.__name__}.at is not in the device contract; only xp.add.at is")
        np.add.at(a.value, *map(_unwrap, rest))


class Namespace:
    """The functions of a module that a list allows.

    Parameters
    ----------
    module : module
    functions, constants : set of str
    parts : dict of str to Namespace
    """

    def __init__(self, module: Any, functions: Any, constants: Any = (), **parts: Namespace) -> None:
        self.__name__ = f"strict {module.__name__}"
        self._module, self._functions, self._constants = module, functions, constants
        self.__dict__.update(parts)

    def __getattr__(self, name: str) -> Any:
        if name in self._constants:
            found = getattr(self._module, name)
        elif name in self._functions:
            found = _Function(name, getattr(self._module, name))
        else:
            raise AttributeError(f"xp has no {name!r} that bodies may use; see the lists in mxcore._core.device")
        self.__dict__[name] = found
        return found


#: The strict namespace.
xp = Namespace(np, XP_FUNCTIONS, XP_CONSTANTS, linalg=Namespace(np.linalg, LINALG_FUNCTIONS), fft=Namespace(np.fft, FFT_FUNCTIONS))


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
        np.copyto(dst.value, a.value, casting="unsafe")

    def shares(self, a: Any, b: Any) -> bool:
        return np.may_share_memory(a.value, b.value)
