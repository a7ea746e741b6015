"""What the plugin asks of CUDA: memory, copies, streams, events, launches, the array namespace."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .faults import Faults, no_room

if TYPE_CHECKING:
    from .launching import Arguments
    from .sources import Code

__all__ = ["Body", "Driver", "Opening"]

Host = np.ndarray[Any, Any]


class Body(NamedTuple):
    """Launches that were recorded.

    Attributes
    ----------
    graph : object
        The driver's.
    launches : int
    memory : object
        What was allocated meanwhile: it belongs to them.
    """

    graph: Any
    launches: int
    memory: Any


class Opening(NamedTuple):
    """A kernel that a graph begins with: one block, whose arguments may be others at each launch of the graph.

    Attributes
    ----------
    function : object
        The driver's.
    threads : int
    arguments : mxcore_cuda.launching.Arguments
        Each launch of the graph takes what they are then.
    """

    function: Any
    threads: int
    arguments: Arguments


class Driver(ABC):
    """The door to the hardware.

    Streams, events, functions and graphs are the driver's own objects. `which` of a device's streams is ``'compute'``,
    ``'incoming'``,
    ``'outgoing'`` or ``'capture'``. Nothing waits but what says so.

    Attributes
    ----------
    xp : module
        The array namespace, as CuPy's, on the compute stream of the active device.
    array_type : type
        Of its arrays.
    address : callable
        Where an array's memory begins: an attribute that is got without a frame of Python's, since every launch asks
        for several.
    faults : Faults
        What has failed for good.
    make_room : callable
        ``(index)``: gives back what is held in reserve on a device. Whatever allocates, arrays of array functions
        included, asks for it where the pool has no memory left, and tries again; not while a graph is recorded.
    """

    xp: Any
    array_type: Any
    address: attrgetter[int]

    def __init__(self) -> None:
        self.faults = Faults()
        self.make_room: Callable[[int], None] = self.empty_cache

    @abstractmethod
    def count(self) -> int:
        """How many devices there are."""

    @abstractmethod
    def name(self, index: int) -> str:
        """What kind of device one is."""

    @abstractmethod
    def capability(self, index: int) -> int:
        """Which instructions a device has: 90 for those of an H100."""

    @abstractmethod
    def activate(self, index: int) -> None:
        """Make a device the one that the calling thread works on."""

    @abstractmethod
    def active(self) -> int:
        """The device that the calling thread works on."""

    # -- what exceptions of the library mean, for `explain`
    def meaning(self, e: Any) -> BaseException:
        """What users get in the place of an exception with a `status`."""
        return self.faults.told(int(e.status), str(e)) or e

    def no_room(self, e: BaseException) -> BaseException:
        """What users get where the pool has no memory left."""
        index = self.active()
        return no_room(None, index, self.memory(index), f" ({e})")

    # -- memory
    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: Any, index: int) -> Any:
        """A new array of an active device; MemoryError if there is no room, also after :attr:`make_room`."""

    @abstractmethod
    def pinned(self, shape: tuple[int, ...], dtype: Any) -> Host:
        """A new NumPy array in memory that the system does not move."""

    @abstractmethod
    def index_of(self, a: Any) -> int:
        """The device of an array."""

    @abstractmethod
    def shares(self, a: Any, b: Any) -> bool:
        """Whether two arrays may have memory in common."""

    @abstractmethod
    def memory(self, index: int) -> tuple[int, int]:
        """(free, total) bytes."""

    @abstractmethod
    def empty_cache(self, index: int) -> None:
        """Give reserved memory back."""

    # -- copies of contiguous arrays of one dtype and size, on a stream; who calls keeps both until it is done
    @abstractmethod
    def upload(self, a: Host, dst: Any, stream: Any) -> None:
        """From the host; memory that is not pinned has been read when this returns."""

    @abstractmethod
    def download(self, a: Any, dst: Host, stream: Any) -> None:
        """To the host; memory that is not pinned has been written when this returns."""

    @abstractmethod
    def move(self, a: Any, dst: Any, stream: Any) -> None:
        """Between arrays of this or of two devices."""

    @abstractmethod
    def fill(self, a: Any, value: int) -> None:
        """Fill an array of its own memory, of at most 4 bytes an element, with a number, on the compute stream."""

    # -- streams and events
    @abstractmethod
    def stream(self, index: int, which: str = "compute") -> Any:
        """A stream of a device."""

    @abstractmethod
    def record(self, stream: Any, timed: bool = False) -> Any:
        """An event: reached when all that was launched on a stream before is done."""

    @abstractmethod
    def wait(self, stream: Any, event: Any) -> None:
        """Let what is launched on a stream from now on wait for an event."""

    @abstractmethod
    def reached(self, event: Any) -> bool:
        """Whether an event is reached."""

    @abstractmethod
    def finish(self, event: Any) -> None:
        """Block until an event is reached; raise what failed before it."""

    @abstractmethod
    def elapsed(self, begin: Any, end: Any) -> float:
        """Seconds between two timed events."""

    @abstractmethod
    def synchronize(self, index: int) -> None:
        """Block until all streams of a device are done; raise what failed."""

    # -- graphs
    @abstractmethod
    def capturing(self) -> bool:
        """Whether this thread captures: libraries then launch on the stream ``'capture'``."""

    @abstractmethod
    def begin_capture(self, index: int) -> None:
        """Record what this thread launches on a device from now on, without doing it; what waits is an error."""

    @abstractmethod
    def end_capture(self, index: int) -> Body:
        """What was recorded; RuntimeError if something refused to be, but the capture has ended then, too."""

    @abstractmethod
    def graph(
        self, index: int, takes: Sequence[Any], body: Body, gives: Sequence[Any], opening: Opening | None = None
    ) -> Any:
        """A graph: copies into the arrays `takes` and its opening, the body, copies out of the arrays `gives`."""

    @abstractmethod
    def launch_graph(self, graph: Any, sources: Sequence[Any], targets: Sequence[Any]) -> None:
        """Launch a graph on its compute stream, which copies from `sources` first and to `targets` at last."""

    # -- libraries
    @abstractmethod
    def cublas(self) -> Any:
        """The library of cuBLAS, for `ctypes`."""

    @abstractmethod
    def cudnn(self) -> Any:
        """The library of cuDNN, for `ctypes`; None where there is none."""

    @abstractmethod
    def nccl(self) -> Any:
        """The library of NCCL, for `ctypes`; None where there is none."""

    @abstractmethod
    def pointer_of(self, stream: Any) -> Any:
        """A stream as libraries take it."""

    @abstractmethod
    def enqueue(self, stream: Any, call: Callable[[], None]) -> None:
        """Make a library's call, which launches on a stream."""

    @abstractmethod
    def enqueue_together(self, streams: Sequence[Any], call: Callable[[], None]) -> None:
        """Make a library's calls, which launch on several streams what waits for each other."""

    # -- kernels
    @abstractmethod
    def function(self, code: Code, name: str, index: int) -> Any:
        """A kernel of a source, compiled for a device."""

    @abstractmethod
    def prepare(self, code: Code, index: int) -> None:
        """Compile a source for a device, before one of its kernels is asked for."""

    @abstractmethod
    def launch(
        self, function: Any, grid: Sequence[int], block: Sequence[int], shared: int, stream: Any, arguments: Any
    ) -> None:
        """Launch a kernel; `arguments` (:class:`mxcore_cuda.launching.Arguments`) may be used again at once."""
