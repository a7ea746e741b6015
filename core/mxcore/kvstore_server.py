"""Servers of distributed stores, by another name of `mxcore.kvstore.kvstore_server`: ``mx.kvstore_server``."""

from __future__ import annotations

from typing import Any

from .kvstore import kvstore_server

__all__ = ["KVStoreServer"]

KVStoreServer = kvstore_server.KVStoreServer


def __getattr__(name: str) -> Any:
    return getattr(kvstore_server, name)
