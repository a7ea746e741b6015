"""The host's share of an eager call on a GPU, beside the CPU's whole call."""

from __future__ import annotations

import importlib.metadata
import shutil

import pytest

from mxcore.testing.table import seconds

from .child import child


def test_add_with_an_empty_launch(row, few):
    try:
        importlib.metadata.distribution("mxcore-cuda")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("mxcore-cuda is not installed")
    if shutil.which("g++") is None:
        pytest.skip("emulated kernels need g++, which is not there")
    rounds = few(30)
    cpu, gpu = child("eager_gpu", f"seconds_of_adding(2000, {rounds})", MXCORE_CUDA_EMULATE="1")
    row("a + b on gpu(0), empty launch", seconds=gpu, against=f"cpu(0) {seconds(cpu)}", ratio=gpu / cpu, at_most=2)
