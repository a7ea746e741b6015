"""KVStores of one process: ``'local'`` and ``'device'``."""

from __future__ import annotations

from mxcore.plugin import hookimpl

API_VERSION = 1

#: Types of MXNet -> class. Where MXNet only moved the update between CPU and device, one class serves.
_STORES = {
    "local": "LocalKVStore",
    "local_update_cpu": "LocalKVStore",
    "local_allreduce_cpu": "LocalKVStore",
    "device": "DeviceKVStore",
    "local_allreduce_device": "DeviceKVStore",
}


@hookimpl
def mxcore_kvstores() -> dict[str, str]:
    return {name: f"{__name__}.store:{cls}" for name, cls in _STORES.items()}
