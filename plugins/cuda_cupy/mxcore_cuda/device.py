"""Device 'gpu': streams, copies and memory as mxcore wants them, over the driver."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mxcore.plugin import Device, Fused, error

from . import probe
from .driver import Driver
from .drivers import driver
from .dtypes import IN_C
from .faults import no_room
from .fused import Compiled, compile_chain
from .graphs import Captured, capture
from .ordered import Namespace
from .repeated import repeated
from .rng import Philox
from .sums import sum_each, summed

__all__ = ["GPU"]

#: Of what copies have read, how much is looked at behind each.
_AT_ONCE = 32


class GPU(Device):
    """NVIDIA's GPUs: one compute stream for each, and one each way for copies."""

    type = "gpu"
    type_id = 2
    async_ = True
    pins = True
    transfers = True
    #: Dtypes that chains may mix.
    fused_dtypes = frozenset(IN_C)
    numbers = Philox

    def __init__(self) -> None:
        # A signal's handler may copy amid a copy: each step leaves all whole, and finds what there is.
        self._kept: dict[int, tuple[Any, Any]] = {}
        self._count = itertools.count()

    @cached_property
    def driver(self) -> Driver:
        """The driver, at first use of a GPU; its process cannot be forked from then on."""
        if not probe.count():
            raise error(RuntimeError, f"no GPU: {probe.why()}")
        found = driver()
        found.make_room = self.empty_cache
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=found.faults.forked)
        return found

    @property
    def _driver(self) -> Driver:
        found = self.driver
        if found.faults.refusal is not None:
            found.faults.check()
        return found

    @cached_property
    def xp(self) -> Any:
        return Namespace(self)

    @cached_property
    def array_type(self) -> Any:
        return self.driver.array_type

    def count(self) -> int:
        return probe.count()

    def absence(self) -> str:
        return probe.why() or "there is none"

    def activate(self, index: int) -> None:
        self._driver.activate(index)

    # -- memory ------------------------------------------------------------------------------------------------------
    def empty(self, shape: tuple[int, ...], dtype: Any, index: int) -> Any:
        d = self._driver
        try:
            return d.empty(shape, dtype, index)
        except MemoryError:
            size = math.prod(shape) * np.dtype(dtype).itemsize
            raise no_room(size, index, d.memory(index), f" ({np.dtype(dtype)} {tuple(shape)})") from None

    def full(self, shape: tuple[int, ...], value: float, dtype: Any, index: int) -> Any:
        a = self.empty(shape, dtype, index)
        self.activate(index)
        if value == 1 and a.dtype.itemsize <= 4:
            self._driver.fill(a, 1)  # the head of every backward: it takes a third of the assignment's time
        else:
            a[...] = value
        return a

    def empty_pinned(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        return self._driver.pinned(shape, dtype)

    def memory(self, index: int) -> tuple[int, int]:
        return self._driver.memory(index)

    def empty_cache(self, index: int) -> None:
        self._driver.synchronize(index)
        self._let_go()
        repeated.clear()
        self._driver.empty_cache(index)

    def shares(self, a: Any, b: Any) -> bool:
        return a is b or self._driver.shares(a, b)

    def owns(self, a: Any) -> bool:
        return a.base is None and bool(a.flags.c_contiguous)

    def writable(self, a: Any) -> bool:
        return True

    # -- copies ------------------------------------------------------------------------------------------------------
    def to_host(self, a: Any) -> np.ndarray[Any, Any]:
        index = self._driver.index_of(a)
        dst = np.empty(a.shape, a.dtype)
        if dst.size:
            self.activate(index)
            self._driver.download(self.xp.ascontiguousarray(a), dst, self._driver.stream(index))
        return dst

    def from_host(self, a: np.ndarray[Any, Any], index: int) -> Any:
        a = np.ascontiguousarray(a).reshape(np.shape(a))
        dst = self.empty(a.shape, a.dtype, index)
        if a.size:
            self.activate(index)
            self._driver.upload(a, dst, self._driver.stream(index))
            self._keep(self._driver.stream(index), a)
        return dst

    def copy(self, a: Any, dst: Any) -> None:
        here, there = self._driver.index_of(a), self._driver.index_of(dst)
        if here == there:
            dst[...] = a
            return
        stream = self._driver.stream(there)
        if not a.flags.c_contiguous:
            self.activate(here)
            a = self.xp.ascontiguousarray(a)
            self._driver.wait(stream, self._driver.record(self._driver.stream(here)))
            self.activate(there)
        plain = a.dtype == dst.dtype and dst.flags.c_contiguous
        near = dst if plain else self.empty(a.shape, a.dtype, there)
        self._driver.move(a, near, stream)
        self._keep(stream, a)
        if near is not dst:
            dst[...] = near

    def copy_each(self, arrays: Sequence[Any], outs: Sequence[Any]) -> None:
        pairs = [(a, out) for a, out in zip(arrays, outs) if a is not out]
        alike = [pair for pair in pairs if summed(pair[1], pair[:1])]
        if len(alike) > 1:
            here, there = map(self._driver.index_of, alike[0])
            if here == there:
                sum_each(there, ((out, (a,)) for a, out in alike))
            else:
                stream = self._driver.stream(there)
                for a, out in alike:
                    if a.size:
                        self._driver.move(a, out, stream)
                self._keep(stream, [a for a, _ in alike])
            pairs = [pair for pair in pairs if not summed(pair[1], pair[:1])]
        for a, out in pairs:
            self.copy(a, out)

    def add_each(self, groups: Sequence[Sequence[Any]], outs: Sequence[Any]) -> None:
        alike: list[tuple[Any, Sequence[Any]]] = []
        others: list[tuple[Any, Sequence[Any]]] = []
        for parts, out in zip(groups, outs):
            (alike if summed(out, parts) else others).append((out, parts))
        if alike:
            sum_each(self._driver.index_of(alike[0][0]), alike)
        for out, (first, second, *rest) in others:
            total = first + second
            for a in rest:
                total += a
            out[...] = total

    def _keep(self, stream: Any, *what: Any) -> None:
        """Hold what a stream reads until it has done so: its memory would be used again by the stream that made it."""
        self._kept[next(self._count)] = self._driver.record(stream), what
        self._let_go()

    def _let_go(self) -> None:
        """Drop what has been read."""
        for n, (event, _) in [*itertools.islice(self._kept.items(), _AT_ONCE)]:
            if not self._driver.reached(event):
                break
            self._kept.pop(n, None)

    def send(self, a: np.ndarray[Any, Any], dst: Any) -> Any:
        return self._beside("incoming", dst, lambda stream: self._driver.upload(a, dst, stream), a, dst)

    def fetch(self, a: Any, dst: np.ndarray[Any, Any]) -> Any:
        return self._beside("outgoing", a, lambda stream: self._driver.download(a, dst, stream), a, dst)

    def _beside(self, which: str, a: Any, begin: Any, *keep: Any) -> Any:
        """Begin a copy on a stream of its own, behind what the compute stream has to do; returns its end's event."""
        index = self._driver.index_of(a)
        stream = self._driver.stream(index, which)
        # New memory, too, may still be used by what was launched before.
        self._driver.wait(stream, self._driver.record(self._driver.stream(index)))
        begin(stream)
        self._keep(stream, *keep)
        return self._driver.record(stream)

    # -- computing ---------------------------------------------------------------------------------------------------
    def compile_fused(self, chain: Fused) -> Compiled | None:
        return compile_chain(chain)

    def compile_source(self, source: str, options: Sequence[str], exports: Sequence[str], index: int) -> Any:
        from .user_kernels import compiled

        self.activate(index)
        return compiled(source, options, exports, index)

    @cached_property
    def captures(self) -> bool:
        return os.environ.get("MXNET_ENABLE_CUDA_GRAPHS", "1").strip() != "0"

    def capture(self, index: int, calls: Sequence[Callable[[], Any]]) -> tuple[Captured, int]:
        return capture(self._driver, index, calls)

    # -- queues ------------------------------------------------------------------------------------------------------
    def synchronize(self, index: int) -> None:
        self._driver.synchronize(index)

    def record(self, index: int) -> Any:
        return self._driver.record(self._driver.stream(index))

    def wait(self, index: int, event: Any) -> None:
        self._driver.wait(self._driver.stream(index), event)

    def finish(self, event: Any) -> None:
        self._driver.finish(event)

    def mark(self, index: int) -> Any:
        return self._driver.record(self._driver.stream(index), timed=True)

    def elapsed(self, begin: Any, end: Any) -> float:
        return self._driver.elapsed(begin, end)
