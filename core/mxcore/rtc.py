"""Kernels of CUDA C compiled at run time, as ``mxnet.rtc``."""

from __future__ import annotations

from typing import Any, NoReturn

from ._reexports import reexports
from .base import error

__all__ = ["CudaKernel", "CudaModule"]


def _refuse(name: str) -> NoReturn:
    raise error(
        RuntimeError,
        f"{name}: there is no CUDA device; the plugin mxcore-cuda, which is planned (README.md, Status), brings it",
    )


class CudaModule:
    """A module of CUDA C.

    Parameters
    ----------
    source : str
        Code.
    options : tuple of str
        Of the compiler.
    exports : tuple of str
        Names of kernels.

    Raises
    ------
    MXNetError
        Always, as MXNet does where it was built without CUDA.
    """

    def __init__(self, source: str, options: Any = (), exports: Any = ()) -> None:
        _refuse("CudaModule")

    def get_kernel(self, name: str, signature: str) -> Any:
        """The kernel of a name, whose arguments the signature of C describes."""
        _refuse("CudaModule.get_kernel")


class CudaKernel:
    """A kernel of a `CudaModule`, whose `get_kernel` makes it.

    Raises
    ------
    MXNetError
        Always, as MXNet does where it was built without CUDA.
    """

    def __init__(self, handle: Any, name: str, is_ndarray: Any, dtypes: Any) -> None:
        _refuse("CudaKernel")

    def launch(self, args: Any, ctx: Any, grid_dims: Any, block_dims: Any, shared_mem: int = 0) -> None:
        """Run the kernel."""
        _refuse("CudaKernel.launch")


__getattr__ = reexports(__name__)
