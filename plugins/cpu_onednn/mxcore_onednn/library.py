"""oneDNN's C interface: where the library is found, and its functions.

The wheel ``onednn-cpu-gomp`` has it (oneDNN 3.2, GNU OpenMP, as Numba's kernels). ``MXCORE_ONEDNN`` names another one
of version 3, or is 0 to do without.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.metadata
import logging
import os
from collections.abc import Iterator, Sequence
from ctypes import POINTER, c_float, c_int, c_int64, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any

from mxcore.plugin import Context, Device, let_through, processors

__all__ = [
    "ISA_AVX2",
    "ISA_AVX512",
    "ISA_BFLOAT16",
    "ISA_VNNI",
    "NoMemory",
    "Refused",
    "found",
    "library",
    "reason",
    "threads",
]

VARIABLE = "MXCORE_ONEDNN"
#: What it says of none, and of the wheel's; else it names a file.
_OFF, _WHEELS = ("0", "off"), ("", "1")
_WHEEL, _FILE = "onednn-cpu-gomp", "libdnnl.so.3"
#: The bits of ``dnnl_cpu_isa_avx2``: with less, our own kernels are no slower.
ISA_AVX2 = 0x7
#: Those of ``dnnl_cpu_isa_avx512_core``, and of sums of products of eight bits beside it, or beside AVX2.
ISA_AVX512, ISA_VNNI = 0x27, (0x67, 0x0F)
#: Those of products of bfloat16, beside AVX-512.
ISA_BFLOAT16 = 0xE7

#: The most that is used unless ``ONEDNN_MAX_CPU_ISA`` says otherwise, ``dnnl_cpu_isa_avx512_core_fp16``: oneDNN 3.2's
#: code for AMX has wrong gradients of some small convolutions of bfloat16, now and then, or crashes.
_ISA_MOST = 0x1EF

#: So many primitives the library keeps by itself. Plans keep theirs: its own 1024 would stay after those of shapes that
#: do not come again, some 60 kB each, strewn over memory from which arrays come.
_KEPT = 64

_DIMS = POINTER(c_int64)
_OUT = POINTER(c_void_p)
_PTR = c_void_p
#: Function -> types of its arguments; all return a status unless `_RETURNS` says otherwise.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "dnnl_engine_create": (_OUT, c_int, c_size_t),
    "dnnl_stream_create": (_OUT, _PTR, c_int),
    "dnnl_stream_destroy": (_PTR,),
    "dnnl_get_effective_cpu_isa": (),
    "dnnl_set_max_cpu_isa": (c_int,),
    "dnnl_set_primitive_cache_capacity": (c_int,),
    "dnnl_version": (),
    "dnnl_primitive_attr_create": (_OUT,),
    "dnnl_primitive_attr_set_scratchpad_mode": (_PTR, c_int),
    "dnnl_memory_desc_create_with_strides": (_OUT, c_int, _DIMS, c_int, _DIMS),
    "dnnl_memory_desc_create_with_tag": (_OUT, c_int, _DIMS, c_int, c_int),
    "dnnl_memory_desc_clone": (_OUT, _PTR),
    "dnnl_memory_desc_equal": (_PTR, _PTR),
    "dnnl_memory_desc_get_size": (_PTR,),
    "dnnl_memory_desc_destroy": (_PTR,),
    "dnnl_memory_create": (_OUT, _PTR, _PTR, _PTR),
    "dnnl_memory_set_data_handle": (_PTR, _PTR),
    "dnnl_memory_destroy": (_PTR,),
    "dnnl_primitive_desc_query_md": (_PTR, c_int, c_int),
    "dnnl_primitive_desc_query": (_PTR, c_int, c_int, _PTR),
    "dnnl_primitive_desc_destroy": (_PTR,),
    "dnnl_primitive_create": (_OUT, _PTR),
    "dnnl_primitive_destroy": (_PTR,),
    "dnnl_primitive_execute": (_PTR, _PTR, c_int, _PTR),
    "dnnl_reorder_primitive_desc_create": (_OUT, _PTR, _PTR, _PTR, _PTR, _PTR),
    "dnnl_primitive_attr_destroy": (_PTR,),
    "dnnl_primitive_attr_set_post_ops": (_PTR, _PTR),
    "dnnl_post_ops_create": (_OUT,),
    "dnnl_post_ops_destroy": (_PTR,),
    "dnnl_post_ops_append_sum": (_PTR, c_float, c_int, c_int),
    "dnnl_post_ops_append_eltwise": (_PTR, c_int, c_float, c_float),
    "dnnl_post_ops_append_binary": (_PTR, c_int, _PTR),
    "dnnl_post_ops_append_prelu": (_PTR, c_int),
    "dnnl_prelu_forward_primitive_desc_create": (_OUT, _PTR, c_int, _PTR, _PTR, _PTR, _PTR),
    "dnnl_binary_primitive_desc_create": (_OUT, _PTR, c_int, _PTR, _PTR, _PTR, _PTR),
    "dnnl_concat_primitive_desc_create": (_OUT, _PTR, _PTR, c_int, c_int, _OUT, _PTR),
    "dnnl_eltwise_forward_primitive_desc_create": (_OUT, _PTR, c_int, c_int, _PTR, _PTR, c_float, c_float, _PTR),
    "dnnl_eltwise_backward_primitive_desc_create": (
        *(_OUT, _PTR, c_int, _PTR, _PTR, _PTR),
        *(c_float, c_float, _PTR, _PTR),
    ),
    "dnnl_softmax_forward_primitive_desc_create": (_OUT, _PTR, c_int, c_int, _PTR, _PTR, c_int, _PTR),
    "dnnl_softmax_backward_primitive_desc_create": (_OUT, _PTR, c_int, _PTR, _PTR, _PTR, c_int, _PTR, _PTR),
    "dnnl_layer_normalization_forward_primitive_desc_create": (
        *(_OUT, _PTR, c_int, _PTR, _PTR, _PTR),
        *(c_float, c_uint, _PTR),
    ),
    "dnnl_pooling_forward_primitive_desc_create": (
        *(_OUT, _PTR, c_int, c_int, _PTR, _PTR),
        *(_DIMS, _DIMS, _DIMS, _DIMS, _DIMS, _PTR),
    ),
    "dnnl_pooling_backward_primitive_desc_create": (
        *(_OUT, _PTR, c_int, _PTR, _PTR),
        *(_DIMS, _DIMS, _DIMS, _DIMS, _DIMS, _PTR, _PTR),
    ),
    "dnnl_matmul_primitive_desc_create": (_OUT, _PTR, _PTR, _PTR, _PTR, _PTR, _PTR),
    "dnnl_inner_product_forward_primitive_desc_create": (_OUT, _PTR, c_int, _PTR, _PTR, _PTR, _PTR, _PTR),
    "dnnl_lstm_forward_primitive_desc_create": (
        *(_OUT, _PTR, c_int, c_int, _PTR, _PTR, _PTR, _PTR, _PTR, _PTR, _PTR, _PTR),
        *(_PTR, _PTR, _PTR, c_uint, _PTR),
    ),
    "dnnl_lbr_gru_forward_primitive_desc_create": (
        *(_OUT, _PTR, c_int, c_int, _PTR, _PTR, _PTR, _PTR, _PTR, _PTR, _PTR),
        *(c_uint, _PTR),
    ),
    "dnnl_lrn_forward_primitive_desc_create": (
        *(_OUT, _PTR, c_int, c_int, _PTR, _PTR),
        *(c_int64, c_float, c_float, c_float, _PTR),
    ),
    "dnnl_convolution_forward_primitive_desc_create": (
        *(_OUT, _PTR, c_int, c_int, _PTR, _PTR, _PTR, _PTR),
        *(_DIMS, _DIMS, _DIMS, _DIMS, _PTR),
    ),
    "dnnl_convolution_backward_data_primitive_desc_create": (
        *(_OUT, _PTR, c_int, _PTR, _PTR, _PTR),
        *(_DIMS, _DIMS, _DIMS, _DIMS, _PTR, _PTR),
    ),
    "dnnl_convolution_backward_weights_primitive_desc_create": (
        *(_OUT, _PTR, c_int, _PTR, _PTR, _PTR, _PTR),
        *(_DIMS, _DIMS, _DIMS, _DIMS, _PTR, _PTR),
    ),
}
_RETURNS: dict[str, Any] = {
    "dnnl_version": POINTER(c_int * 3),
    "dnnl_memory_desc_get_size": c_size_t,
    "dnnl_primitive_desc_query_md": c_void_p,
}
_STATUS = {
    1: "out of memory",
    2: "invalid arguments",
    3: "unimplemented",
    4: "last implementation reached",
    5: "runtime error",
    6: "not required",
}

_reason: str | None = None


class Refused(Exception):
    """The library does not compute this."""


class NoMemory(Refused):
    """It has no memory for it now, and may have some later."""


def found() -> Path | None:
    """The library's file, without loading it; None where there is none, or none is wanted."""
    named = os.environ.get(VARIABLE, "")
    if named in _OFF:
        return None
    if named not in _WHEELS:
        return Path(named)
    try:
        files = importlib.metadata.distribution(_WHEEL).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((path for f in files if f.name == _FILE and (path := Path(str(f.locate()))).exists()), None)


def reason() -> str:
    """Why the library is not used; empty if it is."""
    return "" if library() is not None else _reason or ""


@functools.cache
def threads() -> Any:
    """Those of the device, which all its kernels share: how many there are, and how OpenMP is loaded.

    Another plugin's device may say nothing of its threads: then there are as many as processors.
    """
    return getattr(_device(), "threads", None) or _Processors()


@functools.cache
def blas_core() -> str:
    """For which processor the products of the BLAS that kernels call are written; empty where nobody knows."""
    return str(getattr(_device(), "blas_core", ""))


class _Processors:
    """The threads of a device that has no say in them."""

    @staticmethod
    def count() -> int:
        return processors()

    @staticmethod
    def patient() -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


def _device() -> Device:
    return Context("cpu", 0).device


@functools.cache
def library() -> Library | None:
    """The library, loaded once; None where it cannot be used, and :func:`reason` says why."""
    global _reason
    path = found()
    if path is None:
        named = os.environ.get(VARIABLE, "")
        _reason = f"{VARIABLE} is {named}" if named in _OFF else f"{_WHEEL} is not installed"
        return None
    try:
        if not _device().host:
            raise Refused(f"arrays of device 'cpu' of {type(_device()).__module__} are not NumPy's")
        return Library(path)
    except (OSError, AttributeError, Refused) as e:
        let_through(e)
        _reason = f"{path}: {e}"
        # Who has named a file wants to know; of a processor that is too old `mxcore info` tells.
        level = logging.INFO if os.environ.get(VARIABLE, "") in _WHEELS else logging.WARNING
        logging.getLogger("mxcore").log(level, "oneDNN is not used: %s", _reason)
        return None


class Library:
    """The functions, by their names without ``dnnl_``; those that give a status raise :class:`Refused`.

    Attributes
    ----------
    version : tuple of int
    isa : int
        The bits of the best instructions that it uses.
    engine, attr : int
        The CPU, and the attributes of all primitives: they are given their scratch memory.
    openmp : object
        ``omp_get_max_threads`` and ``omp_set_num_threads`` of the library's own runtime.
    """

    def __init__(self, path: Path) -> None:
        with threads().patient():
            dll = ctypes.CDLL(str(path))
        dll.dnnl_version.restype = _RETURNS["dnnl_version"]
        version = tuple(dll.dnnl_version().contents)
        if version[0] != 3:
            raise Refused(f"oneDNN 3 is needed, this is {'.'.join(map(str, version))}")
        for name, types in _FUNCTIONS.items():
            function = getattr(dll, name)
            function.argtypes = types
            function.restype = _RETURNS.get(name, c_int)
            short = name.removeprefix("dnnl_")
            plain = name in _RETURNS or short in ("get_effective_cpu_isa", "memory_desc_equal")
            setattr(self, short, function if plain else _checked(short, function))
        self.version = version
        if not any(f"{prefix}_MAX_CPU_ISA" in os.environ for prefix in ("ONEDNN", "DNNL")):
            with contextlib.suppress(Refused):  # it is in use already, and has been told
                self.set_max_cpu_isa(_ISA_MOST)
        self.isa: int = dll.dnnl_get_effective_cpu_isa()
        if self.isa & ISA_AVX2 != ISA_AVX2:
            raise Refused("this processor has no AVX2")
        self.openmp = dll  # whose symbols are found through it
        self.openmp.omp_set_num_threads.argtypes = (c_int,)
        self.openmp.omp_set_num_threads.restype = None
        self.openmp.omp_get_max_threads.argtypes = ()
        self.engine = self.new("engine_create", 1, 0)
        self.attr = self.new("primitive_attr_create")
        self.primitive_attr_set_scratchpad_mode(self.attr, 1)
        if not any(f"{prefix}_PRIMITIVE_CACHE_CAPACITY" in os.environ for prefix in ("ONEDNN", "DNNL")):
            self.set_primitive_cache_capacity(_KEPT)

    def __getattr__(self, name: str) -> Any:  # those of the table
        raise AttributeError(name)

    def handles(self, values: Sequence[int]) -> Any:
        """Handles as the library takes several of them."""
        return (c_void_p * len(values))(*values)

    def new(self, name: str, *args: Any) -> int:
        """Call a function that makes something, and return its handle."""
        handle = c_void_p()
        getattr(self, name)(ctypes.byref(handle), *args)
        return handle.value or 0

    @contextlib.contextmanager
    def hinting(self, desc: int) -> Iterator[int]:
        """The descriptor of a forward primitive, for that of its gradient; it goes then."""
        try:
            yield desc
        finally:
            self.primitive_desc_destroy(desc)


def _checked(name: str, function: Any) -> Any:
    def call(*args: Any) -> None:
        status = function(*args)
        if status:
            raise (NoMemory if status == 1 else Refused)(f"oneDNN: {name}: {_STATUS.get(status, status)}")

    return call
