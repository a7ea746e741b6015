"""Libraries and compiled code that are missing, broken or cannot be written."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore_cuda import libraries
from mxcore_cuda.emulation import compiler
from mxcore_cuda.sources import Code

SOURCE = '#include "mx.cuh"\nKERNEL(32) fill_{}(T* y, i64 n) {{ FOR_EACH(i, n) y[i] = 2; }}\nEACH(fill_{})'


@pytest.mark.parametrize(
    "name, what", [("nvrtc", "NVRTC, which compiles kernels"), ("cublas", "cuBLAS, which multiplies")]
)
@pytest.mark.libraries
def test_a_missing_library_is_named_with_what_brings_it(monkeypatch, name, what):
    pathfinder = pytest.importorskip("cuda.pathfinder")

    def missing(asked):
        raise RuntimeError(f"no lib{asked}.so")

    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", missing)
    with pytest.raises(
        MXNetError, match=rf"{what}.* is not there: pip install 'mxcore-cuda\[cuda13\]'.*no lib{name}.so"
    ):
        libraries.library(name, what)


@pytest.mark.parametrize("name, file", [("cudnn", "libcudnn.so.9"), ("nccl", "libnccl.so.2")])
def test_what_need_not_be_there_is_of_a_package_or_the_system(monkeypatch, name, file):
    opened, find = [], getattr(libraries, name)

    def load(name):
        opened.append(name)
        if name in missing:
            raise OSError(name)
        return name

    monkeypatch.setattr(libraries.ctypes, "CDLL", load)
    pathfinder = ModuleType("cuda.pathfinder")
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", pathfinder)
    monkeypatch.setattr(libraries.sys, "platform", "linux")
    missing = {file}
    assert find() is None  # a pathfinder without the function
    pathfinder.load_nvidia_dynamic_lib = lambda name: SimpleNamespace(abs_path=f"/packages/{name}.so")
    assert find() == f"/packages/{name}.so"
    for problem in (RuntimeError, ValueError, OSError):  # none there, or it does not know of it

        def refuse(name, problem=problem):
            raise problem(name)

        pathfinder.load_nvidia_dynamic_lib = refuse
        missing = {file}
        assert find() is None
        missing = set()
        assert find() == file


@pytest.mark.parametrize("damage", ["corrupt", "empty"])
def test_damaged_code_on_disk_is_made_again(gpus, monkeypatch, tmp_path, damage):
    monkeypatch.setenv("MXCORE_CACHE_DIR", str(tmp_path))
    code = Code("mine.cu", SOURCE.format(damage, damage))
    assert compiler.load(code)
    monkeypatch.setattr(compiler, "_loaded", {})  # as in another process
    kept = list(tmp_path.rglob("*.code"))
    for path in kept:
        path.write_bytes(b"" if damage == "empty" else b"\x00" + path.read_bytes()[1:])
    assert getattr(compiler.load(code), f"mx_run_fill_{damage}")


def test_what_cannot_be_kept_is_compiled_all_the_same(gpus, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("MXCORE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert compiler.load(Code("mine.cu", SOURCE.format("kept", "kept"))).mx_run_fill_kept
    assert np.isfinite(mx.nd.ones(3, ctx=gpus[0]).asnumpy()).all()
