"""All kernels under g++'s address and undefined-behaviour sanitizers, with nothing behind the arrays."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import sys
from mxcore_cuda.emulation import compiler, memory
memory.ALIGNMENT = 1
compiler.OPTIONS += "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1".split()
import mxcore as mx, mxcore_cuda
from mxcore._core.manager import manager
manager.load()
if "cuda" not in manager.origin:
    manager.register(mxcore_cuda, "cuda")
"""
ALL = """
from tests.cuda.beside import BESIDE
from tests.cuda.test_fused import ALONE, SHARED, reduces
from tests.cuda.test_kernels import CASES, compare
from tests.cuda.test_random import DRAWS, drawn
assert reduces(SHARED) and reduces(ALONE)
for dtype in ("float32", "float16", "float64"):
    for i in range(len(CASES)):
        compare(i, dtype)
    for draw in DRAWS:
        drawn(draw, mx.gpu(0), dtype)
    for compared in BESIDE.values():
        compared(dtype)
print("all")
"""
ANYWHERE = """
x, w = (mx.nd.ones(s, ctx=mx.gpu(0), dtype="float16") for s in ((2, 16, 4, 8), (16, 16, 3, 3)))
for at in range(9):
    y = mx.nd.zeros(at + x.size, ctx=mx.gpu(0), dtype="float16")[at:].reshape(x.shape)
    mx.nd.Convolution(x, w, kernel=(3, 3), num_filter=16, pad=(1, 1), no_bias=True, out=y)
    assert y[1, 2, 1, 1].asscalar() == 144
print("all")
"""
BROKEN = """
from mxcore_cuda.launching import Kernel
from mxcore_cuda.sources import Code
text = '''#include "mx.cuh"
KERNEL(32) shift(const T* x, T* y, i64 n) { FOR_EACH(i, n) y[i] = x[i + 1]; }
EACH(shift)'''
x, y = mx.nd.ones(8, ctx=mx.gpu(0)), mx.nd.zeros(8, ctx=mx.gpu(0))
Kernel(Code("mine.cu", text), "shift", 0).each(8, x._data, y._data, 8)
mx.nd.waitall()
"""


def run(program):
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    found = compiler and subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True)
    library = found and found.stdout.strip()
    if not library or not Path(library).is_absolute():
        pytest.skip("g++ has no address sanitizer here")
    env = {
        **os.environ,
        "MXCORE_CUDA_EMULATE": "1",
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
        "PYTHONPATH": os.pathsep.join(p for p in (str(Path(__file__).parents[2]), *sys.path) if p),
    }
    return subprocess.run([sys.executable, "-c", BEGIN + program], env=env, capture_output=True, text=True, timeout=900)


@pytest.mark.slow
def test_no_kernel_leaves_its_arrays():
    done = run(ALL)
    assert done.stdout.strip().endswith("all"), done.stderr[-3000:]


@pytest.mark.slow
def test_outputs_may_begin_anywhere():
    done = run(ANYWHERE)
    assert done.stdout.strip() == "all", done.stderr[-3000:]


@pytest.mark.slow
def test_one_that_does_is_found_out():
    done = run(BROKEN)
    assert done.returncode and "heap-buffer-overflow" in done.stderr and "kernels.cu:2" in done.stderr
