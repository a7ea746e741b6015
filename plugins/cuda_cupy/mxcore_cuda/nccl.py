"""NCCL by its C interface, where it is found: communicators of GPUs, and groups of sums and copies over them."""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mxcore.plugin import Clerk, error

from .drivers import driver

__all__ = ["Clique", "Step", "adds", "clique", "close", "describe", "need", "version"]

_TYPES = {
    "int8": 0,
    "uint8": 1,
    "int32": 2,
    "uint32": 3,
    "int64": 4,
    "uint64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
}
_SUM = 0
_INSTALL = "pip install 'mxcore-cuda[nccl13]' (or [nccl12])"
#: Status -> what to do.
_ADVICE = {1: "an earlier kernel may have failed"}
#: A group of calls is one thread's: communicators take one at a time, in one order on all GPUs. A signal's handler amid
#: it would wait for the group.
_clerk = Clerk("mxcore-nccl")


@cache
def _type(dtype: Any) -> int | None:
    return _TYPES.get(str(np.dtype(dtype)))


def adds(dtype: Any) -> bool:
    """Whether NCCL adds up numbers of a dtype."""
    return _type(dtype) is not None


@cache
def library() -> Any:
    """The library; None where there is none."""
    found = driver().nccl()
    if found is not None:
        found.ncclGetErrorString.restype = found.ncclGetLastError.restype = ctypes.c_char_p
    return found


def need() -> None:
    """Refuse to go on without the library.

    Raises
    ------
    MXNetError
        (also RuntimeError) saying what to install.
    """
    if library() is None:
        raise error(
            RuntimeError,
            f"kvstore 'nccl' needs NCCL, which is not there: {_INSTALL}; kvstore 'device' does the same without it",
        )


def version() -> int:
    """Of the library: 22907 is 2.29.7."""
    n = ctypes.c_int()
    call("ncclGetVersion", ctypes.byref(n))
    return n.value


def describe() -> str:
    """A line for ``mxcore info``."""
    if library() is None:
        return f"no NCCL for kvstore 'nccl': {_INSTALL}"
    n = version()
    return f"NCCL {n // 10000}.{n // 100 % 100}.{n % 100} for kvstore 'nccl'"


def call(name: str, *arguments: Any) -> None:
    """Call a function of the library's.

    Raises
    ------
    MXNetError
        (also RuntimeError) with what it says.
    """
    found = library()
    status = getattr(found, name)(*arguments)
    if status:
        what = f"{name}: {_text(found.ncclGetErrorString(status))} ({status})"
        raise error(
            RuntimeError, "; ".join(filter(None, (what, _text(found.ncclGetLastError(None)), _ADVICE.get(status))))
        )


def _text(said: bytes | None) -> str:
    return " ".join((said or b"").decode(errors="replace").split())


class Step(NamedTuple):
    """A call for all GPUs of a clique.

    Attributes
    ----------
    sources, targets : sequence of array
        What each GPU gives, and where it gets the result, in the order of the clique; dense, of one dtype and size.
        None where a GPU has no part in it.
    name : str
        Of NCCL's function: ``'AllReduce'``, ``'Reduce'`` or ``'Broadcast'``.
    root : int
        The GPU, by its place in the clique, that gets the sum or has the value.
    """

    sources: Sequence[Any]
    targets: Sequence[Any]
    name: str = "AllReduce"
    root: int = 0


class Clique:
    """Communicators of some GPUs of this process, one for each.

    Parameters
    ----------
    devices : sequence of int
        Their numbers, each once.

    Raises
    ------
    MXNetError
        (also RuntimeError) with what NCCL says.
    """

    def __init__(self, devices: Sequence[int]) -> None:
        self.devices = tuple(devices)
        self.communicators = (ctypes.c_void_p * len(devices))()
        self._streams = [driver().stream(index) for index in devices]
        self._process = os.getpid()
        numbers = (ctypes.c_int * len(devices))(*devices)
        _clerk.do(call, "ncclCommInitAll", self.communicators, len(devices), numbers)

    def run(self, steps: Sequence[Step]) -> None:
        """Launch steps on the compute streams of all GPUs, as one group.

        Raises
        ------
        MXNetError
            (also RuntimeError) with what NCCL says, or in a process forked after the first use of a GPU.
        """
        d = driver()
        d.faults.check()
        calls = [made for step in steps for made in self._calls(d, step)]
        d.enqueue_together(self._streams, lambda: _clerk.do(_grouped, calls))

    def _calls(self, d: Any, step: Step) -> list[tuple[Any, ...]]:
        given = next(a for a in (*step.sources, *step.targets) if a is not None)
        root = () if step.name == "AllReduce" else (ctypes.c_int(step.root),)
        sums = () if step.name == "Broadcast" else (ctypes.c_int(_SUM),)
        what = ctypes.c_size_t(given.size), ctypes.c_int(_type(given.dtype) or 0), *sums, *root
        return [
            (
                f"nccl{step.name}",
                *(ctypes.c_void_p(None if a is None else d.address(a)) for a in (source, target)),
                *what,
                ctypes.c_void_p(communicator),
                d.pointer_of(stream),
            )
            for source, target, communicator, stream in zip(
                step.sources, step.targets, self.communicators, self._streams, strict=True
            )
        ]

    def close(self) -> None:
        """Give the communicators back, once what they have to do is done; a forked process has none."""
        if self._process == os.getpid():
            for index in self.devices:
                driver().synchronize(index)
            for communicator in self.communicators:
                _clerk.do(call, "ncclCommDestroy", ctypes.c_void_p(communicator))


def _grouped(calls: Sequence[tuple[Any, ...]]) -> None:
    call("ncclGroupStart")
    try:
        for made in calls:
            call(*made)
    except BaseException:
        library().ncclGroupEnd()  # which says the same once more
        raise
    call("ncclGroupEnd")


#: GPUs -> what they have together; made at first use.
_cliques: dict[tuple[int, ...], Clique] = {}


def clique(devices: tuple[int, ...]) -> Clique:
    """The communicators of some GPUs, for the life of the process."""
    found = _cliques.get(devices)
    if found is None:
        need()
        driver().faults.check()
        found = _cliques.setdefault(devices, Clique(devices))
    return found


def close() -> None:
    """Give all communicators back."""
    while _cliques:
        _cliques.popitem()[1].close()


@atexit.register
def _end() -> None:
    try:
        close()
    except Exception:  # a GPU that is lost is nobody's concern any more
        _cliques.clear()
