"""The host's share of an eager call on a GPU, beside the CPU's whole call; what it costs to ask for a GPU."""

from __future__ import annotations

import importlib.metadata
import shutil

import pytest

from mxcore.testing.table import seconds

from .child import child


@pytest.fixture
def plugin():
    try:
        importlib.metadata.distribution("mxcore-cuda")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("mxcore-cuda is not installed")


def test_add_with_an_empty_launch(row, few, plugin):
    if shutil.which("g++") is None:
        pytest.skip("emulated kernels need g++, which is not there")
    rounds = few(30)
    cpu, gpu = child("eager_gpu", f"seconds_of_adding(2000, {rounds})", MXCORE_CUDA_EMULATE="1")
    row("a + b on gpu(0), empty launch", seconds=gpu, against=f"cpu(0) {seconds(cpu)}", ratio=gpu / cpu, at_most=2)


def test_probe(row, few, plugin):
    """Of some processes the fastest; where there is a driver, CuPy is looked for as well."""
    without = {"MXCORE_CUDA_EMULATE": "0", "CUDA_VISIBLE_DEVICES": "0"}
    for name, driver, most in (("no driver", False, 1), ("a driver", True, None)):
        took = min(child("probing", f"seconds_of_probing({driver})", **without) for _ in range(few(5)))
        row(f"may there be a GPU? {name}", seconds=took, against="1 ms", ratio=took / 1e-3, at_most=most)
