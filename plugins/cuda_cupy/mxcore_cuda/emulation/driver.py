"""The emulated driver."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mxcore.plugin import explain

from ..driver import Body, Driver, Opening
from ..sources import Code
from ..user_sources import UserCode
from . import compiler, devices
from .arrays import EmulatedArray, empty, note
from .compiler import Function
from .devices import here
from .memory import OutOfMemoryError, find, used
from .namespace import Namespace
from .streams import EmulatedError, Event, Meeting, Stream
from .user_sources import translated, user_function

if TYPE_CHECKING:
    from ..launching import Arguments

__all__ = ["EmulatedDriver"]

Host = np.ndarray[Any, Any]


class EmulatedDriver(Driver):
    """As many devices as told.

    Parameters
    ----------
    n : int
    """

    array_type = EmulatedArray
    address = attrgetter("ptr")

    def __init__(self, n: int) -> None:
        super().__init__()
        explain(EmulatedError, self.meaning)
        explain(OutOfMemoryError, self.no_room)
        devices.in_want[:] = [lambda index: self.make_room(index)]  # another one may be put there
        self._count = n
        self.xp = Namespace()
        self._pinned: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def count(self) -> int:
        return self._count

    def name(self, index: int) -> str:
        return "emulated"

    def capability(self, index: int) -> int:
        return 90

    def activate(self, index: int) -> None:
        if index != here.index:
            if not 0 <= index < self._count:
                raise ValueError(f"cudaErrorInvalidDevice: there is no gpu({index}); there are {self._count}")
            here.index = index

    def active(self) -> int:
        return devices.active()

    # -- memory ------------------------------------------------------------------------------------------------------
    def empty(self, shape: tuple[int, ...], dtype: Any, index: int) -> EmulatedArray:
        return empty(tuple(shape), np.dtype(dtype), index)

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> Host:
        a = np.empty(shape, dtype)
        self._pinned[a.__array_interface__["data"][0]] = a
        return a

    def _is_pinned(self, a: Host) -> bool:
        return any(np.may_share_memory(a, p) for p in list(self._pinned.values()))

    def index_of(self, a: EmulatedArray) -> int:
        return a.index

    def shares(self, a: EmulatedArray, b: EmulatedArray) -> bool:
        return a.block is b.block and np.may_share_memory(a.values, b.values)

    def memory(self, index: int) -> tuple[int, int]:
        return devices.total() - used(index), devices.total()

    def empty_cache(self, index: int) -> None:
        devices.give_back(index)

    # -- copies ------------------------------------------------------------------------------------------------------
    def upload(self, a: Host, dst: EmulatedArray, stream: Stream) -> None:
        stream.refuse_capture("a copy from the host")
        source, place = a if self._is_pinned(a) else a.copy(), dst.values
        stream.launch(lambda: np.copyto(place, source))

    def download(self, a: EmulatedArray, dst: Host, stream: Stream) -> None:
        stream.refuse_capture("a copy to the host")
        source = a.values
        stream.launch(lambda: np.copyto(dst, source))
        if not self._is_pinned(dst):
            note("waits")
            stream.run()

    def move(self, a: EmulatedArray, dst: EmulatedArray, stream: Stream) -> None:
        source, place = a.values, dst.values
        stream.launch(lambda: np.copyto(place, source))

    def fill(self, a: EmulatedArray, value: int) -> None:
        place = a.values
        self.stream(a.index).launch(lambda: place.fill(value))

    # -- streams and events --------------------------------------------------------------------------------------------
    def stream(self, index: int, which: str = "compute") -> Stream:
        # Of the compute stream each thread captures its own launches.
        found: Stream = getattr(devices.queues(index), "compute" if which == "capture" else which)
        return found

    def record(self, stream: Stream, timed: bool = False) -> Event:
        return Event(stream)

    def wait(self, stream: Stream, event: Event) -> None:
        stream.wait(event)

    def reached(self, event: Event) -> bool:
        return event.reached

    def finish(self, event: Event) -> None:
        event.reach()

    def elapsed(self, begin: Event, end: Event) -> float:
        return end.time - begin.time

    def synchronize(self, index: int) -> None:
        found = devices.queues(index)
        for stream in (found.incoming, found.compute, found.outgoing):
            stream.run()

    # -- graphs --------------------------------------------------------------------------------------------------------
    def capturing(self) -> bool:
        return devices.pool() is not None

    def begin_capture(self, index: int) -> None:
        self.activate(index)
        devices.keep_blocks([])
        self.stream(index).recording = threading.get_ident(), []

    def end_capture(self, index: int) -> Body:
        stream = self.stream(index)
        assert stream.recording is not None
        (_, work), stream.recording = stream.recording, None
        body = Body(work, len(work), devices.pool())
        devices.keep_blocks(None)
        return body

    def graph(
        self,
        index: int,
        takes: Sequence[EmulatedArray],
        body: Body,
        gives: Sequence[EmulatedArray],
        opening: Opening | None = None,
    ) -> EmulatedGraph:
        places = [a.values for a in takes], [a.values for a in gives]
        return EmulatedGraph(index, self.stream(index), places[0], body, places[1], opening)

    def launch_graph(
        self, graph: EmulatedGraph, sources: Sequence[EmulatedArray], targets: Sequence[EmulatedArray]
    ) -> None:
        for a in (*sources, *targets):
            if a.index != graph.index or not a.flags.c_contiguous:
                raise ValueError(f"a graph of gpu({graph.index}) copies between dense arrays of it, not {a!r}")
        graph.launch([a.values for a in sources], [a.values for a in targets])

    # -- libraries -----------------------------------------------------------------------------------------------------
    def cublas(self) -> ctypes.CDLL:
        return compiler.load(Code("cublas.cpp", Path(__file__).with_name("cublas.cpp").read_text()))

    def cudnn(self) -> ctypes.CDLL | None:
        if os.environ.get("MXCORE_CUDA_EMULATE_CUDNN", "0").strip() == "0":
            return None
        return compiler.load(Code("cudnn.cpp", Path(__file__).with_name("cudnn.cpp").read_text()))

    def nccl(self) -> ctypes.CDLL | None:
        found = compiler.load(Code("nccl.cpp", Path(__file__).with_name("nccl.cpp").read_text()))
        found.mx_knows(_DEVICE_OF, self._count)
        return found

    def pointer_of(self, stream: Stream) -> ctypes.c_void_p:
        return ctypes.c_void_p(id(stream))

    def enqueue(self, stream: Stream, call: Callable[[], None]) -> None:
        stream.launch(call)

    def enqueue_together(self, streams: Sequence[Stream], call: Callable[[], None]) -> None:
        Meeting(streams, call).launch()

    # -- kernels -------------------------------------------------------------------------------------------------------
    def function(self, code: Code, name: str, index: int) -> Function:
        return user_function(code, name) if isinstance(code, UserCode) else Function(code, name)

    def prepare(self, code: Code, index: int) -> None:
        compiler.load(translated(code) if isinstance(code, UserCode) else code)

    def launch(
        self,
        function: Function,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        stream: Stream,
        arguments: Arguments,
    ) -> None:
        stream.launch(Launch(function, devices.active(), grid, block, shared, arguments))


def _device_of(address: int | None) -> int:
    found = find(address or 0)
    return -1 if found is None else found


#: The device on which an address is, for libraries.
_DEVICE_OF = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_device_of)


class EmulatedGraph:
    """A body between copies, launched as one; it keeps no memory but that of its own pool.

    Kernels find out whether what they point to has been given back since.
    """

    def __init__(
        self,
        index: int,
        stream: Stream,
        takes: Sequence[Host],
        body: Body,
        gives: Sequence[Host],
        opening: Opening | None,
    ) -> None:
        self.index, self.stream, self.opening = index, stream, opening
        self.takes, self.body, self.gives = takes, body, gives

    def launch(self, sources: Sequence[Host], targets: Sequence[Host]) -> None:
        """Launch it."""
        copies = [*zip(self.takes, sources, strict=True)], [*zip(targets, self.gives, strict=True)]
        first = []
        if self.opening is not None:  # with the arguments as they are now
            function, threads, arguments = self.opening
            first.append(Launch(function, self.index, (1, 1, 1), (threads, 1, 1), 0, arguments))

        def run() -> None:
            for place, a in copies[0]:
                np.copyto(place, a)
            for work in (*first, *self.body.graph):
                work()
            for place, a in copies[1]:
                np.copyto(place, a)

        self.stream.launch(run)


class Launch:
    """A launch that waits in a stream: it holds the arguments as they were, and no array."""

    __slots__ = ("function", "index", "shape", "shared", "memory", "offsets", "pointers")

    def __init__(
        self,
        function: Function,
        index: int,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        arguments: Arguments,
    ) -> None:
        for n, most, what in zip((*grid, *block), (2**31 - 1, 65535, 65535, 1024, 1024, 64), "xyzxyz"):
            if not 0 < n <= most:
                raise ValueError(f"cudaErrorInvalidValue: kernel {function.name}: {n} along {what}, of at most {most}")
        if shared > 48 << 10:
            raise ValueError(f"cudaErrorInvalidValue: kernel {function.name}: {shared} bytes of shared memory")
        self.function, self.index, self.shape, self.shared = function, index, (*grid, *block), shared
        self.memory, self.offsets = arguments.memory.raw, arguments.offsets
        #: (name of the argument, where its address lies): those of pointers, and those in a table.
        self.pointers: list[tuple[str, int]] = []
        for p, at in zip(function.parameters, arguments.offsets):
            if p.pointer:
                self.pointers.append((p.name, at))
            elif p.type == "Table":
                if arguments.table is None:
                    raise ValueError(f"kernel {function.name}: nobody says which words of {p.name} are addresses")
                self.pointers += [(f"{p.name}, {name},", at + inside) for name, inside in arguments.table.pointers()]

    def __call__(self) -> None:
        memory = ctypes.create_string_buffer(self.memory, len(self.memory))
        start = ctypes.addressof(memory)
        for name, offset in self.pointers:
            at = int.from_bytes(self.memory[offset : offset + 8], "little")
            if at and find(at) != self.index:
                raise EmulatedError(
                    700,
                    f"cudaErrorIllegalAddress: kernel {self.function.name}: argument {name} does not point to "
                    f"memory of gpu({self.index})",
                )
        addresses = (ctypes.c_void_p * max(len(self.offsets), 1))(*(start + at for at in self.offsets))
        shape = (ctypes.c_uint * 6)(*self.shape)
        self.function.call(shape, ctypes.byref(shape, 12), self.shared, addresses)
