"""What a test runs in: contexts, environment variables, devices; and how often it is tried."""
from __future__ import annotations

import contextlib
import functools
import inspect
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .. import util
from .._core.state import state
from ..base import error
from ..context import Context, current_context, num_gpus

__all__ = ["default_context", "discard_stderr", "environment", "get_cuda_compute_capability", "getenv", "has_tvm_ops", "is_aarch64_run",
           "is_cd_run", "is_op_runnable", "list_gpus", "retry", "set_default_context", "setenv", "use_np"]


def default_context() -> Context:
    """The context that tests use unless told: the current one.

    >>> default_context()
    cpu(0)
    """
    return current_context()


def set_default_context(ctx: Any) -> None:
    """Make a context the current one of this thread, outside all ``with ctx:`` blocks.

    Parameters
    ----------
    ctx : Context or str

    >>> import mxcore as mx
    >>> set_default_context(mx.cpu(1))
    >>> mx.nd.ones((1,)).context
    cpu(1)
    >>> set_default_context(mx.cpu(0))
    """
    ctx, stack = Context(ctx), state.ctx
    # The lowest of the contexts of this thread's blocks, which push theirs on top of it.
    if state.extra.pop("default_context", None):
        stack.pop(0)
    if ctx is not Context.default_ctx():
        stack.insert(0, ctx)
        state.extra["default_context"] = True


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


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """A with-block in which environment variables have other values.

    Parameters
    ----------
    *args : dict of str to (str or None), or name and value
        None removes the variable for the time.

    Raises
    ------
    MXNetError
        (also AssertionError) if it is neither of the two; (also TypeError) if a value is no str.

    >>> with environment("MXCORE_EXAMPLE", "1"):
    ...     getenv("MXCORE_EXAMPLE")
    '1'
    >>> getenv("MXCORE_EXAMPLE") is None
    True
    """
    if len(args) == 1 and isinstance(args[0], Mapping):
        wanted = dict(args[0])
    elif len(args) == 2:
        wanted = {args[0]: args[1]}
    else:
        raise error(AssertionError, f"environment takes a dict, or a name and a value, got {args!r}")
    old = {name: os.environ.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            setenv(name, value)
        yield
    finally:
        for name, value in old.items():
            setenv(name, value)


@contextlib.contextmanager
def discard_stderr() -> Iterator[None]:
    """A with-block in which nothing comes out at file descriptor 2, whoever writes there.

    >>> with discard_stderr():
    ...     n = os.write(2, b"unheard")
    """
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
            yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def retry(n: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a test that depends on chance: it is tried `n` times, and fails if its assertions fail every time.

    Parameters
    ----------
    n : int
        1 or more.

    >>> tries = []
    >>> @retry(3)
    ... def test():
    ...     tries.append(1)
    ...     assert len(tries) == 2
    >>> test(); len(tries)
    2
    """
    if n < 1:
        raise error(AssertionError, f"retry: n must be 1 or more, got {n!r}")

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            for _ in range(n - 1):
                with contextlib.suppress(AssertionError):
                    return test(*args, **kwargs)
            return test(*args, **kwargs)

        return run

    return decorate


def list_gpus() -> list[int]:
    """The numbers of the GPUs that can be used.

    >>> list_gpus() == list(range(len(list_gpus())))
    True
    """
    return list(range(num_gpus()))


def get_cuda_compute_capability(ctx: Any) -> int:
    """The compute capability of a GPU, such as 80 for 8.0.

    Raises
    ------
    MXNetError
        (also ValueError) if `ctx` is no GPU, or there is none.
    """
    ctx = Context(ctx)
    if ctx.device_type != "gpu":
        raise error(ValueError, f"a gpu context is needed to tell a compute capability, got {ctx}")
    return int(ctx.device.xp.cuda.Device(ctx.device_id).compute_capability)


def has_tvm_ops() -> bool:
    """Whether there are operators generated by TVM: never.

    >>> has_tvm_ops()
    False
    """
    return False


def is_op_runnable() -> bool:
    """Whether operators of ``mx.np`` run in the current context, which only operators generated by TVM could prevent.

    >>> is_op_runnable()
    True
    """
    return True


def is_cd_run() -> bool:
    """Whether the tests run for a release: ``CD_JOB=1`` in the environment.

    >>> with environment("CD_JOB", "1"):
    ...     is_cd_run()
    True
    """
    return os.environ.get("CD_JOB", "0") == "1"


def is_aarch64_run() -> bool:
    """Whether this machine is a 64-bit ARM.

    >>> is_aarch64_run() == (platform.machine() in ("aarch64", "arm64"))
    True
    """
    return platform.machine() in ("aarch64", "arm64")


def use_np(func: Any) -> Any:
    """Decorate a function or class whose code wants NumPy's meaning of shapes and, once there is ``mx.np``, its arrays.

    Parameters
    ----------
    func : callable or type
        Of a class the methods are decorated.

    >>> @use_np
    ... def inside():
    ...     return util.is_np_shape()
    >>> inside(), util.is_np_shape()
    (True, False)
    """
    whole = getattr(util, "use_np", None)  # it comes with mx.np
    if whole is not None:
        return whole(func)
    if inspect.isclass(func):
        for name, method in list(vars(func).items()):
            if inspect.isfunction(method):
                setattr(func, name, util.use_np_shape(method))
        return func
    return util.use_np_shape(func)
