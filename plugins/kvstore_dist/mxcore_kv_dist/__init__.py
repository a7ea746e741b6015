"""KVStores of many processes and machines: ``'dist_sync'``, ``'dist_async'`` and their kin, on Ray."""

from __future__ import annotations

from mxcore.plugin import hookimpl

API_VERSION = 1

#: Types of MXNet. Where MXNet only moved the sum over a worker's devices from the CPU to these, it is done there.
_STORES = (
    "dist",
    "dist_sync",
    "dist_async",
    "dist_sync_device",
    "dist_device_sync",
    "dist_async_device",
    "dist_device_async",
)


@hookimpl
def mxcore_kvstores() -> dict[str, str]:
    return {**dict.fromkeys(_STORES, f"{__name__}.store:create"), "allreduce": f"{__name__}.allreduce:create"}


@hookimpl
def mxcore_cli() -> dict[str, str]:
    return {"launch": f"{__name__}.launch"}
