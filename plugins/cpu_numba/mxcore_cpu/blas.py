"""NumPy's own BLAS, found through ctypes: a matrix product for kernels, a thread count for :mod:`.threads`.

Kernels multiply small blocks from inside their own parallel loops, which needs the address of ``cblas_sgemm``
and ``cblas_dgemm``; and a BLAS with threads of its own beside Numba's fights with them for the cores (an
im2col of 1.5 ms followed by a product of 1.6 ms took 7 ms together on two cores), so kernels hold BLAS at one
thread while they run. Without a BLAS that can be found (another platform, another build) kernels use a
product written in Numba.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mxcore.plugin import let_through

__all__ = ["Blas", "core", "find", "hold", "release", "single"]

# (prefix, suffix, 64-bit integers): scipy-openblas wheels, OpenBLAS with suffix, Accelerate, any CBLAS (also
# MKL)
_STYLES = (
    ("scipy_", "64_", True),
    ("scipy_", "", False),
    ("", "64_", True),
    ("", "$NEWLAPACK$ILP64", True),
    ("", "_64", True),
    ("", "", False),
)


class Blas(NamedTuple):
    """What was found: addresses of the two products (0: none), the integers' width, the thread count's functions."""

    sgemm: int
    dgemm: int
    wide: bool
    get_threads: Callable[[], int] | None
    set_threads: Callable[[int], None] | None

    def gemm(self, dtype: np.dtype[Any]) -> int:
        """Return the address of the product for a dtype, 0 where there is none."""
        return self.sgemm if dtype == np.float32 else self.dgemm


def _libraries() -> list[ctypes.CDLL]:
    import numpy._core._multiarray_umath as core

    # A symbol looked up in a library is also looked up in the libraries it was linked with; Windows does not
    # do that.
    root = Path(np.__file__).parent
    paths = [Path(core.__file__)]
    for folder in (root.parent / "numpy.libs", root / ".dylibs", root / ".libs"):
        if folder.is_dir():
            paths += sorted(p for p in folder.iterdir() if "openblas" in p.name)
    found = []
    for path in paths:
        try:
            found.append(ctypes.CDLL(str(path)))
        except OSError as e:
            let_through(e)
            continue
    return found


@functools.cache
def find() -> Blas:
    """Look for the BLAS NumPy is linked with; never raises."""
    for library in _libraries():
        for prefix, suffix, wide in _STYLES:
            try:
                products = [getattr(library, f"{prefix}cblas_{t}gemm{suffix}") for t in "sd"]
            except AttributeError:
                continue
            sgemm, dgemm = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in products)
            get, put = _thread_functions(library, prefix, suffix)
            return Blas(sgemm, dgemm, wide, get, put)
    return Blas(0, 0, False, None, None)


@functools.cache
def core() -> str:
    """For which processor OpenBLAS's products are written that run here, as 'Haswell'; empty if it is another BLAS."""
    for library in _libraries():
        for prefix, suffix, _ in _STYLES:
            function = getattr(library, f"{prefix}openblas_get_corename{suffix}", None)
            if function is not None:
                function.restype, function.argtypes = ctypes.c_char_p, []
                return (function() or b"").decode()
    return ""


def _thread_functions(
    library: ctypes.CDLL, prefix: str, suffix: str
) -> tuple[Callable[[], int] | None, Callable[[int], None] | None]:
    own = prefix + "openblas_{}_num_threads" + suffix
    for get_name, set_name in (
        (own.format("get"), own.format("set")),
        ("openblas_get_num_threads", "openblas_set_num_threads"),
        ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ):
        try:
            get, put = getattr(library, get_name), getattr(library, set_name)
        except AttributeError:
            continue
        get.restype, get.argtypes = ctypes.c_int, []
        put.restype, put.argtypes = None, [ctypes.c_int]
        return get, put
    return None, None


class _Holds:
    """The thread counts that are being asked for, and the count BLAS had before the first of them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a signal handler may compute
        self.active: dict[int, int] = {}
        self.now = self.saved = 0

    def apply(self) -> None:
        put = find().set_threads
        while put is not None and (wanted := min(self.active, default=0)) != self.now:
            if not self.now:
                self.saved = find().get_threads()  # type: ignore[misc]
            put(min(wanted, self.saved) if wanted else self.saved)
            self.now = wanted


_holds = _Holds()


def hold(n: int) -> None:
    """Keep BLAS at `n` threads at most until :func:`release` is called with the same number."""
    held = False
    try:
        with _holds.lock:
            _holds.active[n] = _holds.active.get(n, 0) + 1
            held = True
            _holds.apply()
    except BaseException:  # Ctrl-C: nobody would release it
        if held:
            release(n)
        raise


def release(n: int) -> None:
    """End one :func:`hold`; with the last one BLAS gets back the count it had."""
    with _holds.lock:
        left = _holds.active.get(n, 0) - 1
        if left > 0:
            _holds.active[n] = left
        else:
            _holds.active.pop(n, None)
        _holds.apply()


class _Single(contextlib.ContextDecorator):
    """``with single:`` holds BLAS at one thread, ``@single`` while a function runs."""

    __slots__ = ()

    def __enter__(self) -> None:
        hold(1)

    def __exit__(self, *exc: object) -> None:
        release(1)


single = _Single()


def _after_fork() -> None:
    # The lock may be held by a thread that does not exist here; neither do the threads that held a count.
    global _holds
    held, _holds = _holds, _Holds()
    if held.active and held.saved and find().set_threads is not None:
        find().set_threads(held.saved)  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
