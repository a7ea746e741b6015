"""Compiled kernels on disk: Numba's overloads in a :class:`mxcore.codecache.CodeCache`.

Numba's own cache unpickles and links whatever it finds in its files. Here each overload of a kernel is one entry, whose
name holds all that the code depends on: the kernel's source, the functions and constants that it names, types of
arguments, processor, and the versions of Python, Numba, llvmlite and NumPy.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import pickle
import platform
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mxcore.codecache import CodeCache

from . import loading

__all__ = ["CODE", "attach", "source_stamp", "versions"]

_HERE = Path(__file__).parent
#: What Numba compiled.
CODE = CodeCache(
    "numba",
    lambda: [
        *(_HERE / f"{name}.py" for name in ("cache", "jit", "math")),
        *(path for name in ("fused", "kernels", "native") for path in sorted((_HERE / name).glob("*.py"))),
    ],
)


@functools.lru_cache(256)
def _file_digest(path: str, mtime: int, size: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _of_file(path: str) -> str:
    found = os.stat(path)
    return _file_digest(path, found.st_mtime_ns, found.st_size)


def source_stamp(function: Callable[..., Any], *options: Any) -> str | None:
    """Return what tells the code of a function from any other.

    Parameters
    ----------
    function : callable
    *options
        What it is compiled with.

    Returns
    -------
    str or None
        A digest over its file, what it has taken from around it, and all this of the functions and constants that it
        names, wherever they are from; None where that cannot be told, so that nothing may be kept.
    """
    found = hashlib.sha256(repr(options).encode())
    try:
        _of_file(function.__code__.co_filename)
        _take_in(function, found, set())
    except (OSError, _Untold):
        return None
    return found.hexdigest()


class _Untold(Exception):
    """A value that may be another one the next time, and does not say so."""


def _take_in(value: Any, digest: Any, seen: set[int]) -> None:
    """Add a value that code depends on to its digest."""
    if id(value) in seen:
        return
    kind = type(value)
    if getattr(value, "__module__", None) == loading.__name__:  # how Numba is found says nothing of code
        digest.update(f"{value.__qualname__};".encode())
    elif isinstance(value, types.FunctionType):
        seen.add(id(value))
        with contextlib.suppress(FileNotFoundError):  # made from a text: its code tells all
            digest.update(_of_file(value.__code__.co_filename).encode())
        _take_in((value.__module__, value.__qualname__, value.__defaults__), digest, seen)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            _take_in((name, cell.cell_contents), digest, seen)
        _take_in_code(value.__code__, value.__globals__, digest, seen)
    elif hasattr(value, "__wrapped__"):  # a kernel or helper; what one has several bodies of, its maker holds
        seen.add(id(value))
        _take_in(value.__wrapped__, digest, seen)
        for cell in getattr(getattr(value, "_make", None), "__closure__", None) or ():
            _take_in(cell.cell_contents, digest, seen)
    elif isinstance(value, np.vectorize):  # what a helper is without Numba
        digest.update(b"vectorize")
        _take_in(value.pyfunc, digest, seen)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode() + value.tobytes())
    elif kind in (tuple, list, dict, set, frozenset):
        digest.update(f"{kind.__name__}{len(value)}".encode())
        for item in sorted(value, key=repr) if kind in (set, frozenset) else value.items() if kind is dict else value:
            _take_in(item, digest, seen)
    elif isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
        digest.update(f"{getattr(value, '__module__', '')}.{value.__name__};".encode())
    elif " at 0x" not in (text := repr(value)):
        digest.update(f"{kind.__qualname__}:{text};".encode())
    else:
        raise _Untold


def _take_in_code(code: types.CodeType, around: dict[str, Any], digest: Any, seen: set[int]) -> None:
    digest.update(f"{code.co_firstlineno};{code.co_names}{code.co_varnames}".encode() + code.co_code)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            _take_in_code(const, around, digest, seen)
        else:
            _take_in(const, digest, seen)
    for name in code.co_names:
        if name in around:
            _take_in((name, around[name]), digest, seen)


@functools.cache
def versions() -> str:
    """Of all that makes code; asked for without importing it.

    Not of the system's kernel: an image is built on one machine and runs on others.
    """
    made_by = [importlib.metadata.version(name) for name in ("numba", "llvmlite")]
    system = sys.platform, platform.machine(), *platform.libc_ver()
    return "|".join((*made_by, np.__version__, sys.version, *system))


def attach(dispatcher: Any, stamp: str | None) -> Any:
    """Let a dispatcher of Numba keep what it compiles here.

    Parameters
    ----------
    dispatcher : numba dispatcher
    stamp : str or None
        What its code depends on beside the sources in this folder; None: nothing is kept.
    """
    if stamp is not None:
        with contextlib.suppress(ImportError, AttributeError):  # a Numba with other insides: compiled in memory
            dispatcher._cache = _overloads()(dispatcher.py_func, stamp)
    return dispatcher


@functools.cache
def _overloads() -> Any:
    from numba.core import caching, serialize
    from numba.core.compiler import CompileResult

    class Overloads(caching._Cache):  # type: ignore[misc]  # Numba comes without types
        """The overloads of one function."""

        def __init__(self, function: Callable[..., Any], stamp: str) -> None:
            self._name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")[-80:]
            self._stamp = "\n".join(
                (
                    stamp,
                    function.__module__,
                    function.__qualname__,
                    str(function.__code__.co_firstlineno),
                    hashlib.sha256(function.__code__.co_code).hexdigest(),
                    versions(),
                )
            )

        def _entry(self, sig: Any, codegen: Any) -> str:
            text = "\n".join((self._stamp, str(sig), str(codegen.magic_tuple())))
            return f"{self._name}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.code"

        @property
        def cache_path(self) -> str:
            return str(CODE.places.write)

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                target_context.refresh()
                content = CODE.load(self._entry(sig, target_context.codegen()))
                return None if content is None else CompileResult._rebuild(target_context, *pickle.loads(content))
            except Exception:  # whole, and yet not for this process: compiled again
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            if any(not x.can_cache for x in data.lifted) or data.library.has_dynamic_globals:
                return
            try:
                content = serialize.dumps(data._reduce())
            except Exception:  # something that cannot be pickled
                return
            CODE.save(self._entry(sig, data.codegen), content)

        def enable(self) -> None:
            """Nothing to do."""

        def disable(self) -> None:
            """Nothing to do."""

        def flush(self) -> None:
            """Nothing to do: a name is never used for other code."""

    return Overloads
