"""The driver over CuPy: the only module that imports it, when a GPU is first used."""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
from cupy.cuda import driver as cuda
from cupy.cuda import runtime

from mxcore.plugin import Alone, error, explain

from . import nvrtc
from .driver import Body, Driver, Opening
from .libraries import cudnn, library, nccl
from .user_sources import UserCode

if TYPE_CHECKING:
    from .launching import Arguments
    from .sources import Code

__all__ = ["CupyDriver"]

Host = np.ndarray[Any, Any]
_TO_DEVICE, _TO_HOST, _WITHIN, _ANY = 1, 2, 3, 4


class CupyDriver(Driver):
    """NVIDIA's GPUs through CuPy's memory pool, streams and events.

    A device has three streams, which do not wait for CUDA's default stream. The compute stream is CuPy's current one in
    every thread that works on the device, so that array functions and memory of the pool follow its order.
    """

    xp = cupy
    array_type = cupy.ndarray
    address = attrgetter("data.ptr")

    def __init__(self) -> None:
        super().__init__()
        explain(runtime.CUDARuntimeError, self.meaning)
        explain(cuda.CUDADriverError, self.meaning)
        explain(cupy.cuda.memory.OutOfMemoryError, self.no_room)
        self._allocate_plain = cupy.cuda.get_allocator()
        cupy.cuda.set_allocator(self._allocate)
        self._streams: dict[tuple[int, str], Any] = {}
        #: Source and device -> what was loaded, and the names in it of kernels that have other ones.
        self._modules: dict[tuple[str, int], tuple[Any, dict[str, str]]] = {}
        self._alone = Alone()
        self._here = threading.local()
        self._captures = 0

    def count(self) -> int:
        return int(runtime.getDeviceCount())

    def name(self, index: int) -> str:
        return str(runtime.getDeviceProperties(index)["name"].decode())

    def capability(self, index: int) -> int:
        return int(cupy.cuda.Device(index).compute_capability)  # kept by CuPy

    def activate(self, index: int) -> None:
        if getattr(self._here, "index", None) != index:
            cupy.cuda.Device(index).use()
            self.stream(index).use()
            self._here.index = index

    def active(self) -> int:
        return int(runtime.getDevice())

    # -- memory ------------------------------------------------------------------------------------------------------
    def empty(self, shape: tuple[int, ...], dtype: Any, index: int) -> Any:
        self.activate(index)
        try:
            return cupy.ndarray(shape, dtype)  # as cupy.empty makes it, without a frame of Python's
        except cupy.cuda.memory.OutOfMemoryError as e:
            raise MemoryError(str(e)) from None

    def _allocate(self, size: int) -> Any:
        """Memory for CuPy, where no graph is recorded: then the recording's own pool has it."""
        try:
            return self._allocate_plain(size)
        except cupy.cuda.memory.OutOfMemoryError:
            self.make_room(self.active())
        return self._allocate_plain(size)

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> Host:
        import cupyx

        found: Host = cupyx.empty_pinned(shape, dtype)
        return found

    def index_of(self, a: Any) -> int:
        return int(a.device.id)

    def shares(self, a: Any, b: Any) -> bool:
        return bool(cupy.may_share_memory(a, b))

    def memory(self, index: int) -> tuple[int, int]:
        with cupy.cuda.Device(index):
            free, total = runtime.memGetInfo()
        return int(free), int(total)

    def empty_cache(self, index: int) -> None:
        with cupy.cuda.Device(index):
            cupy.get_default_memory_pool().free_all_blocks()

    # -- copies ------------------------------------------------------------------------------------------------------
    def upload(self, a: Host, dst: Any, stream: Any) -> None:
        runtime.memcpyAsync(dst.data.ptr, a.ctypes.data, a.nbytes, _TO_DEVICE, stream.ptr)

    def download(self, a: Any, dst: Host, stream: Any) -> None:
        runtime.memcpyAsync(dst.ctypes.data, a.data.ptr, a.nbytes, _TO_HOST, stream.ptr)
        if not _is_pinned(dst):
            stream.synchronize()

    def move(self, a: Any, dst: Any, stream: Any) -> None:
        runtime.memcpyAsync(dst.data.ptr, a.data.ptr, a.nbytes, _ANY, stream.ptr)

    def fill(self, a: Any, value: int) -> None:
        name, word, width = _words(value, a.dtype)
        if not a.nbytes:
            return
        stream = ctypes.c_void_p(self._stream_now(a).ptr)
        _cuda(name, ctypes.c_void_p(a.data.ptr), word, _size(a.nbytes // width), stream)

    # -- streams and events --------------------------------------------------------------------------------------------
    def stream(self, index: int, which: str = "compute") -> Any:
        found = self._streams.get((index, which))
        if found is None:
            with cupy.cuda.Device(index):
                found = self._streams.setdefault((index, which), cupy.cuda.Stream(non_blocking=True))
        return found

    def record(self, stream: Any, timed: bool = False) -> Any:
        event = cupy.cuda.Event(disable_timing=not timed)
        event.record(stream)
        return event

    def wait(self, stream: Any, event: Any) -> None:
        stream.wait_event(event)

    def reached(self, event: Any) -> bool:
        return bool(event.done)

    def finish(self, event: Any) -> None:
        event.synchronize()

    def elapsed(self, begin: Any, end: Any) -> float:
        return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3

    def synchronize(self, index: int) -> None:
        for which in ("incoming", "compute", "outgoing"):
            self.stream(index, which).synchronize()

    # -- graphs --------------------------------------------------------------------------------------------------------
    def capturing(self) -> bool:
        return self._captures > 0 and getattr(self._here, "capture", None) is not None

    def begin_capture(self, index: int) -> None:
        self.activate(index)
        stream, pool = self.stream(index, "capture"), cupy.cuda.MemoryPool()
        allocator = cupy.cuda.using_allocator(pool.malloc)
        allocator.__enter__()
        stream.use()
        self._here.capture = stream, pool, allocator
        self._captures += 1
        runtime.streamBeginCapture(stream.ptr, runtime.streamCaptureModeRelaxed)

    def end_capture(self, index: int) -> Body:
        stream, pool, allocator = self._here.capture
        try:
            graph = runtime.streamEndCapture(stream.ptr)
        finally:
            self._captures -= 1
            self._here.capture = None
            allocator.__exit__(None, None, None)
            self.stream(index).use()
        n = ctypes.c_size_t()
        _cudart("cudaGraphGetNodes", ctypes.c_void_p(graph), None, ctypes.byref(n))
        return Body(graph, n.value, Recording(graph, pool))

    def graph(
        self, index: int, takes: Sequence[Any], body: Body, gives: Sequence[Any], opening: Opening | None = None
    ) -> Graph:
        return Graph(self.stream(index), takes, body, gives, opening)

    def launch_graph(self, graph: Graph, sources: Sequence[Any], targets: Sequence[Any]) -> None:
        graph.launch(sources, targets)

    # -- libraries -----------------------------------------------------------------------------------------------------
    def cublas(self) -> ctypes.CDLL:
        return library("cublas", "cuBLAS, which multiplies matrices")

    def cudnn(self) -> ctypes.CDLL | None:
        return cudnn()

    def nccl(self) -> ctypes.CDLL | None:
        return nccl()

    def pointer_of(self, stream: Any) -> ctypes.c_void_p:
        return ctypes.c_void_p(stream.ptr)

    def enqueue(self, stream: Any, call: Callable[[], None]) -> None:
        call()

    def enqueue_together(self, streams: Sequence[Any], call: Callable[[], None]) -> None:
        call()

    # -- kernels -------------------------------------------------------------------------------------------------------
    def function(self, code: Code, name: str, index: int) -> Any:
        module, names = self._module(code, index)
        return module.get_function(names.get(name, name))

    def prepare(self, code: Code, index: int) -> None:
        self._module(code, index)

    def _module(self, code: Code, index: int) -> tuple[Any, dict[str, str]]:
        found = self._modules.get((code.digest, index))
        return self._alone.do(self._loaded, code, index) if found is None else found

    def _loaded(self, code: Code, index: int) -> tuple[Any, dict[str, str]]:
        key = code.digest, index
        with cupy.cuda.Device(index) as device:
            if key not in self._modules:
                architecture = f"sm_{device.compute_capability}"
                if isinstance(code, UserCode):
                    binary, names = nvrtc.compile_user(code, architecture)
                else:
                    binary, names = nvrtc.cubin(code, architecture), {}
                module = cupy.cuda.function.Module()
                module.load(binary)
                self._modules[key] = module, names
        return self._modules[key]

    def _stream_now(self, a: Any) -> Any:
        """The stream that works on an array's device: the one that this thread captures, if it does."""
        capture = self._captures and getattr(self._here, "capture", None)
        return capture[0] if capture else self.stream(a.device.id)

    def launch(
        self, function: Any, grid: Sequence[int], block: Sequence[int], shared: int, stream: Any, arguments: Arguments
    ) -> None:
        if self._captures and (capture := getattr(self._here, "capture", None)):
            stream = capture[0]
        try:
            cuda.launchKernel(function.ptr, *grid, *block, shared, stream.ptr, arguments.pointer, 0)
        except cuda.CUDADriverError as e:
            told = self.faults.told(int(e.status), str(e))
            raise told or error(RuntimeError, f"a kernel cannot be launched: {e}") from e


class Recording:
    """A graph as it was recorded, with the pool of the memory that was allocated meanwhile."""

    def __init__(self, graph: int, pool: Any) -> None:
        self.pool = pool
        weakref.finalize(self, runtime.graphDestroy, graph)


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS of CUDA 12 and later: a kernel with its arguments, of which a node makes a copy."""

    _fields_ = [
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("arguments", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    ]


class Graph:
    """Copies and a kernel, then a body, then copies.

    It is a graph of CUDA's whose copies get other addresses, and its kernel other arguments, before each launch.
    """

    def __init__(
        self, stream: Any, takes: Sequence[Any], body: Body, gives: Sequence[Any], opening: Opening | None
    ) -> None:
        self._stream = stream
        graph = ctypes.c_void_p()
        _cudart("cudaGraphCreate", ctypes.byref(graph), 0)
        self._takes = [_add_copy(graph, a, None) for a in takes]
        before = [node for node, _, n in self._takes if n]
        self._opening = None
        if opening is not None:
            node, kernel = ctypes.c_void_p(), _node_of(opening)
            _cuda("cuGraphAddKernelNode_v2", ctypes.byref(node), graph, None, _size(0), ctypes.byref(kernel))
            before.append(node)
            self._opening = node, kernel, opening
        done = None
        if body.launches:
            done = ctypes.c_void_p()
            nodes = (ctypes.c_void_p * len(before))(*[node.value for node in before])
            child = ctypes.c_void_p(body.graph)
            _cudart("cudaGraphAddChildGraphNode", ctypes.byref(done), graph, nodes, _size(len(before)), child)
        self._gives = [_add_copy(graph, a, done) for a in gives]
        #: The caller's address of each copy, those that it takes first; none of them yet.
        self._at = [0] * (len(self._takes) + len(self._gives))
        handle = int(graph.value or 0)
        self._exec = runtime.graphInstantiate(handle)
        weakref.finalize(self, _destroy, self._exec, handle)

    def launch(self, sources: Sequence[Any], targets: Sequence[Any]) -> None:
        """Launch it on the compute stream."""
        for i, a in enumerate((*sources, *targets)):
            at = a.data.ptr
            if at != self._at[i]:  # the pool gives what is made and dropped in turn the same places
                self._point(i, at)
        if self._opening is not None:  # what was launched before keeps the arguments that it had
            node, kernel, _ = self._opening
            _cuda("cuGraphExecKernelNodeSetParams_v2", ctypes.c_void_p(self._exec), node, ctypes.byref(kernel))
        runtime.graphLaunch(self._exec, self._stream.ptr)

    def _point(self, i: int, at: int) -> None:
        """Let a copy go from, or to, another address."""
        n = len(self._takes)
        node, place, size = self._takes[i] if i < n else self._gives[i - n]
        if size:
            to, source = (place, at) if i < n else (at, place)
            _cudart(
                "cudaGraphExecMemcpyNodeSetParams1D",
                ctypes.c_void_p(self._exec), node, ctypes.c_void_p(to), ctypes.c_void_p(source), _size(size), _WITHIN,
            )  # fmt: skip
        self._at[i] = at


_size = ctypes.c_size_t


def _node_of(opening: Opening) -> KernelNode:
    """As CUDA takes it; it points to the arguments."""
    threads, pointer = (opening.threads, 1, 1), opening.arguments.pointer
    return KernelNode(opening.function.ptr, (1, 1, 1), threads, 0, pointer, None, None, None)


def _add_copy(graph: ctypes.c_void_p, a: Any, after: ctypes.c_void_p | None) -> tuple[ctypes.c_void_p, int, int]:
    """A copy of a graph, whose addresses are told later: (node, address of the array, bytes)."""
    node, place = ctypes.c_void_p(), ctypes.c_void_p(a.data.ptr)
    if a.nbytes:
        nodes = (ctypes.c_void_p * 1)(after.value if after else None)
        _cudart(
            "cudaGraphAddMemcpyNode1D",
            ctypes.byref(node), graph, nodes, _size(1 if after else 0), place, place, _size(a.nbytes), _WITHIN,
        )  # fmt: skip
    return node, int(a.data.ptr), int(a.nbytes)


def _destroy(executable: int, graph: int) -> None:
    runtime.graphExecDestroy(executable)
    runtime.graphDestroy(graph)


def _cudart(name: str, *arguments: Any) -> None:
    """Call a function of CUDA's runtime that CuPy has not."""
    status = getattr(_runtime(), name)(*arguments)
    if status:
        raise error(RuntimeError, f"{name}: cudaError {status}")


def _cuda(name: str, *arguments: Any) -> None:
    """Call a function of CUDA's driver that CuPy has not."""
    status = getattr(_driver(), name)(*arguments)
    if status:
        raise error(RuntimeError, f"{name}: CUresult {status}")


@cache
def _runtime() -> ctypes.CDLL:
    return library("cudart", "CUDA's runtime, which launches graphs")


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@cache
def _words(value: int, dtype: Any) -> tuple[str, Any, int]:
    """What fills memory with a number: the driver's function, the word that it repeats, and its bytes."""
    word = np.array(value, dtype).tobytes()
    if not any(word):
        return "cuMemsetD8Async", ctypes.c_ubyte(0), 1
    kind = {1: ("D8", ctypes.c_ubyte), 2: ("D16", ctypes.c_ushort), 4: ("D32", ctypes.c_uint)}[len(word)]
    return f"cuMemset{kind[0]}Async", kind[1](int.from_bytes(word, sys.byteorder)), len(word)


def _is_pinned(a: Host) -> bool:
    attributes = runtime.pointerGetAttributes(a.ctypes.data)
    return bool(attributes.type == runtime.memoryTypeHost)
