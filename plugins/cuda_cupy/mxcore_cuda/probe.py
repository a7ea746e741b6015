"""What there is, told without touching a driver: it must stay untouched until first use, for forked workers' sake."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.metadata
import importlib.util
import os
import sys
from functools import cache

from .drivers import driver, emulated

__all__ = ["absence", "count", "describe", "why"]

#: Status of CUDA's -> what to do.
_ADVICE = {35: "update the NVIDIA driver, or install the CuPy of an older CUDA: pip install 'mxcore-cuda[cuda12]'"}
#: Distributions that bring CuPy; two of them in one environment overwrite each other's files.
_CUPYS = ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy-cuda114", "cupy-cuda115", "cupy", "cupy-rocm-5-0")


@cache
def absence() -> str | None:
    """Why there is certainly no GPU to use, in one sentence; None if there may be one. Opens no device."""
    if os.environ.get("MXCORE_CUDA", "1").strip() == "0":
        return "MXCORE_CUDA=0 turns it off"
    if emulated():
        return None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES={visible!r} hides all GPUs"
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        ctypes.CDLL(library)
    except OSError:
        return f"there is no NVIDIA driver ({library} cannot be loaded)"
    if importlib.util.find_spec("cupy") is None:
        return "there is a driver but no CuPy: pip install 'mxcore-cuda[cuda13]' (or [cuda12], as `nvidia-smi` says)"
    several = sorted(name for name in _CUPYS if _installed(name))
    if len(several) > 1:
        return f"{' and '.join(several)} overwrite each other: uninstall all of them, then install one"
    return None


@cache
def _counted() -> tuple[int, str | None]:
    reason = absence()
    if reason is not None:
        return 0, reason
    try:
        n = driver().count()
    except Exception as e:  # a broken driver may raise anything
        advice = _ADVICE.get(getattr(e, "status", 0))
        return 0, f"{type(e).__name__}: {' '.join(str(e).split())}{f'; {advice}' if advice else ''}"
    return n, None if n else "the driver finds no GPU"


def count() -> int:
    """How many GPUs there are; 0 if none can be used."""
    return _counted()[0]


def why() -> str | None:
    """Why there is none, in one sentence."""
    return _counted()[1]


def describe() -> str:
    """A line for ``mxcore info``."""
    n, reason = _counted()
    if reason is not None:
        return f"no GPU: {reason}"
    return f"{n} {'emulated ' if emulated() else ''}GPU(s)"


def _installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)  # whose metadata nobody reads: that takes milliseconds
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
