"""A kernel that fails takes its GPU with it: the error says so once in full, and then at every call."""

import pytest

from mxcore.base import MXNetError
from mxcore_cuda.faults import Faults

from .test_device import child

#: A kernel that writes to memory of the other device, launched by an operator's body.
BROKEN = '''
from mxcore.plugin import KernelSet, hookimpl, op
from mxcore_cuda.launching import Kernel
from mxcore_cuda.sources import Code
TEXT = """#include "mx.cuh"
KERNEL(32) stray(T* y, i64 n) { FOR_EACH(i, n) y[i] = 1; }
EACH(stray)"""
other = mx.nd.zeros(8, ctx=mx.gpu(1))

class Plugin:
    API_VERSION = 1

    @hookimpl
    def mxcore_ops(self):
        @op("stray")
        def stray(k, p, data):
            """Write elsewhere."""
            y = k.xp.zeros_like(data)
            Kernel(Code("mine.cu", TEXT), "stray", 0).each(8, other._data, 8)
            return y
        return [stray]

manager.register(Plugin(), "stray")

def said(f):
    try:
        f()
    except mx.MXNetError as e:
        return str(e)
    return "nothing"

x = mx.nd.ones(8, ctx=mx.gpu(0))
x.wait_to_read()
'''
LOST = "cannot be used any more"


def told(lines, **environment):
    return child(BROKEN + lines, MXCORE_CUDA_EMULATE="2", **environment)


@pytest.mark.parametrize("wait", ["y.asnumpy()", "y.wait_to_read()", "mx.nd.waitall()", "mx.nd.argsort(y).asnumpy()"])
def test_the_error_says_what_happened_and_what_to_do(wait):
    found = told(f"y = mx.nd.stray(x) + 1\nprint(said(lambda: {wait}))")
    assert "must not (cudaErrorIllegalAddress" in found and "launched earlier" in found
    assert "MXNET_ENGINE_TYPE=NaiveEngine" in found and "start it again" in found


def test_the_naive_engine_names_the_operator():
    found = told("print(said(lambda: mx.nd.stray(x)))", MXNET_ENGINE_TYPE="NaiveEngine")
    assert found.startswith("operator stray") and "cudaErrorIllegalAddress" in found


CALLS = """
mx.nd.ones(3, ctx=mx.gpu(0))
x + 1
x.asnumpy()
x.sum().asscalar()
x.as_in_context(mx.gpu(1))
x.copyto(mx.cpu())
mx.nd.array([1], ctx=mx.gpu(0))
mx.nd.waitall()
mx.context.gpu_memory_info(0)
mx.gpu(0).empty_cache()
mx.nd.save('never', x)
x.__setitem__(0, 3)
"""


def test_afterwards_every_call_says_so():
    lines = f"y = mx.nd.stray(x)\nsaid(mx.nd.waitall)\ncalls = {CALLS.strip().splitlines()!r}\n"
    lines += "found = {c: said(lambda: eval(c)) for c in calls}\n"
    whole = [LOST, "start this process again", "cudaErrorIllegalAddress"]
    assert told(lines + f"print([c for c in calls if not all(t in found[c] for t in {whole})])") == "[]"


def test_the_cpu_computes_on_and_the_process_ends_by_itself():
    assert told("y = mx.nd.stray(x)\nsaid(mx.nd.waitall)\nprint((mx.nd.ones(3) * 2).sum().asscalar())") == "6.0"


@pytest.mark.parametrize("status, lost", [(700, True), (719, True), (2, False), (1, False), (98, False)])
def test_which_statuses_are_final(status, lost):
    faults = Faults()
    found = faults.told(status, "cudaErrorSomething: something")
    assert isinstance(found, MXNetError) is lost is (faults.lost is not None)
    if lost:
        assert "start it again" in str(found) and "cudaErrorSomething" in str(found)
        with pytest.raises(RuntimeError, match=LOST):
            faults.check()
    else:
        faults.check()


def made(cupy, monkeypatch, allocate=None):
    """A driver over CuPy's functions; how CuPy allocates is as it was after the test."""
    from mxcore_cuda.cupy_driver import CupyDriver

    taken = []
    monkeypatch.setattr(cupy.cuda, "get_allocator", lambda: allocate)
    monkeypatch.setattr(cupy.cuda, "set_allocator", taken.append)
    driver = CupyDriver()
    assert taken == [driver._allocate]
    return driver


@pytest.mark.libraries
@pytest.mark.parametrize("wanted", [1, 2])
def test_cupy_allocates_again_when_room_was_made(monkeypatch, wanted):
    cupy = pytest.importorskip("cupy")
    happened = []

    def allocate(size):
        happened.append(size)
        if happened.count(size) <= wanted:
            raise cupy.cuda.memory.OutOfMemoryError(size, 0, 0)
        return "memory"

    driver = made(cupy, monkeypatch, allocate)
    monkeypatch.setattr(driver, "active", lambda: 3)
    driver.make_room = lambda index: happened.append(f"room on {index}")
    if wanted == 1:
        assert driver._allocate(100) == "memory"
    else:
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
            driver._allocate(100)
    assert happened == [100, "room on 3", 100]


@pytest.mark.libraries
def test_what_cupy_raises_is_explained(monkeypatch):
    cupy = pytest.importorskip("cupy")
    from mxcore._core import errors

    monkeypatch.setattr(errors, "_EXPLANATIONS", {})
    driver = made(cupy, monkeypatch)
    assert errors.explained(cupy.cuda.runtime.CUDARuntimeError(35)).status == 35
    first = errors.explained(cupy.cuda.runtime.CUDARuntimeError(700))
    assert isinstance(first, MXNetError) and "cudaErrorIllegalAddress" in str(first) and "NaiveEngine" in str(first)
    again = driver.meaning(cupy.cuda.runtime.CUDARuntimeError(719))
    assert isinstance(again, MXNetError) and str(again).startswith("the GPU cannot be used any more")
    assert "cudaErrorIllegalAddress" in driver.faults.lost
    monkeypatch.setattr(driver, "memory", lambda index: (5, 9))
    monkeypatch.setattr("mxcore_cuda.cupy_driver.runtime.getDevice", lambda: 1)
    full = errors.explained(cupy.cuda.memory.OutOfMemoryError(100, 5, 9))
    assert isinstance(full, MemoryError) and "gpu(1) has no room" in str(full) and "5 of 9 bytes" in str(full)
