"""NVIDIA's libraries, wherever their packages or the system keep them."""

from __future__ import annotations

import ctypes
import sys

from mxcore.plugin import error

__all__ = ["cudnn", "library", "nccl"]


def library(name: str, what: str) -> ctypes.CDLL:
    """Open a library.

    Parameters
    ----------
    name : str
        As `cuda.pathfinder` knows it, e.g. ``'nvrtc'``.
    what : str
        What it is called, and does, for the error.

    Raises
    ------
    MXNetError
        (also RuntimeError) saying what to install.
    """
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        return ctypes.CDLL(load_nvidia_dynamic_lib(name).abs_path)
    except (ImportError, RuntimeError, OSError) as e:
        raise error(
            RuntimeError,
            f"{what}, is not there: pip install 'mxcore-cuda[cuda13]' (or [cuda12]); "
            f"{type(e).__name__}: {' '.join(str(e).split())[:200]}",
        ) from None


def cudnn() -> ctypes.CDLL | None:
    """The ninth version of cuDNN, of NVIDIA's package or the system; None where there is none."""
    return _optional("cudnn", "cudnn64_9.dll" if sys.platform == "win32" else "libcudnn.so.9")


def nccl() -> ctypes.CDLL | None:
    """The second version of NCCL, of NVIDIA's package or the system; None where there is none."""
    return _optional("nccl", "libnccl.so.2")


def _optional(name: str, file: str) -> ctypes.CDLL | None:
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        file = load_nvidia_dynamic_lib(name).abs_path or file
    except (ImportError, RuntimeError, OSError, ValueError):
        pass  # it does not find it, or does not know it
    try:
        return ctypes.CDLL(file)
    except OSError:
        return None
