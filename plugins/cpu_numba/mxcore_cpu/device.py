"""The CPU as a device: NumPy arrays in the host's memory."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from mxcore.plugin import Device, Fused, Rng, pinning

from . import memory
from .namespace import namespace

if TYPE_CHECKING:
    from .fused.bound import Compiled
from .typing import Array

__all__ = ["CPU", "CPUPinned", "CPUShared"]


class HostRng(Rng):
    """Random numbers whose words are used where they were made."""

    bits = Rng.host_bits


class CPU(Device):
    """Host memory. All indices share it; each has its own worker thread, so that independent contexts overlap."""

    type = "cpu"
    type_id = 1
    host = True
    computes_as = "cpu"
    xp = namespace
    #: A fused call saves about a microsecond for each of its parts, and compiling a new chain takes some hundredths of
    #: a second: over small arrays that never comes back.
    fused_from = 1024
    #: Functions for which compiled loops use vector instructions; chains of others are slower than NumPy's own.
    fused_functions = frozenset(
        """
        exp expm1 log log1p sqrt rsqrt tanh sigmoid erf softplus relu floor ceil trunc rint fix abs sign square
        reciprocal isnan isinf maximum minimum hypot where
    """.split()
    )
    #: Dtypes that chains may mix; numbers of others than floats are cast or compared only.
    fused_dtypes = frozenset("float16 float32 float64 bool uint8 int8 int32 int64".split())
    #: Products whose bias is cheaper to add afterwards; convolutions add it while the data is in the cache.
    fused_biases = frozenset({"FullyConnected"})

    @property
    def blas_core(self) -> str:
        """For which processor the products of BLAS are written, as 'Haswell'; empty where nobody knows."""
        from . import blas

        return blas.core()

    @property
    def threads(self) -> Any:
        """How many threads compute, and how OpenMP is loaded: for kernels of other plugins."""
        from . import threads

        return threads

    def count(self) -> int:
        """CPU contexts are unlimited, as in MXNet."""
        return sys.maxsize

    def to_host(self, a: Array) -> Array:
        return np.array(a, order="C")

    def from_host(self, a: Array, index: int) -> Array:
        return np.array(a, order="C")

    def empty(self, shape: tuple[int, ...], dtype: Any, index: int) -> Array:
        return memory.empty(shape, dtype)

    def full(self, shape: tuple[int, ...], value: float, dtype: Any, index: int) -> Array:
        a = memory.empty(shape, dtype)
        a[...] = value
        return a

    def empty_cache(self, index: int) -> None:
        """Give the memory of dropped arrays back to the system."""
        memory.clear()

    owns = staticmethod(memory.is_own)

    def copy(self, a: Array, dst: Array) -> None:
        # Of two vectors in one memory NumPy reads what it has just written, unless their elements are as far apart.
        # That an array owns its memory is seen first: no other one of its length lies there in another way.
        if dst.base is not None and dst.ndim == 1 and a.strides != dst.strides and np.may_share_memory(a, dst):
            a = a.copy()
        dst[...] = a

    def rng(self, key: tuple[int, int, int], index: int) -> Rng:
        return HostRng(self, key, index)

    def compile_fused(self, chain: Fused) -> Compiled | None:
        """Compile an elementwise chain with LLVM; None where Numba is missing."""
        from .fused import compile_chain

        return compile_chain(chain)

    def activate(self, index: int) -> None:
        """Called by engine workers before each task: contexts that compute side by side share the cores."""
        from . import threads

        threads.share(index)

    def memory(self, index: int) -> tuple[int, int]:
        """(free, total) bytes of the machine."""
        try:
            page, total = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
            return page * os.sysconf("SC_AVPHYS_PAGES"), page * total
        except (AttributeError, ValueError, OSError):
            return (0, 0)


class CPUPinned(CPU):
    """Memory of the host that the system does not move, from the device that pins it; plain memory where there is none.

    What is brought or copied there lies in such memory. Operators compute there as on the CPU, their results in plain
    memory.
    """

    type = "cpu_pinned"
    type_id = 3

    def empty(self, shape: tuple[int, ...], dtype: Any, index: int) -> Array:
        device = pinning()
        return memory.empty(shape, dtype) if device is None else device.empty_pinned(shape, dtype)

    def full(self, shape: tuple[int, ...], value: float, dtype: Any, index: int) -> Array:
        a = self.empty(shape, dtype, index)
        a[...] = value
        return a

    def from_host(self, a: Array, index: int) -> Array:
        pinned = self.empty(a.shape, a.dtype, index)
        pinned[...] = a
        return pinned


class CPUShared(CPU):
    """Host memory shared between processes (data loader workers make it); computes like the CPU."""

    type = "cpu_shared"
    type_id = 5
