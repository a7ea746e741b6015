"""Arrays of ``mx.np`` in files: MXNet's own format, and NumPy's ``.npz``."""

from __future__ import annotations

import os
import struct
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np

from .. import _io_files
from .._core.errors import MXNetError, error
from .._core.params import as_dtype
from .._interrupts import let_all_through
from .._json import encode
from .._npy import read_header
from ..context import current_context
from ..drafts import Draft, atomic_writer
from ..elementwise import true_bools
from ..limits import check_packing, check_unpacked, read_up_to
from ..ndarray import NDArray
from ..ndarray import files as legacy
from ..ndarray.files import from_record
from ..ndarray.numpy import ndarray
from ..ndarray.serialization import Record
from ..util import np_shape

__all__ = ["load", "save"]


def _named(what: str, arr: Any) -> Any:
    """Arrays as they are saved: of ``mx.nd``, over the same memory."""
    if isinstance(arr, dict):
        return {k: _one(what, v) for k, v in arr.items()}
    return [_one(what, v) for v in arr] if isinstance(arr, (list, tuple)) else _one(what, arr)


def _one(what: str, arr: Any) -> NDArray:
    if not isinstance(arr, NDArray):
        raise error(
            TypeError, f"{what}: arrays of mx.np are saved, or lists and dicts of them, got {type(arr).__name__}"
        )
    return arr.as_nd_ndarray() if isinstance(arr, ndarray) else arr


def save(file: str, arr: Any) -> None:
    """Write arrays to a file, whole or not at all.

    Parameters
    ----------
    file : str
        Path or URL. One that ends in ``.npz`` is written as NumPy's archives are, any other in MXNet's format.
    arr : ndarray, list of ndarray or dict of str to ndarray
        One array is a list of one.

    Raises
    ------
    MXNetError
        (also TypeError) for what is no array; (also OSError) where it cannot be written.

    Examples
    --------
    >>> from mxcore import np, npx
    >>> npx.save("memory://weights", {"w": np.ones(2)})
    >>> npx.load("memory://weights")
    {'w': array([1., 1.])}
    """
    found = _named("npx.save", arr)
    name = _io_files.checked(file, "npx.save: file")
    if not name.endswith(".npz"):
        with np_shape():
            legacy.save(name, found)
        return
    listed = found if isinstance(found, dict) else {f"arr_{i}": x for i, x in enumerate(_listed(found))}
    for key, x in listed.items():
        _check_key(key)
        if (dtype := np.dtype(x.dtype)).kind == "V":
            raise error(
                ValueError, f"npx.save: {key!r} is {dtype.name}, which NumPy's archives do not tell; write .params"
            )
    before = sys.exc_info()[1]
    # As numpy.savez does it, which takes no stream that cannot go back.
    with atomic_writer(name) as out:
        try:
            with zipfile.ZipFile(_Counting(out), "w") as archive:  # type: ignore[call-overload]
                for key, x in listed.items():
                    with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, x.asnumpy(), allow_pickle=False)
        except Exception as e:
            let_all_through(e, before)  # an archive that is left amid a member has an error of its own
            raise


class _Counting:
    """A draft as `zipfile` wants a stream that cannot go back."""

    def __init__(self, draft: Draft) -> None:
        self._draft, self.flush = draft, draft.flush

    def write(self, data: Any) -> int:
        self._draft.write(data)
        return memoryview(data).nbytes


def _listed(x: Any) -> list[Any]:
    return x if isinstance(x, list) else [x]


def load(file: str) -> Any:
    """Read the arrays of a file that `save`, ``nd.save``, MXNet or ``numpy.savez`` wrote.

    Parameters
    ----------
    file : str
        Path or URL.

    Returns
    -------
    list of ndarray, or dict of str to ndarray
        As they were saved; of a ``.npz`` a dict.

    Raises
    ------
    MXNetError
        (also ValueError) for a damaged file, with the place, and for one that unfolds to more than
        ``MXCORE_MAX_UNPACKED_BYTES``.

    Examples
    --------
    >>> from mxcore import np, npx
    >>> npx.save("memory://one", np.arange(3))
    >>> npx.load("memory://one")
    [array([0., 1., 2.])]
    """
    name = _io_files.checked(file, "npx.load: file")
    first = name.partition("::")[0]  # of a file in an archive it is the file's
    if (first if first.partition("://")[2] else name).endswith(".npz"):
        return _read_npz(name)
    with np_shape():
        found = legacy.load(name)
    return {k: _of_np(v) for k, v in found.items()} if isinstance(found, dict) else [_of_np(v) for v in found]


def _of_np(x: NDArray) -> NDArray:
    return x.as_np_ndarray() if x.stype == "default" else x


def _read_npz(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    before = sys.exc_info()[1]
    with _io_files.reading(_io_files.regular(name)) as f:
        try:
            size = f.seek(0, os.SEEK_END)
            with zipfile.ZipFile(f) as archive:
                members = archive.infolist()
                if (told := _told(f, size)) is not None and told != len(members):
                    raise ValueError(
                        f"its end tells of {told} members, but its directory has {len(members)}; it is damaged"
                    )
                if sum(m.compress_size for m in members) > size:
                    raise ValueError(f"its members share bytes: they tell of more than the file has, {size}")
                packed = [m for m in members if m.compress_type != zipfile.ZIP_STORED]
                check_unpacked(sum(m.file_size for m in packed), name)
                for member in packed:  # others take no more memory than the file
                    check_packing(member.compress_type, member.filename, name, "numpy.load reads it, or pack it anew.")
                for member in [m for m in members if not m.is_dir()]:
                    key = member.filename.removesuffix(".npy")
                    if key in found:
                        raise ValueError(f"two arrays are called {key!r}, one would be lost")
                    with archive.open(member) as stream:
                        found[key] = _read_npy(stream, member)
        except MemoryError as e:
            raise error(MemoryError, f"{name}: no memory for its arrays: {str(e) or 'one tells of too much'}") from e
        except MXNetError:
            raise
        except Exception as e:
            let_all_through(e, before)  # which zipfile may have put another in the place of
            raise error(ValueError, f"{name}: it is no archive of NumPy's arrays: {str(e) or type(e).__name__}") from e
    return found


def _told(file: Any, size: int) -> int | None:
    """How many members the end of an archive tells of, at which `zipfile` does not look; None if it does not tell."""
    start = max(0, size - _ENDING)
    file.seek(start)
    ending = read_up_to(file, _ENDING)
    at = ending.rfind(b"PK\5\6")
    (told,) = struct.unpack_from("<H", ending, at + 10)
    if told < 0xFFFF:
        return int(told)
    # More are told of in front of it.
    file.seek(max(0, start + at - 76))
    large = read_up_to(file, 76)
    return int.from_bytes(large[32:40], "little") if large[:4] == b"PK\6\6" else None


#: Where archives are searched for their end: it has 22 bytes and a comment.
_ENDING = (1 << 16) + 22

#: Bytes that are unpacked at a time, a multiple of every itemsize.
_PIECE = 1 << 18


def _read_npy(stream: Any, member: zipfile.ZipInfo) -> Any:
    """One array of an archive, in memory only once its header and the bytes that are there agree."""
    where = f"member {member.filename!r}"
    try:
        shape, fortran, dtype = read_header(stream)
        if as_dtype(dtype.newbyteorder("=")).itemsize != dtype.itemsize:
            raise ValueError(f"dtype {dtype} cannot be held")
        told, there = prod(shape) * dtype.itemsize, member.file_size - stream.tell()
        if told != there:
            raise ValueError(f"its header tells of {told} bytes, {there} are there")
        ctx = current_context()
        empty = partial(ctx.device.empty, index=ctx.device_id) if ctx.device.host else np.empty
        host = empty(shape, dtype.newbyteorder("="))
        _fill(host, stream, fortran, swapped=not dtype.isnative)
    except (MXNetError, TypeError, ValueError, EOFError) as e:
        raise ValueError(f"{where}: {str(e) or 'it ends early'}") from e
    found: Any = from_record(Record(host), ctx, there=ctx.device.host)
    return found.as_np_ndarray()


def _fill(host: np.ndarray[Any, Any], stream: Any, fortran: bool, swapped: bool) -> None:
    """Read an array's bytes into its memory, piece by piece: a stream of `zipfile` makes a copy of what is asked for.

    Behind the last piece it compares the checksum.
    """
    left = host.nbytes
    for place in _columns(host) if fortran and host.ndim > 1 else _pieces(host.reshape(-1)):
        own = place.flags.c_contiguous and (place.ndim == 1 or not fortran)  # else they come in the transpose's order
        values = place if own else np.empty(place.shape[::-1], host.dtype)
        todo = values.reshape(-1).view(np.uint8).data
        while todo:
            n = stream.readinto(todo)
            if not n:
                raise ValueError(f"it ends {left} bytes early")
            todo, left = todo[n:], left - n
        if swapped:
            values.byteswap(inplace=True)
        if values.dtype == np.bool_:
            values[...] = true_bools(values)  # a damaged byte must not become a broken bool
        if not own:
            place[...] = values.T


def _pieces(line: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """The parts of an array of one dimension, one after the other."""
    n = _PIECE // line.itemsize
    for start in range(0, line.size, n):
        yield line[start : start + n]


def _columns(host: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """The parts of an array in Fortran's order, the first axis fastest: as many of the last axis as a piece holds."""
    if host.ndim == 1:
        yield from _pieces(host)
    elif n := _PIECE // (host[..., :1].nbytes or 1):
        for start in range(0, host.shape[-1], n):
            yield host[..., start : start + n]
    else:
        for i in range(host.shape[-1]):
            yield from _columns(host[..., i])


def _check_key(key: Any) -> None:
    """Refuse a name that an archive does not give back."""
    if not isinstance(key, str):
        raise error(TypeError, f"npx.save: names of arrays are text, got {key!r}")
    long = len(encode(key, "npx.save: the name of an array")) > _LONGEST
    if long or "\0" in key:
        what = f"has more than {_LONGEST} bytes" if long else "holds a NUL"
        raise error(ValueError, f"npx.save: the name {key[:40]!r} {what}, which archives do not keep; write .params")


#: Of names in archives, ".npy" left out.
_LONGEST = 65531
