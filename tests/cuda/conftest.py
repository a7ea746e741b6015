"""The plugin on emulated GPUs, for the tests of this folder."""

import contextlib

import pytest

import mxcore as mx
from mxcore._core.manager import manager
from mxcore_cuda import drivers, nccl, probe


def pytest_addoption(parser):
    parser.addoption(
        "--whole", action="store_true", help="tests/cuda: the kit on both GPUs, and all of the library's tests on a GPU"
    )


def pytest_collection_modifyitems(items):
    """What takes minutes comes first, so that no worker has it left when others have ended."""
    items.sort(key=lambda item: item.path.name != "test_library.py" or "part" not in getattr(item, "fixturenames", ()))


def forget():
    """Let the plugin look anew for what there is."""
    nccl.close()
    for fn in (probe.absence, probe._counted, drivers.driver, nccl.library):
        fn.cache_clear()


@pytest.fixture(scope="module")
def emulated(request):
    """The plugin with two emulated devices, or as many as a module's `GPUS` says; other tests know none."""
    from mxcore_cuda.emulation import compiler

    if compiler.available() is None:
        pytest.skip("emulated kernels need g++, which is not there")
    import mxcore_cuda

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MXCORE_CUDA_EMULATE", str(getattr(request.module, "GPUS", 2)))
        forget()
        manager.load()
        installed = "cuda" in manager.origin
        if installed:
            manager.unregister("cuda")  # its device knows another module's driver
        manager.register(mxcore_cuda, "cuda")
        yield
        # What is launched still would find no device later, and whichever test waits next would learn of it.
        with contextlib.suppress(mx.MXNetError):
            mx.nd.waitall()
        manager.unregister("cuda")
        forget()
        if installed:
            manager.register(mxcore_cuda, "cuda")


@pytest.fixture
def gpus(emulated):
    """The contexts of all devices; device 0 is the active one."""
    contexts = tuple(mx.gpu(i) for i in range(mx.context.num_gpus()))
    contexts[0].device.activate(0)
    return contexts
