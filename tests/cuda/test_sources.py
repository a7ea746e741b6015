"""The sources of kernels: every one compiles for every architecture and dtype, and without a spill."""

import pytest

from mxcore.base import MXNetError
from mxcore_cuda import nvrtc
from mxcore_cuda.bindings.elementwise import source_of
from mxcore_cuda.sources import Code, files, signatures, source

DTYPES = ("float16", "bfloat16", "float32", "float64")
#: Sources whose kernels move or draw whole numbers, too.
WHOLE = [(name, dtype) for name in ("indexing", "random", "sums") for dtype in ("int8", "uint8", "int32", "int64")]
needs_nvrtc = pytest.mark.skipif(not nvrtc.available(), reason="NVRTC (nvidia-cuda-nvrtc) is not installed")


@pytest.mark.libraries
@needs_nvrtc
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize(
    "name, dtype", [*((name, dtype) for name in (*files(), "elementwise") for dtype in DTYPES), *WHOLE]
)
def test_every_source_compiles_without_spills(name, dtype, architecture):
    code = Code(f"{name}.cu", source_of(dtype), dtype) if name == "elementwise" else source(name, dtype)
    binary, log = nvrtc.compile_code(code, architecture)
    used = nvrtc.usage(log)
    assert binary and used.keys() == code.signatures.keys()  # what is launched is what is there
    for kernel, usage in used.items():
        assert usage.spilled == 0 and usage.shared <= 48 << 10, kernel
        assert usage.registers * code.signatures[kernel].threads <= 65536, kernel  # or no block would run


@pytest.mark.libraries
@needs_nvrtc
def test_what_does_not_compile_is_told_with_line_and_log():
    with pytest.raises(MXNetError, match=r"(?s)mine.cu, float32, sm_80: NVRTC says.*mine.cu\(2\): error.*nowhere"):
        nvrtc.compile_code(Code("mine.cu", '#include "mx.cuh"\nKERNEL(32) f(int a) { nowhere; }\nEACH(f)'), "sm_80")


def test_signatures_tell_addresses_from_numbers():
    text = """
    // KERNEL(1) no(int a) {}
    KERNEL(128) scale(const T* __restrict__ x, T *y, A by,
                      const i64 n) {}
    EACH(scale)
    KERNEL(32) sums(const int* x) {} BLOCKS(sums)
    """
    found = signatures(text, "mine.cu")
    assert [*found] == ["scale", "sums"] and not found["scale"].waits and found["sums"].waits
    assert [(p.name, p.pointer) for p in found["scale"].parameters] == [
        ("x", True),
        ("y", True),
        ("by", False),
        ("n", False),
    ]
    assert [p.format(True) for p in found["scale"].parameters] == ["Q", "Q", "d", "q"]
    assert found["scale"].parameters[2].format(False) == "f4x"


@pytest.mark.parametrize(
    "text, said", [("KERNEL(32) f(int a) {}", "no line EACH"), ("KERNEL(32) f(short a) {} EACH(f)", "type 'short'")]
)
def test_sources_that_cannot_be_launched_are_refused(text, said):
    with pytest.raises(ValueError, match=said):
        signatures(text, "mine.cu")
