"""Servers of distributed stores, under the names that MXNet has for them."""

from __future__ import annotations

from typing import Any

from ..base import error

__all__ = ["KVStoreServer"]


class KVStoreServer:
    """What a server process of MXNet runs; stores of mxcore start and stop their servers themselves.

    Parameters
    ----------
    kvstore : KVStore

    Raises
    ------
    MXNetError
        (also NotImplementedError) from `run`.

    Examples
    --------
    >>> import mxcore as mx
    >>> server = mx.kvstore.KVStoreServer(mx.kv.create("local"))
    """

    def __init__(self, kvstore: Any) -> None:
        self.kvstore = kvstore
        self.init_logging = False

    def run(self) -> None:
        """Raise an error: no process is a server by itself."""
        raise error(
            NotImplementedError,
            f"KVStoreServer.run: a store such as {type(self.kvstore).__name__} has no server to be run by hand; a "
            "distributed store of a plugin starts those that it needs",
        )


def _init_kvstore_server_module() -> None:
    """Do nothing, as in MXNet's workers, where scripts call it to become a server if they are to be one."""
