"""Switches of shape semantics and small helpers, as ``mxnet.util``."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import FunctionType
from typing import Any

from ._core.errors import error
from ._core.state import state
from ._io_files import make_folder
from ._reexports import reexports
from ._scopes import Scope, take_modes
from .context import Context, gpu_memory_info, num_gpus

__all__ = [
    "get_cuda_compute_capability",
    "get_gpu_count",
    "get_gpu_memory",
    "getenv",
    "is_np_array",
    "is_np_default_dtype",
    "is_np_shape",
    "makedirs",
    "np_array",
    "np_shape",
    "np_ufunc_legal_option",
    "reset_np",
    "set_module",
    "set_np",
    "set_np_shape",
    "setenv",
    "use_np",
    "use_np_array",
    "use_np_shape",
    "wrap_np_binary_func",
    "wrap_np_unary_func",
]


def getenv(name: str) -> str | None:
    """An environment variable, or None.

    >>> getenv("NO_SUCH_VARIABLE_HERE") is None
    True
    """
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set an environment variable; None removes it.

    >>> setenv("MXCORE_EXAMPLE", "1"); getenv("MXCORE_EXAMPLE")
    '1'
    >>> setenv("MXCORE_EXAMPLE", None)
    """
    if value is None:
        os.environ.pop(name, None)
    elif isinstance(value, str):
        os.environ[name] = value
    else:
        raise error(TypeError, f"setenv: the value of {name} must be a str or None, got {value!r}")


def set_module(module: str | None) -> Callable[[Any], Any]:
    """Decorate a function or class that is to be shown as one of another module.

    >>> set_module("mine")(lambda: 0).__module__
    'mine'
    """

    def decorator(func: Any) -> Any:
        if module is not None:
            func.__module__ = module
        return func

    return decorator


def makedirs(d: str) -> None:
    """Make a folder and those above it, if they do not exist."""
    make_folder(d)


def get_gpu_count() -> int:
    """How many GPUs can be used."""
    return num_gpus()


def get_cuda_compute_capability(ctx: Any) -> int:
    """The compute capability of a GPU, such as 80 for 8.0.

    Raises
    ------
    MXNetError
        (also ValueError) if `ctx` is no GPU, or there is none.
    """
    ctx = Context(ctx)
    if ctx.device_type != "gpu":
        raise error(ValueError, f"get_cuda_compute_capability takes the context of a GPU, got {ctx}")
    return int(ctx.device.xp.cuda.Device(ctx.device_id).compute_capability)


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """(free, total) bytes of a GPU."""
    return gpu_memory_info(gpu_dev_id)


def is_np_shape() -> bool:
    """Whether 0 is a length and () a scalar in this thread, as in NumPy, not an unknown dimension or shape."""
    return state.np_shape


def is_np_array() -> bool:
    """Whether arrays of this thread are those of ``mx.np``."""
    return bool(state.extra.get("np_array", False))


def set_np_shape(active: bool) -> bool:
    """Switch NumPy's meaning of shapes on or off in this thread; returns what it was.

    Raises
    ------
    MXNetError
        (also ValueError) if it is to be off while arrays are those of ``mx.np``, which need it.

    Examples
    --------
    >>> import mxcore as mx
    >>> old = mx.util.set_np_shape(True)
    >>> mx.util.set_np_shape(old)
    True
    """
    _check_shape(active)
    old, state.np_shape = state.np_shape, bool(active)
    return old


def _check_shape(active: bool) -> None:
    if not active and is_np_array():
        raise error(
            ValueError,
            "NumPy's meaning of shapes cannot be switched off while arrays are those of mx.np; npx.reset_np() switches "
            "both off",
        )


def _set_np_array(active: bool) -> bool:
    old, state.extra["np_array"] = is_np_array(), bool(active)
    return old


def is_np_default_dtype() -> bool:
    """Whether new arrays of ``mx.np`` have NumPy's dtypes in this thread, float64 and int64, where none is told."""
    return bool(state.extra.get("np_default_dtype", False))


def set_np(shape: bool = True, array: bool = True, dtype: bool = False) -> None:
    """Let this thread's shapes mean what NumPy's mean, and its blocks, losses and iterators give arrays of ``mx.np``.

    Parameters
    ----------
    shape, array : bool
        Which of both; arrays need shapes.
    dtype : bool
        Whether new arrays, too, have NumPy's dtypes where none is told: float64, and int64 of whole numbers; else
        float32.

    Raises
    ------
    MXNetError
        (also ValueError) for `array` without `shape`.

    Examples
    --------
    >>> from mxcore import np, npx
    >>> npx.set_np()
    >>> npx.is_np_array(), npx.is_np_shape()
    (True, True)
    >>> npx.reset_np()
    """
    if array and not shape:
        raise error(ValueError, "set_np: arrays of mx.np need NumPy's meaning of shapes; array=True needs shape=True")
    take_modes(shape, array, dtype)


def reset_np() -> None:
    """Back to MXNet's meaning of shapes and arrays of ``mx.nd`` in this thread."""
    set_np(shape=False, array=False)


class _Scope(Scope):
    """A with-block in which a switch of the thread is on (or, with False, off)."""

    def __init__(self, active: bool = True) -> None:
        self._active = bool(active)


class np_shape(_Scope):
    """A with-block with NumPy's meaning of shapes (or, with False, without)."""

    def _values(self) -> Iterable[tuple[dict[str, Any], str, Any]]:
        _check_shape(self._active)
        return ((state.__dict__, "np_shape", self._active),)


class np_array(_Scope):
    """A with-block in which arrays are those of ``mx.np`` (or, with False, of ``mx.nd``)."""

    def _values(self) -> Iterable[tuple[dict[str, Any], str, Any]]:
        return ((state.extra, "np_array", self._active),)


#: Scope -> whether it is on.
_ON: dict[Any, Callable[[], bool]] = {np_shape: is_np_shape, np_array: is_np_array}


def _decorated(func: Any, *scopes: Callable[[], Any]) -> Any:
    """A function that runs within scopes; of a class, its methods and properties do, inherited ones too."""
    if isinstance(func, type):
        for base in func.__mro__[:-1]:  # all but object
            for name, member in [*vars(base).items()]:
                if inspect.getattr_static(func, name) is member and name not in _OF_THE_CLASS:
                    found = _decorated_member(member, *scopes)
                    if found is not member:
                        setattr(func, name, found)
        return func
    if not callable(func):
        raise error(TypeError, f"it decorates functions and classes, got {type(func).__name__}")
    if getattr(func, "_scopes", None) == scopes:  # of a base that is decorated itself
        return func

    on = [_ON[scope] for scope in scopes]

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if all(is_on() for is_on in on):  # as in what a method calls
            return func(*args, **kwargs)
        with ExitStack() as stack:
            for scope in scopes:
                stack.enter_context(scope())
            return func(*args, **kwargs)

    wrapper._scopes = scopes  # type: ignore[attr-defined]
    return wrapper


#: Methods that make classes, not what a decorated one does; and what a class does not say by itself.
_OF_THE_CLASS = frozenset({"__new__", "__init_subclass__", "__class_getitem__", "__getattribute__"})


def _decorated_member(member: Any, *scopes: Callable[[], Any]) -> Any:
    """What stands in a class, so that its Python runs within scopes; other things as they are."""
    if isinstance(member, property):
        get, put, delete = (f and _decorated(f, *scopes) for f in (member.fget, member.fset, member.fdel))
        return property(get, put, delete, member.__doc__)
    if isinstance(member, (staticmethod, classmethod)):
        return type(member)(_decorated(member.__func__, *scopes))
    return _decorated(member, *scopes) if isinstance(member, FunctionType) else member


def use_np_shape(func: Any) -> Any:
    """Decorate a function, or a class for all its methods, that needs NumPy's meaning of shapes."""
    return _decorated(func, np_shape)


def use_np_array(func: Any) -> Any:
    """Decorate a function, or a class for all its methods, that needs arrays of ``mx.np``."""
    return _decorated(func, np_array)


def use_np(func: Any) -> Any:
    """Decorate a function, or a class for all its methods, that needs arrays of ``mx.np`` and their shapes.

    >>> from mxcore import np, npx
    >>> npx.use_np(lambda: (npx.is_np_shape(), npx.is_np_array()))()
    (True, True)
    """
    return _decorated(func, np_shape, np_array)


def np_ufunc_legal_option(key: str, value: Any) -> bool:
    """Whether functions of ``mx.np`` take an option of NumPy's universal functions with this value.

    >>> np_ufunc_legal_option("where", True), np_ufunc_legal_option("where", False)
    (True, False)
    """
    from .np_functions.options import changes_nothing

    return changes_nothing(key, value)


def _legal(name: str, options: dict[str, Any]) -> None:
    from .np_functions.options import legal  # with all functions of mx.np

    legal(name, options)


def wrap_np_unary_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function ``(x, out=None)`` take NumPy's options, and refuse those that would change its result.

    >>> wrap_np_unary_func(lambda x, out=None: -x)(2, where=True)
    -2
    """

    @functools.wraps(func)
    def wrapper(x: Any, out: Any = None, **kwargs: Any) -> Any:
        _legal(func.__name__, kwargs)
        return func(x, out=out)

    return wrapper


def wrap_np_binary_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function ``(x1, x2, out=None)`` take NumPy's options, and refuse those that would change its result.

    >>> wrap_np_binary_func(lambda x1, x2, out=None: x1 - x2)(2, 1, casting="same_kind")
    1
    """

    @functools.wraps(func)
    def wrapper(x1: Any, x2: Any, out: Any = None, **kwargs: Any) -> Any:
        _legal(func.__name__, kwargs)
        return func(x1, x2, out=out)

    return wrapper


__getattr__ = reexports(__name__)
