"""What the emulation shows: races, barriers that are missing, memory that was given back, waits that are missing."""

import subprocess
import sys

import numpy as np
import pytest

import mxcore as mx
from mxcore.codecache import CodeCache, Places
from mxcore_cuda.emulation import compiler
from mxcore_cuda.launching import Kernel
from mxcore_cuda.sources import Code

SUM = """
#include "mx.cuh"
KERNEL(256) total(const T* x, T* y) {
    SHARED(A, part, [256]);
    part[threadIdx.x] = A(x[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    for (int h = blockDim.x / 2; h; h /= 2) {
        if (threadIdx.x < h) part[threadIdx.x] += part[threadIdx.x + h];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = T(part[0]);
}
BLOCKS(total)
"""


@pytest.fixture(params=["forward", "backward", "shuffled"])
def order(request):
    """Every order of threads."""
    compiler.set_order(["forward", "backward", "shuffled"].index(request.param))
    yield request.param
    compiler.set_order(compiler.FORWARD)


def run(text, x, blocks, threads):
    kernel = Kernel(Code("mine.cu", text), "total", 0)
    a, y = mx.nd.array(x, ctx=mx.gpu(0)), mx.nd.zeros(blocks, ctx=mx.gpu(0))
    kernel.blocks(blocks, a._data, y._data, threads=threads)
    return y.asnumpy()


def test_barriers_and_shared_memory_work_in_every_order(gpus, order):
    x = np.random.default_rng(0).random(4 * 256, np.float32)
    np.testing.assert_allclose(run(SUM, x, 4, 256), x.reshape(4, 256).sum(1), rtol=1e-6)


@pytest.mark.parametrize("which", [0, 1])
def test_a_missing_barrier_shows_in_some_order(gpus, which):
    x = np.random.default_rng(0).random(256, np.float32)
    parts = SUM.split("__syncthreads();")
    broken = "__syncthreads();".join(parts[: which + 1]) + "__syncthreads();".join(["", *parts[which + 1 :]][1:])
    right = []
    for order in range(3):
        compiler.set_order(order)
        right.append(bool(np.allclose(run(broken, x, 1, 256), x.sum())))
    compiler.set_order(compiler.FORWARD)
    assert not all(right)


@pytest.mark.parametrize(
    "body, threads, said",
    [
        ("if (threadIdx.x % 2) __syncthreads(); else __syncwarp();", 64, "wait at different barriers"),
        ("SHARED(Chunk, m, [2]); copy_async((char*)m + 8, m, true);", 32, "not a multiple of 16"),
        ("SHARED(Chunk, m, [1]); for (int i = 0; i < 99; i++) copy_async(m, m, false);", 1, "nobody waits for"),
        ("SHARED(Chunk, m, [64]); u32 r[4]; load_matrices(r, m + threadIdx.x);", 48, "whole warps"),
        ("float d[4]; u32 a[4]; if (threadIdx.x) multiply_add<mx_half>(d, a, a);", 32, "whole warps"),
    ],
)
def test_what_threads_must_not_do_ends_the_process_with_a_word(body, threads, said):
    program = f"""
import os
os.environ["MXCORE_CUDA_EMULATE"] = "1"
from mxcore_cuda.emulation import compiler
from mxcore_cuda.sources import Code
import ctypes
text = '''#include "tensor.cuh"
KERNEL(64) f(int n) {{ {body} }}
BLOCKS(f)'''
f = compiler.Function(Code("mine.cu", text, "float16"), "f")
n = ctypes.c_int(1)
three = ctypes.c_uint * 3
f.call(three(1, 1, 1), three({threads}, 1, 1), 0, (ctypes.c_void_p * 1)(ctypes.addressof(n)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode and "block (0, 0, 0)" in done.stderr and said in done.stderr


def test_memory_that_was_given_back_is_not_written_to(gpus):
    kernel = Kernel(Code("mine.cu", SUM), "total", 0)
    x, y = mx.nd.ones(256, ctx=mx.gpu(0)), mx.nd.zeros(1, ctx=mx.gpu(0))
    packed = kernel.arguments([x._data, y._data])
    mx.gpu(0).device.synchronize(0)
    del y
    mx.gpu(0).device.synchronize(0)
    x.context.device.driver.launch(kernel.function, (1, 1, 1), (256, 1, 1), 0, kernel.stream, packed)
    with pytest.raises(RuntimeError, match="IllegalAddress.*argument y"):
        kernel.stream.run()


def test_a_launch_on_memory_of_another_device_is_refused(gpus):
    kernel = Kernel(Code("mine.cu", SUM), "total", 0)
    kernel.blocks(1, mx.nd.ones(256, ctx=mx.gpu(1))._data, mx.nd.zeros(1, ctx=mx.gpu(0))._data)
    with pytest.raises(RuntimeError, match=r"argument x does not point to memory of gpu\(0\)"):
        kernel.stream.run()


def test_what_another_machine_compiled_is_compiled_anew(gpus, tmp_path, monkeypatch):
    """Whole, as its digest says, and yet nothing that can be loaded here."""
    cache = CodeCache("emulated", list)
    monkeypatch.setattr(cache, "places", Places((tmp_path,), tmp_path))
    monkeypatch.setattr(compiler, "CODE", cache)
    x = np.arange(256, dtype="float32")
    assert run(SUM + "// elsewhere", x, 1, 256) == x.sum()
    [entry] = tmp_path.iterdir()
    cache.save(entry.name, b"of another processor")
    monkeypatch.setattr(compiler, "_loaded", {})
    assert run(SUM + "// elsewhere", x, 1, 256) == x.sum()
    assert cache.load(entry.name)[:4] == b"\x7fELF"


def test_a_compiler_that_is_none_is_named(gpus, monkeypatch):
    monkeypatch.setattr(compiler, "available", lambda: "/bin/false")
    compiler._version.cache_clear()
    try:
        with pytest.raises(RuntimeError, match="need g.. .*and /bin/false is none"):
            run(SUM + "// nothing", np.ones(256), 1, 256)
    finally:
        compiler._version.cache_clear()
