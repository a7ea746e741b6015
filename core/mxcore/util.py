"""Switches of shape semantics and small helpers, as ``mxnet.util``."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from ._core.errors import error
from ._core.state import state
from ._io_files import make_folder
from ._reexports import reexports
from .context import Context, gpu_memory_info, num_gpus

__all__ = [
    "get_cuda_compute_capability",
    "get_gpu_count",
    "get_gpu_memory",
    "getenv",
    "is_np_array",
    "is_np_shape",
    "makedirs",
    "np_shape",
    "set_module",
    "set_np_shape",
    "setenv",
    "use_np_shape",
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

    >>> import mxcore as mx
    >>> old = mx.util.set_np_shape(True)
    >>> mx.util.set_np_shape(old)
    True
    """
    old, state.np_shape = state.np_shape, bool(active)
    return old


class np_shape:
    """A with-block with NumPy's meaning of shapes (or, with False, without)."""

    def __init__(self, active: bool = True) -> None:
        self._active = active
        self._old: list[bool] = []

    def __enter__(self) -> np_shape:
        self._old.append(set_np_shape(self._active))
        return self

    def __exit__(self, *exc: object) -> None:
        set_np_shape(self._old.pop())


def use_np_shape(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function that needs NumPy's meaning of shapes."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with np_shape():
            return func(*args, **kwargs)

    return wrapper


__getattr__ = reexports(__name__)
