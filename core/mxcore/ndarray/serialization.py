"""MXNet's binary format for lists and dictionaries of arrays (``.params`` files), on NumPy arrays.

The layout, little-endian throughout::

    file    := u64 0x112 | u64 reserved | u64 count, array * count | u64 count, name * count
    name    := u64 length | UTF-8 bytes
    shape   := i32 ndim | i64 * ndim                 (ndim -1: no array; before version 3, 0 means that)
    array   := u32 0xF993FACA (v3) or 0xF993FAC9 (v2) | i32 storage | [stored shape] | shape
               | device | i32 dtype | (i32 aux dtype, aux shape) * aux | data | aux data
             | u32 0xF993FAC8 (v1) | shape | device | i32 dtype | data
             | u32 ndim | u32 * ndim | device | i32 dtype | data                     (the first versions)
    device  := i32 type | i32 id

The stored shape and the auxiliary arrays exist only for sparse storage. An array without shape ends right
there. Version 3 is written under NumPy shape semantics, where ``()`` is a scalar.
"""

from __future__ import annotations

import io
import math
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from os import PathLike
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from .._core.params import as_dtype
from .._interrupts import let_through
from .._json import encode
from .._workers import Job, Workers, processors
from ..base import error

__all__ = [
    "Record",
    "dump",
    "dump_chunks",
    "dump_record",
    "load",
    "load_file",
    "load_record",
    "save_file",
    "sparse_problem",
]

LIST_MAGIC = 0x112
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
CPU = (1, 0)

#: MXNet's dtype codes; bfloat16 (12) is beside, as NumPy does not bring it.
DTYPES = {0: "float32", 1: "float64", 2: "float16", 3: "uint8", 4: "int32", 5: "int8", 6: "int64", 7: "bool"}
_BFLOAT16 = 12
_LATER_DTYPES = {8: "int16", 9: "uint16", 10: "uint32", 11: "uint64"}
_CODES = {name: code for code, name in DTYPES.items()} | {"bfloat16": _BFLOAT16}

#: Bytes of an array that are worth a thread of their own to read; so many threads at most.
_PART, _PARTS = 1 << 21, 4
#: Whether the system reads at a place, whatever was read before.
_AT_PLACES = hasattr(os, "preadv")

#: Storage code -> (name, names of the auxiliary arrays).
STORAGES = {0: ("default", ()), 1: ("row_sparse", ("indices",)), 2: ("csr", ("indptr", "indices"))}
_STORAGE_CODES = {name: code for code, (name, _) in STORAGES.items()}

_MAX_NDIM = 64  # NumPy's own limit
_MAX_SIZE = 1 << 59  # elements of 8 bytes that a signed 64-bit size can count
_PIECE = 1 << 24  # what is read at a time from a stream of unknown length


HostArray: TypeAlias = np.ndarray[Any, Any]
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Record:
    """One array as it lies in a file.

    Parameters
    ----------
    data : numpy.ndarray or None
        The dense array, or the stored values of a sparse one; None for a file entry without array.
    shape : tuple of int, optional
        Logical shape; that of `data` by default.
    stype : {'default', 'row_sparse', 'csr'}
        Storage type.
    aux : tuple of numpy.ndarray
        ``(indices,)`` for row_sparse, ``(indptr, indices)`` for csr.
    device : (int, int)
        Device type and id the array lived on (1 cpu, 2 gpu, 3 cpu_pinned, 5 cpu_shared).
    np_shape : bool
        Whether the entry has NumPy shape semantics (version 3).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``NDArray::Save`` / ``NDArray::Load``.

    Examples
    --------
    >>> Record(np.zeros((2, 3), "float32")).shape
    (2, 3)
    """

    data: HostArray | None
    shape: Shape | None = None
    stype: str = "default"
    aux: tuple[HostArray, ...] = ()
    device: tuple[int, int] = CPU
    np_shape: bool = False

    def __post_init__(self) -> None:
        if self.shape is None and self.data is not None:
            object.__setattr__(self, "shape", tuple(self.data.shape))


#: An entry without array, as the first versions wrote it.
_NOTHING = Record(None)

ArrayLike: TypeAlias = Record | HostArray | None
Buffer: TypeAlias = bytes | bytearray | memoryview


# ---------------------------------------------------------------- writing


def dump(arrays: Iterable[ArrayLike], names: Sequence[str] = (), np_shape: bool = False) -> bytes:
    """Write arrays in MXNet's binary list format.

    Parameters
    ----------
    arrays : iterable of Record, numpy.ndarray or None
        The arrays; a plain NumPy array is a dense one on the CPU.
    names : sequence of str
        One name an array (a dictionary), or nothing (a list).
    np_shape : bool
        Write plain arrays with NumPy shape semantics (version 3): needed for scalars.

    Returns
    -------
    bytes

    Raises
    ------
    MXNetError
        (also ValueError or TypeError) naming the array that cannot be written and why.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.nd.save``, byte for byte.

    Examples
    --------
    >>> records, names = load(dump([np.ones((2, 2), "float32")], ["w"]))
    >>> float(records[0].data.sum()), names
    (4.0, ['w'])
    """
    return b"".join(dump_chunks(arrays, names, np_shape))


def dump_chunks(arrays: Iterable[ArrayLike], names: Sequence[str] = (), np_shape: bool = False) -> Iterator[Buffer]:
    """Yield the bytes of `dump` piece by piece, without a copy of the arrays.

    Parameters
    ----------
    arrays, names, np_shape
        As for `dump`.

    Yields
    ------
    bytes-like

    Examples
    --------
    >>> b"".join(dump_chunks([])) == dump([])
    True
    """
    arrays, names = list(arrays), list(names)
    if names and len(names) != len(arrays):
        raise error(ValueError, f"{len(arrays)} arrays but {len(names)} names; name all of them or none")
    yield struct.pack("<QQQ", LIST_MAGIC, 0, len(arrays))
    for i, array in enumerate(arrays):
        yield from _record_chunks(array, _called(i, names), np_shape)
    yield struct.pack("<Q", len(names))
    for name in names:
        if not isinstance(name, str):
            raise error(TypeError, f"array names must be strings, not {name!r}")
        encoded = encode(name, "the name of an array")
        yield struct.pack("<Q", len(encoded)) + encoded


def dump_record(array: ArrayLike, np_shape: bool = False) -> bytes:
    """Write one array without the list around it, as MXNet's pickles hold it.

    Parameters
    ----------
    array : Record, numpy.ndarray or None
        The array.
    np_shape : bool
        As for `dump`.

    Returns
    -------
    bytes

    Examples
    --------
    >>> load_record(dump_record(np.arange(3, dtype="int32"))).data
    array([0, 1, 2], dtype=int32)
    """
    return b"".join(_record_chunks(array, "the array", np_shape))


def _called(i: int, names: Sequence[str]) -> str:
    return f"array {i} ({names[i]!r})" if i < len(names) else f"array {i}"


def _record_chunks(array: ArrayLike, called: str, np_shape: bool) -> Iterator[Buffer]:
    if not isinstance(array, (Record, np.ndarray, type(None))):
        raise error(TypeError, f"{called}: expected a NumPy array, not {type(array).__name__}")
    record = array if isinstance(array, Record) else Record(array, np_shape=np_shape)
    np_shape, data, shape = record.np_shape, record.data, record.shape
    if data is None or shape is None:
        # No storage follows an unknown shape: -1 dimensions under NumPy semantics, 0 before.
        yield struct.pack("<Iii", V3 if np_shape else V2, 0, -1 if np_shape else 0)
        return
    _check_writable(record, data, shape, called)
    parts = [data, *record.aux]
    codes = [_code(part, called) for part in parts]
    head = [struct.pack("<Ii", V3 if np_shape else V2, _STORAGE_CODES[record.stype])]
    if record.stype != "default":
        head.append(_shape_bytes(data.shape))
    head += [_shape_bytes(shape), struct.pack("<iii", *record.device, codes[0])]
    head += [struct.pack("<i", code) + _shape_bytes(aux.shape) for code, aux in zip(codes[1:], record.aux)]
    yield b"".join(head)
    for part in parts:
        if part.size:
            yield _raw(part)


def _check_writable(record: Record, data: HostArray, shape: Shape, called: str) -> None:
    if record.stype not in _STORAGE_CODES:
        raise error(
            ValueError, f"{called}: unknown storage type {record.stype!r}; known are {', '.join(_STORAGE_CODES)}"
        )
    aux_names = STORAGES[_STORAGE_CODES[record.stype]][1]
    if len(record.aux) != len(aux_names):
        raise error(
            ValueError, f"{called}: {record.stype} storage has the auxiliary arrays {aux_names}, got {len(record.aux)}"
        )
    if record.stype == "default" and tuple(shape) != data.shape:
        raise error(ValueError, f"{called}: shape {shape} given for dense data of {data.shape}")
    if not shape and not record.np_shape:
        raise error(
            ValueError,
            f"{called} is a scalar, shape (): the format holds it only under NumPy shape "
            "semantics (np_shape=True, mx.npx.save); otherwise reshape it to (1,)",
        )


def _shape_bytes(shape: Shape) -> bytes:
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def _code(array: HostArray, called: str) -> int:
    try:
        return _CODES[array.dtype.name]
    except KeyError:
        raise error(
            TypeError,
            f"{called}: dtype {array.dtype} has no place in MXNet's format; cast it to one of {', '.join(_CODES)}",
        ) from None


def _raw(array: HostArray) -> memoryview:
    array = np.ascontiguousarray(array)
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and not np.little_endian):
        array = array.astype(array.dtype.newbyteorder("<"))
    return array.reshape(-1).view(np.uint8).data


# ---------------------------------------------------------------- reading


def load(
    buffer: Buffer, called: str = "the buffer", empty: Callable[..., HostArray] = np.empty
) -> tuple[list[Record], list[str]]:
    """Read a list of arrays from memory.

    Parameters
    ----------
    buffer : bytes-like
        The whole content of a file.
    called : str
        What errors call it, e.g. a file name.
    empty : callable
        ``(shape, dtype)`` to memory for an array.

    Returns
    -------
    records : list of Record
        The arrays, each with memory of its own.
    names : list of str
        Their names, empty for a list.

    Raises
    ------
    MXNetError
        (also ValueError) if it is no such file, or cut or damaged; the text names the array and the offset.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.nd.load_frombuffer``, which reads no ``.npy`` or ``.npz`` either
    (the error says which function does). Sparse indices are checked against the shape.

    Examples
    --------
    >>> load(dump([np.zeros(2, "float32"), np.ones(3, "int8")]))[0][1].shape
    (3,)
    """
    view = _viewed(buffer)
    return _Reader(io.BytesIO(view), len(view), called, empty).read_list()


def load_file(path: str | PathLike[str], empty: Callable[..., HostArray] = np.empty) -> tuple[list[Record], list[str]]:
    """Read a list of arrays from a file or URL.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL.
    empty : callable
        ``(shape, dtype)`` to memory for an array.

    Returns
    -------
    records : list of Record
    names : list of str

    Raises
    ------
    MXNetError
        (also OSError) if the file cannot be opened; (also ValueError) as for `load`.

    Examples
    --------
    >>> save_file("memory://doc/one.params", [np.zeros(2, "float32")])
    >>> load_file("memory://doc/one.params")[0][0].shape
    (2,)
    """
    from .._io_files import reading

    with reading(path) as file:
        reader = _Reader(file, _length(file), repr(str(path)), empty)
        try:
            return reader.read_list()
        finally:
            if reader._workers is not None:
                reader._workers.close(wait=False)


def save_file(
    path: str | PathLike[str], arrays: Iterable[ArrayLike], names: Sequence[str] = (), np_shape: bool = False
) -> None:
    """Write a list of arrays to a file or URL, wholly or not at all.

    Parameters
    ----------
    path : str or os.PathLike
        A local path or an fsspec URL.
    arrays, names, np_shape
        As for `dump`.

    Raises
    ------
    MXNetError
        As for `dump`, and (also OSError) if the file cannot be written; the previous file then remains.

    Examples
    --------
    >>> save_file("memory://doc/two.params", [np.zeros(2, "float32")], ["bias"])
    """
    from .._io_files import write_atomic

    write_atomic(path, dump_chunks(arrays, names, np_shape))


def load_record(buffer: Buffer) -> Record:
    """Read one array written by `dump_record`.

    Parameters
    ----------
    buffer : bytes-like
        The bytes of one array.

    Returns
    -------
    Record

    Raises
    ------
    MXNetError
        (also ValueError) if the bytes are cut or damaged.

    Examples
    --------
    >>> load_record(dump_record(np.arange(2, dtype="int64"))).data
    array([0, 1])
    """
    view = _viewed(buffer)
    reader = _Reader(io.BytesIO(view), len(view), "the buffer")
    record = reader.read_record()
    reader.check_end()
    return record


def _viewed(buffer: Buffer) -> memoryview:
    try:
        return memoryview(buffer).cast("B")
    except TypeError:
        raise error(TypeError, f"arrays are read from bytes, not from a {type(buffer).__name__}") from None


def _length(file: BinaryIO) -> int | None:
    """Size of the rest of `file`, None where the stream cannot tell."""
    try:
        here = file.tell()
        end = file.seek(0, io.SEEK_END)
        file.seek(here)
    except (OSError, AttributeError, ValueError) as e:
        let_through(e)
        return None
    return end - here


def _bfloat16(called: str) -> np.dtype[Any]:
    try:
        return as_dtype("bfloat16")
    except TypeError as e:
        raise error(ImportError, f"{called}: {e}") from None


def _read_at(fd: int, view: memoryview, at: int) -> int:
    """Fill a view from a place in a file; how many bytes came before its end."""
    got = 0
    while got < len(view) and (n := os.preadv(fd, [view[got:]], at + got)):
        got += n
    return got


class _Reader:
    """Reads a stream front to back, knows where it is and never allocates what the stream cannot hold."""

    def __init__(
        self, file: BinaryIO, size: int | None, called: str, empty: Callable[..., HostArray] = np.empty
    ) -> None:
        self.file, self.size, self.called, self.empty = file, size, called, empty
        self.at = 0
        self._workers: Workers | None = None
        self.what: str | tuple[int | None, int] = "the header"  # or the number of an array, and how many there are

    # -- errors

    def fail(self, text: str, at: int | None = None) -> Exception:
        what = self.what
        if isinstance(what, tuple):
            what = "the kind of " + ("the array" if what[0] is None else f"array {what[0]} of {what[1]}")
        return error(
            ValueError, f"{self.called}: {text} (offset {self.at if at is None else at}, while reading {what})"
        )

    def truncated(self, wanted: int, have: int) -> Exception:
        return self.fail(f"truncated: {wanted} bytes expected, {have} left; the file is cut or damaged")

    # -- primitives

    def take(self, fmt: str) -> tuple[Any, ...]:
        n = struct.calcsize(fmt)
        raw = self.file.read(n)
        while 0 < len(raw) < n:
            more = self.file.read(n - len(raw))
            if not more:
                break
            raw += more
        if len(raw) < n:
            raise self.truncated(n, len(raw))
        self.at += n
        return struct.unpack(fmt, raw)

    def must_hold(self, nbytes: int) -> None:
        if self.size is not None and nbytes > self.size - self.at:
            raise self.truncated(nbytes, self.size - self.at)

    def fill(self, nbytes: int, make: Callable[[], HostArray]) -> HostArray:
        """Read into an array of `nbytes`, which is made once it is known that there are so many."""
        self.must_hold(nbytes)
        have = None if self.size is not None else self._of_unknown_length(nbytes)
        out = make()
        view, got = out.reshape(-1).view(np.uint8).data, 0
        if have is not None:
            view[:] = have
            return out
        while got < nbytes:
            n = self._beside(view[got:]) or self.file.readinto(view[got:])  # type: ignore[attr-defined]  # all have it
            if not n:
                raise self.truncated(nbytes, got)
            got += n
        self.at += nbytes
        return out

    def _beside(self, view: memoryview) -> int:
        """Read much of a local file in several threads at the same time; how many bytes came, 0 where that is no use.

        What the system copies from its caches takes as long as memory does, and more than one core has its way there.
        """
        file, threads = self.file, min(_PARTS, processors())
        parts = min(len(view) // _PART, threads)
        if parts < 2 or type(file) is not io.BufferedReader or type(file.raw) is not io.FileIO or not _AT_PLACES:
            return 0
        at, ends = file.tell(), [len(view) * k // parts for k in range(parts + 1)]
        jobs = [Job(partial(_read_at, file.fileno(), view[a:b], at + a)) for a, b in pairwise(ends)]
        try:
            self._workers = self._workers or Workers(threads - 1, "mxcore-read")
            self._workers.put(*jobs[1:])
        except RuntimeError:  # there is no room for threads
            return 0
        got = 0
        for job, wanted in zip(jobs, pairwise(ends)):
            job.run()  # the first, and what no thread has begun
            got += job.result()
            if got < wanted[1]:
                break
        file.seek(at + got)
        return got

    def _of_unknown_length(self, nbytes: int) -> bytearray:
        pieces, left = [], nbytes
        while left:
            piece = self.file.read(min(left, _PIECE))
            if not piece:
                raise self.truncated(nbytes, nbytes - left)
            pieces.append(piece)
            left -= len(piece)
        self.at += nbytes
        return bytearray().join(pieces)

    # -- the format

    def read_list(self) -> tuple[list[Record], list[str]]:
        start = self.file.read(16)
        if len(start) < 16 or struct.unpack("<Q", start[:8])[0] != LIST_MAGIC:
            raise self.fail(
                f"not an MXNet array file: {_looks_like(start)}; such a file starts with {LIST_MAGIC:#x}", at=0
            )
        self.at = 16
        self.what = "the number of arrays"
        (count,) = self.take("<Q")
        self.must_hold(4 * count)  # each array takes four bytes at least
        records = []
        for i in range(count):
            records.append(self.read_record(i, count))
        self.what = "the number of names"
        (names_count,) = self.take("<Q")
        if names_count not in (0, count):
            raise self.fail(f"{count} arrays but {names_count} names; the file is damaged")
        self.must_hold(8 * names_count)
        names = [self.read_name(i, count) for i in range(names_count)]
        self.check_names(names)
        self.check_end()
        return records, names

    def check_names(self, names: list[str]) -> None:
        if len(set(names)) < len(names):
            double = next(n for n, times in Counter(names).items() if times > 1)
            raise self.fail(f"two arrays are named {double[:100]!r}, one would be lost; the file is damaged")

    def check_end(self) -> None:
        self.what = "the end"
        rest = self.size - self.at if self.size is not None else len(self.file.read(1))
        if rest:
            raise self.fail(
                f"{rest if self.size is not None else 'more'} bytes follow the last entry; "
                "the file is damaged, or two were joined"
            )

    def read_name(self, i: int, count: int) -> str:
        self.what = f"name {i} of {count}"
        (length,) = self.take("<Q")
        raw = self.fill(length, lambda: np.empty(length, np.uint8)).tobytes()
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self.fail(f"the name {raw[:40]!r} is not UTF-8; the file is damaged") from None

    def read_record(self, i: int | None = None, count: int = 1) -> Record:
        start, self.what = self.at, (i, count)
        (magic,) = self.take("<I")
        if not magic:
            return _NOTHING  # no text is made, and nothing else: a file may hold millions of them
        called = "the array" if i is None else f"array {i} of {count}"
        if magic in (V2, V3):
            return self._current(called, magic == V3)
        self.what = f"the shape of {called}"
        if magic == V1:
            shape = self.shape()
        elif magic <= _MAX_NDIM:
            shape = self.checked(self.take(f"<{magic}I"), 4)
        else:
            raise self.fail(f"{magic:#x} begins no array that MXNet writes; the file is damaged", at=start)
        if not shape:
            return Record(None)
        device, dtype = self.device_and_dtype(called)
        return Record(self.array(shape, dtype, f"the data of {called}"), device=device)

    def _current(self, called: str, np_shape: bool) -> Record:
        (code,) = self.take("<i")
        if code not in STORAGES:
            known = ", ".join(f"{c} {name}" for c, (name, _) in STORAGES.items())
            raise self.fail(f"unknown storage type {code}; known are {known}", at=self.at - 4)
        stype, aux_names = STORAGES[code]
        self.what = f"the shape of {called}"
        stored = self.shape() if aux_names else None
        shape = self.known_or_none() if np_shape else self.shape()
        if shape is None or (not shape and not np_shape):
            return Record(None, np_shape=np_shape)
        device, dtype = self.device_and_dtype(called)
        aux_heads = []
        for name in aux_names:
            self.what = f"the {name} of {called}"
            aux_heads.append((self.dtype(called), self.shape()))
        if stored is not None and 0 in stored and shape:
            # What was saved before its operator had run: only the auxiliary shapes tell what follows.
            indices = aux_heads[-1][1]
            stored = self.checked((*indices, *shape[1:]) if stype == "row_sparse" else indices, 8)
        data = self.array(shape if stored is None else stored, dtype, f"the data of {called}")
        aux = tuple(self.array(s, d, f"the {name} of {called}") for name, (d, s) in zip(aux_names, aux_heads))
        if stype == "row_sparse":
            data, aux = _by_row(data, aux)
        if aux:
            problem = sparse_problem(stype, shape, data, aux)
            if problem:
                raise self.fail(f"{called} is no valid {stype} array: {problem}; the file is damaged")
        if aux and stype == "csr":
            data, cols, ptr = in_order(shape, data, *aux[::-1])
            aux = ptr, cols
        return Record(data, shape, stype, aux, device, np_shape)

    def known_or_none(self) -> Shape | None:
        (ndim,) = self.take("<i")
        return None if ndim == -1 else self.lengths(ndim)

    def shape(self) -> Shape:
        (ndim,) = self.take("<i")
        return self.lengths(ndim)

    def lengths(self, ndim: int) -> Shape:
        if not 0 <= ndim <= _MAX_NDIM:
            raise self.fail(f"{ndim} dimensions, of at most {_MAX_NDIM}; the file is damaged", at=self.at - 4)
        return self.checked(self.take(f"<{ndim}q"), 8)

    def checked(self, shape: Shape, width: int) -> Shape:
        """A shape of numbers of `width` bytes, unless no array can have it."""
        if any(d < 0 for d in shape):
            raise self.fail(f"negative dimension in shape {shape}; the file is damaged", self.at - width * len(shape))
        if math.prod(d for d in shape if d) > _MAX_SIZE:  # also beside a zero: NumPy refuses it too
            raise self.fail(f"absurd shape {shape}; the file is damaged", self.at - width * len(shape))
        return shape

    def device_and_dtype(self, called: str) -> tuple[tuple[int, int], np.dtype[Any]]:
        self.what = f"the device and dtype of {called}"
        return self.take("<ii"), self.dtype(called)

    def dtype(self, called: str) -> np.dtype[Any]:
        (code,) = self.take("<i")
        if code in DTYPES:
            return np.dtype(DTYPES[code])
        if code == _BFLOAT16:
            return _bfloat16(called)
        hint = f" ({_LATER_DTYPES[code]}, of MXNet 2)" if code in _LATER_DTYPES else ""
        known = ", ".join(f"{c} {name}" for name, c in _CODES.items())
        raise self.fail(f"unknown dtype code {code}{hint}; known are {known}", at=self.at - 4)

    def array(self, shape: Shape, dtype: np.dtype[Any], what: str) -> HostArray:
        self.what = what
        stored = dtype if np.little_endian else dtype.newbyteorder("<")
        out = self.fill(math.prod(shape) * dtype.itemsize, lambda: self.empty(shape, stored))
        if dtype == np.bool_:
            bits = out.view(np.uint8)
            np.not_equal(bits, 0, out=bits, casting="unsafe")  # a damaged byte must not become a broken bool
        return out


def _by_row(data: HostArray, aux: tuple[HostArray, ...]) -> tuple[HostArray, tuple[HostArray, ...]]:
    """Stored rows by rising index: MXNet writes them in the order in which they were given."""
    (rows,) = aux
    if rows.ndim != 1 or not data.ndim or len(rows) != len(data) or (rows[1:] >= rows[:-1]).all():
        return data, aux
    order = np.argsort(rows, kind="stable")
    return data[order], (rows[order],)


def starts(rows: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """Where each row begins."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int64)


def in_order(full: Any, data: Any, cols: Any, ptr: Any) -> tuple[Any, Any, Any]:
    """The same matrix with columns that rise in each row, and the values of one place added up."""
    rows = np.repeat(np.arange(full[0]), np.diff(ptr))
    same = rows[1:] == rows[:-1]
    if (cols[1:] > cols[:-1])[same].all():
        return data, cols, ptr
    order = np.lexsort((cols, rows))
    data, cols = data[order], cols[order]
    first = np.append(True, ~same | (cols[1:] != cols[:-1]))  # sorting leaves the rows where they are
    if not first.all():
        data = np.add.reduceat(data, np.flatnonzero(first)).astype(data.dtype)
        cols, ptr = cols[first], starts(rows[first], full[0])
    return data, cols, ptr


def sparse_problem(stype: str, shape: Shape, data: HostArray, aux: Sequence[HostArray]) -> str | None:
    """Say what makes a sparse array unusable, or None: an index out of range would crash a kernel later."""
    if any(a.ndim != 1 or a.dtype.kind != "i" for a in aux):
        return "its auxiliary arrays are not vectors of integers"
    if not shape:
        return "it has no rows"
    if math.prod(int(d) for d in shape if d) >= 2**59:  # as of dense arrays: places are counted in an int64
        return f"there is no array of shape {shape}"
    indices = aux[-1]
    if len(indices) != len(data) if data.ndim else True:
        return f"{len(indices)} indices for stored values of shape {data.shape}"
    if stype == "row_sparse":
        if data.shape[1:] != tuple(shape[1:]):
            return f"stored rows of shape {data.shape[1:]} in an array of shape {shape}"
        limit = shape[0]
        if (indices[1:] <= indices[:-1]).any():  # differences of stored numbers may overflow
            return "its row indices do not increase"
    else:
        if len(shape) != 2 or data.ndim != 1:
            return f"shape {shape} with stored values of shape {data.shape}, expected a matrix and a vector"
        limit = shape[1]
        indptr = aux[0]
        if not len(indptr) or len(indptr) != shape[0] + 1:
            return f"indptr of {len(indptr)} entries for {shape[0]} rows"
        if indptr[0] != 0 or indptr[-1] != len(indices) or (indptr[1:] < indptr[:-1]).any():
            return f"indptr does not rise from 0 to {len(indices)}"
    if len(indices) and (indices.min() < 0 or indices.max() >= limit):
        return f"index out of range [0, {limit})"
    return None


#: How files that people mistake for array files begin, and what to do with them.
_SIGNATURES = (
    (b"PK\x03\x04", "a zip archive, such as .npz or a PyTorch file (read .npz with numpy.load)"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x93NUMPY", "a NumPy .npy file (read it with numpy.load)"),
    (b"\x1f\x8b", "gzip data; decompress it first"),
    (b"BZh", "bzip2 data; decompress it first"),
    (b"\xfd7zXZ", "xz data; decompress it first"),
    (b"\x28\xb5\x2f\xfd", "zstandard data; decompress it first"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (struct.pack("<I", 0xCED7230A), "a RecordIO (.rec) file"),
    (struct.pack("<I", V1), "a single array without the list around it"),
    (struct.pack("<I", V2), "a single array without the list around it"),
    (struct.pack("<I", V3), "a single array without the list around it"),
    (struct.pack(">Q", LIST_MAGIC), "an array file of a big-endian machine"),
    (b"version https://", "a Git LFS pointer; fetch the real file with git lfs pull"),
    (b"<", "an HTML or XML page, perhaps a failed download"),
    (b"{", "JSON, such as a -symbol.json file"),
    (b"[", "JSON"),
)


def _looks_like(start: bytes) -> str:
    if not start:
        return "it is empty"
    for signature, kind in _SIGNATURES:
        text = len(signature) == 1  # may follow blanks
        if (start.lstrip() if text else start).startswith(signature):
            return f"it looks like {kind}"
    if start[0] == 0x80 and len(start) > 1 and 2 <= start[1] <= 5:
        return "it looks like a Python pickle, such as optimizer states"
    if start[8:9] == b"{":
        return "it looks like a safetensors file"
    if struct.pack("<Q", LIST_MAGIC).startswith(start):
        return f"it has only {len(start)} bytes"
    return f"it starts with {start[:8].hex(' ')}"
