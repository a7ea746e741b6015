"""What it has to do with others: arrays of PyTorch and CuPy, users' kernels, NVIDIA's profilers."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mxcore as mx

from . import Report
from .plugin import gpu, torch

__all__ = ["dlpack", "profiler", "rtc"]

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for the cases of tests/cuda

DTYPES = "float16", "float32", "float64", "int32", "int64", "uint8"


class Library(NamedTuple):
    """Another library of arrays: how it takes one, shows it to the host and fills it, and a stream of its own."""

    name: str
    take: Callable[[Any], Any]
    show: Callable[[Any], Any]
    stream: Callable[[], Any]
    wait: Callable[[], Any]


def _libraries(emulate: bool) -> Iterator[Library]:
    if emulate:
        xp = gpu().device.xp
        yield Library("the emulation", xp.from_dlpack, lambda a: a.get(), nullcontext, mx.nd.waitall)
        return
    import cupy

    current = cupy.cuda.get_current_stream
    yield Library(
        "CuPy",
        cupy.from_dlpack,
        cupy.asnumpy,
        lambda: cupy.cuda.Stream(non_blocking=True),
        lambda: current().synchronize(),
    )
    their = torch()
    if their is not None:
        yield Library(
            "PyTorch",
            their.from_dlpack,
            lambda a: a.cpu().numpy(),
            lambda: their.cuda.stream(their.cuda.Stream()),
            lambda: their.cuda.current_stream().synchronize(),
        )


def dlpack(report: Report) -> None:
    """Memory is shared both ways, and what was launched before is done before."""
    ctx = gpu()
    n = 1000 if report.emulate else 2**24
    names = []
    for library in _libraries(report.emulate):
        names.append(library.name)
        for dtype in DTYPES:
            x = mx.nd.arange(n, ctx=ctx).astype("int32") % 100
            for _ in range(10):
                x = x + 1  # launched only
            x = x.astype(dtype)
            wanted = (np.arange(n) % 100 + 10).astype(dtype)
            with library.stream():
                theirs = library.take(x)
                doubled = theirs + theirs
                library.wait()
                report.check(f"{library.name} waits for ours, {dtype}", _same(library.show(doubled), wanted + wanted))
            x[:] = 7
            mx.nd.waitall()
            report.check(f"{library.name} sees what is written, {dtype}", _same(library.show(theirs), 7))
            ours = mx.nd.from_dlpack(theirs)
            holds = ours.context == ctx and ours.dtype == np.dtype(dtype)
            ours[:] = 9
            mx.nd.waitall()
            report.check(
                f"ours of {library.name} shares memory, {dtype}",
                holds and _same(library.show(theirs), 9) and _same(x.asnumpy(), 9),
            )
    if "PyTorch" not in names:
        report.tell("PyTorch", "rehearsed" if report.emulate else "skipped", note="it is not there, or has no GPU")


def _same(found: Any, wanted: Any) -> bool:
    return bool((np.asarray(found) == wanted).all())


def rtc(report: Report) -> None:
    """Users' kernels: text, templates, what blocks share, and an error of the compiler."""
    from tests.cuda import test_rtc as cases

    gpus = (gpu(),)
    cases.test_a_kernel_runs_where_it_is_told_to(gpus)
    report.check("a kernel in the order of everything else", True)
    for dtype, name in (("float32", "float"), ("float64", "double"), ("int8", "char")):
        cases.test_templates_are_exported(gpus, dtype, name)
    report.check("templates of three dtypes", True)
    x, y = mx.nd.ones((1000,), ctx=gpus[0]), mx.nd.zeros((1,), ctx=gpus[0])
    total = mx.rtc.CudaModule(cases.SUM).get_kernel("total", "const float *x, float *y, int n")
    total.launch([x, y, 1000], gpus[0], (8, 1, 1), (128, 1, 1), 512)
    report.check("barriers, shuffles and atomics", y.asscalar() == 1000, f"{y.asscalar()}, wanted 1000")
    try:
        mx.rtc.CudaModule('extern "C" __global__ void wrong() {\n nowhere; }').get_kernel("wrong", "").launch(
            [], gpus[0], (1, 1, 1), (1, 1, 1)
        )
    except mx.MXNetError as e:
        report.check("an error of the compiler names its line", "nowhere" in str(e), str(e)[:300])
    else:
        report.check("there is an error", False)


class _Ranges:
    """NVTX's ranges, and the names that were given to it."""

    def __init__(self, nvtx: Any) -> None:
        self.nvtx, self.seen, self.open = nvtx, list[str](), 0

    def RangePush(self, text: str) -> None:
        self.seen.append(text)
        self.open += 1
        if self.nvtx is not None:
            self.nvtx.RangePush(text)

    def RangePop(self) -> None:
        self.open -= 1
        if self.nvtx is not None:
            self.nvtx.RangePop()


@contextmanager
def _ranges(emulate: bool) -> Iterator[_Ranges]:
    """Ranges of NVTX while inside."""
    from mxcore_cuda import nvtx

    made, before = _Ranges(None if emulate else nvtx._ranges()), nvtx._ranges
    nvtx._ranges = lambda: made
    os.environ["MXCORE_NVTX"] = "1"
    nvtx.start()
    try:
        yield made
    finally:
        nvtx.stop()
        nvtx._ranges = before
        del os.environ["MXCORE_NVTX"]


def profiler(report: Report) -> None:
    """Times of operators are the GPU's: products one after the other take as long as somebody waits for all of them."""
    n, many = (32, 3) if report.emulate else (4096, 20)
    a, b = (mx.nd.random.uniform(shape=(n, n), ctx=gpu()) for _ in range(2))
    mx.nd.dot(a, b).wait_to_read()
    mx.nd.waitall()
    with tempfile.TemporaryDirectory() as folder, _ranges(report.emulate) as ranges:
        file = Path(folder, "profile.json")
        mx.profiler.set_config(profile_imperative=True, filename=str(file))
        mx.profiler.set_state("run")
        start = time.perf_counter()
        for _ in range(many):
            mx.nd.dot(a, b)
        mx.nd.waitall()
        whole = time.perf_counter() - start
        mx.profiler.set_state("stop")
        mx.profiler.dump()
        events = [e for e in json.loads(file.read_text())["traceEvents"] if e.get("ph") == "X" and e["name"] == "dot"]
    report.check("each call has its time", len(events) == many, f"{len(events)} of {many}")
    share = sum(e["dur"] for e in events) * 1e-6 / whole
    report.measured("times of products", share, "of the time until all are done", "0.8 to 1.02", 0.8 <= share <= 1.02)
    holds = ranges.seen.count("dot") == many and not ranges.open
    report.check("each call has a range of NVTX", holds, f"{len(ranges.seen)} ranges, {ranges.open} left open")
