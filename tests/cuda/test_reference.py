"""docs/cuda_operators.md, the list of what runs over CuPy, is what the samples of the operators show."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mxcore_cuda.emulation import arrays, compiler

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.skipif(compiler.available() is None, reason="emulated kernels need g++, which is not there")
def test_the_list_is_fresh():
    command = [sys.executable, "tools/make_cuda_reference.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"run tools/make_cuda_reference.py; stale: {done.stdout}{done.stderr}"


@pytest.mark.parametrize(
    "call, what",
    [
        (lambda xp, a: xp.exp(a) + a.sum(), set()),
        (lambda xp, a: xp.linalg.norm(a), set()),
        (lambda xp, a: a @ a, {"cuBLAS"}),
        (lambda xp, a: xp.linalg.inv(xp.matmul(a, a)), {"cuBLAS", "cuSOLVER"}),
        (lambda xp, a: xp.fft.fft(a), {"cuFFT"}),
        (lambda xp, a: a.sum().item(), {"waits"}),
        (lambda xp, a: bool(a[0, 0] > 0), {"waits"}),
        (lambda xp, a: xp.nonzero(a), {"waits"}),
        (lambda xp, a: a[a > 0], {"waits"}),
        (lambda xp, a: a.get(), {"waits"}),
    ],
)
def test_what_a_call_needs(gpus, call, what):
    xp = gpus[0].device.xp
    a = xp.asarray(np.eye(3, dtype="float32"))
    with arrays.needs() as found:
        call(xp, a)
    assert found == what
    call(xp, a)
    assert found == what  # outside, nothing is noted
