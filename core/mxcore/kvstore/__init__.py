"""KVStores: values by key that several devices or machines share: ``mx.kv``.

A store adds up what devices push, lets an optimizer move its value, and hands it out again. Types come from
plugins, through the hook ``mxcore_kvstores``.

>>> import mxcore as mx
>>> kv = mx.kv.create("local")
>>> kv.init("w", mx.nd.zeros(2))
>>> kv.push("w", [mx.nd.ones(2, ctx=mx.cpu(0)), mx.nd.ones(2, ctx=mx.cpu(1))])
>>> out = mx.nd.empty(2)
>>> kv.pull("w", out=out)
>>> out.asnumpy()
array([2., 2.], dtype=float32)
"""

from __future__ import annotations

from . import base, kvstore, kvstore_server
from .base import KVStoreBase
from .kvstore import KVStore, create
from .kvstore_server import KVStoreServer

__all__ = ["KVStore", "KVStoreBase", "KVStoreServer", "base", "create", "kvstore", "kvstore_server"]
