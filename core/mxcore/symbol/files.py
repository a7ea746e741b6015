"""Symbols from files and texts."""

from __future__ import annotations

from typing import Any

from .. import _io_files
from .reading import read_json
from .symbol import Symbol

__all__ = ["fromjson", "load", "load_json"]


def load_json(json_str: str) -> Symbol:
    """Read a symbol from MXNet's JSON, as written by any version since 0.8.

    Raises
    ------
    MXNetError
        If it is no JSON or no graph (names the node), or needs an operator that nobody registered (names the plugins
        that failed or are switched off).
    """
    return Symbol(read_json(json_str))


fromjson = load_json


def load(fname: Any) -> Symbol:
    """Read a symbol from a file or URL.

    >>> import mxcore as mx
    >>> (mx.sym.Variable("a") * 2).save("memory://doc/twice-symbol.json")
    >>> mx.sym.load("memory://doc/twice-symbol.json").list_arguments()
    ['a']

    Raises
    ------
    MXNetError
        As `load_json`, with the name of the file.
    """
    return Symbol(read_json(_io_files.read_text(fname), str(fname)))
