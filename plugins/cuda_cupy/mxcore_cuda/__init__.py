"""Device 'gpu': CUDA on CuPy, with kernels compiled at run time. Importing it touches no driver."""

from __future__ import annotations

from mxcore.plugin import Device, hookimpl

API_VERSION = 1


@hookimpl
def mxcore_devices() -> list[Device]:
    from .device import GPU

    return [GPU()]


@hookimpl
def mxcore_kernels() -> dict[str, str]:
    return {"gpu": "mxcore_cuda.bindings:gpu"}


@hookimpl
def mxcore_kvstores() -> dict[str, str]:
    return {"nccl": "mxcore_cuda.store:NCCLKVStore"}


@hookimpl
def mxcore_configure() -> None:
    from .nvtx import start

    start()


@hookimpl
def mxcore_unconfigure() -> None:
    from .nvtx import stop

    stop()


@hookimpl
def mxcore_report() -> list[str]:
    from . import dnn, nccl
    from .probe import count, describe

    return [f"gpu: {line}" for line in (describe(), *((dnn.describe(), nccl.describe()) if count() else ()))]
