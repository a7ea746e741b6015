"""Saving and loading arrays in MXNet's binary format (``mx.nd.save``, ``mx.nd.load``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.array import Array, Sparse, Storage, faces
from .._core.context import Context, current_context
from .._core.errors import error
from .._core.state import state
from .._io_files import naming, write_atomic
from .._noting import check_readable
from ..stypes import CSR, RowSparse
from . import serialization
from .serialization import Record

if TYPE_CHECKING:
    from .ndarray import NDArray

__all__ = ["save", "load", "load_frombuffer", "load_named", "chunks", "to_record", "from_record"]


def to_record(x: Array) -> Record:
    """The file form of an array: over its own memory where that is the host's, to be written before it changes."""
    x._st.wait()
    device, d = x._st.ctx.device, x._data
    d = d.frozen() if isinstance(d, Sparse) else d
    where = (x._st.ctx.device_typeid, x._st.ctx.device_id)
    host = np.asarray if device.host else device.to_host
    if isinstance(d, RowSparse):
        return Record(host(d.values), d.shape, "row_sparse", (host(d.indices),), where)
    if isinstance(d, CSR):
        return Record(host(d.values), d.shape, "csr", (host(d.indptr), host(d.indices)), where)
    check_readable(x)
    return Record(host(d), device=where, np_shape=state.np_shape)


def from_record(record: Record, ctx: Context | None = None, there: bool = False) -> NDArray | None:
    """An array from its file form, on the current context; None for an entry without array.

    With `there`, what was read lies in memory of that context, and becomes the array's.
    """
    if record.data is None:
        return None
    if record.np_shape and not state.np_shape:
        raise error(
            ValueError,
            f"an array of shape {record.shape} was saved under np_shape "
            "and can be loaded only there: use `with mx.util.np_shape():`",
        )
    ctx = ctx or current_context()

    def put(a: np.ndarray[Any, Any]) -> Any:
        return a if there else ctx.device.from_host(a, ctx.device_id)

    if record.stype == "default":
        return faces["default"](put(record.data), Storage(ctx))  # type: ignore[return-value]
    kind = RowSparse if record.stype == "row_sparse" else CSR
    return faces[record.stype](kind(record.shape, *map(put, record.aux), put(record.data)), Storage(ctx))  # type: ignore[return-value, arg-type]


def save(fname: Any, data: Any) -> None:
    """Write arrays to a file or URL, wholly or not at all.

    Parameters
    ----------
    fname : str or os.PathLike
        A path, or a URL that fsspec understands (``s3://…``, ``memory://…``).
    data : NDArray, list of NDArray or dict of str to NDArray

    Raises
    ------
    MXNetError
        If something else than arrays is given, or the file cannot be written; the former file then remains.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.nd.save("memory://doc/w.params", {"w": mx.nd.ones((2,))})
    >>> mx.nd.load("memory://doc/w.params")["w"].shape
    (2,)
    """
    write_atomic(fname, chunks(data))


def chunks(data: Any) -> Iterator[bytes | bytearray | memoryview]:
    """The pieces of the file that `save` writes."""
    names: list[str] = []
    if isinstance(data, Array):
        arrays = [data]
    elif isinstance(data, dict):
        for k in data:
            if not isinstance(k, str):  # 1 and "1" would be one name, and the file none that can be read
                raise error(TypeError, f"nd.save: names of arrays are text, got {k!r}")
        names, arrays = list(data), list(data.values())
    elif isinstance(data, (list, tuple)):
        arrays = list(data)
    else:
        raise error(TypeError, f"nd.save takes an NDArray, a list or a dict of them, got {type(data).__name__}")
    for i, a in enumerate(arrays):
        if not isinstance(a, Array):
            which = f"'{names[i]}'" if names else f"number {i}"
            raise error(TypeError, f"nd.save: entry {which} is a {type(a).__name__}, not an NDArray")
    return serialization.dump_chunks([to_record(a) for a in arrays], names)


def _collected(read: Callable[..., tuple[list[Record], list[str]]], source: Any) -> Any:
    """What a reader finds, read into the memory of the current context where that is the host's."""
    ctx = current_context()
    there = ctx.device.host and np.little_endian
    records, names = read(source, empty=partial(ctx.device.empty, index=ctx.device_id) if there else np.empty)
    with nullcontext() if isinstance(source, bytes) else naming(source):  # what has read them names the file itself
        arrays = [from_record(r, ctx, there and r.stype == "default") for r in records]
    return dict(zip(names, arrays)) if names else arrays


def load(fname: Any) -> Any:
    """Read what `save` wrote: a list, or a dict where names were given.

    Parameters
    ----------
    fname : str or os.PathLike
        A path or URL.

    Returns
    -------
    list of NDArray or dict of str to NDArray
    """
    return _collected(serialization.load_file, fname)


def load_named(fname: Any, why: str) -> dict[str, NDArray]:
    """Read arrays by name; a file without arrays has no names either.

    Parameters
    ----------
    fname : str or os.PathLike
        A path or URL.
    why : str
        What names are wanted for, to end the error.

    Returns
    -------
    dict of str to NDArray

    Raises
    ------
    MXNetError
        (also ValueError) if the file holds arrays without names.
    """
    loaded = load(fname) or {}
    if not isinstance(loaded, dict):
        raise error(ValueError, f"{fname} holds {len(loaded)} arrays without names; {why}")
    return loaded


def load_frombuffer(buf: bytes) -> Any:
    """Read arrays from the bytes of a file."""
    return _collected(serialization.load, buf)


def without_kinds(named: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Arrays by their names in the model: without ``arg:`` and ``aux:``, by which checkpoints begin them.

    Raises
    ------
    MXNetError
        (also ValueError) if two have one name: which one is meant nobody can tell.

    Examples
    --------
    >>> without_kinds({"arg:w": 1, "m": 2}, "a.params")
    {'w': 1, 'm': 2}
    """
    found: dict[str, Any] = {}
    for name, value in named.items():
        bare = name[4:] if name.startswith(("arg:", "aux:")) else name
        if bare in found:
            raise error(
                ValueError, f"{source}: more than one array is named {bare!r}, with or without 'arg:' and 'aux:'"
            )
        found[bare] = value
    return found
