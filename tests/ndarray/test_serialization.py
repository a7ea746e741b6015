"""MXNet's binary array files, on NumPy arrays: files written by MXNet 1.9.1, and damaged ones."""

import errno
import io
import json
import os
import pathlib
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.ndarray import serialization
from mxcore.ndarray.files import to_record
from mxcore.ndarray.serialization import Record, dump, dump_record, load, load_file, load_record, save_file

GOLDEN = pathlib.Path(__file__).parent / "golden_params"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
WRITTEN = [name for name, case in EXPECTED.items() if case["version"] > 1]


@pytest.mark.parametrize("name", EXPECTED)
def test_reads_what_mxnet_reads(name):
    expected = EXPECTED[name]
    records, names = load_file(GOLDEN / f"{name}.params")
    assert names == expected["names"] and len(records) == len(expected["arrays"])
    for record, array in zip(records, expected["arrays"]):
        assert record.shape == tuple(array["shape"])
        assert record.stype == array["stype"] and record.data.dtype.name == array["dtype"]
        values = record.data.astype("float32") if array["dtype"] == "bfloat16" else record.data
        assert values.tolist() == array["values"]
        assert [aux.tolist() for aux in record.aux] == array.get("aux", [])
        assert record.np_shape == (expected["version"] == 3)


@pytest.mark.parametrize("name", WRITTEN)
def test_writes_what_mxnet_writes(name):
    content = (GOLDEN / f"{name}.params").read_bytes()
    assert dump(*load(content)) == content


def test_plain_arrays_are_enough():
    content = (GOLDEN / "float32.params").read_bytes()
    assert dump([np.array([[1, 0, 3], [4, 5, 127]], "float32")]) == content
    assert dump([np.asfortranarray([[1, 0, 3], [4, 5, 127]], ">f4")]) == content


def test_the_device_is_kept():
    records, _ = load_file(GOLDEN / "v1_gpu.params")
    assert records[0].device == (2, 1)
    assert load(dump(records))[0][0].device == (2, 1)


def test_arrays_own_their_memory():
    content = bytearray(dump([np.zeros(3, "float32")]))
    record = load(content)[0][0]
    record.data[:] = 1
    assert record.data.flags.aligned and content == dump([np.zeros(3, "float32")])


def test_as_many_dimensions_as_arrays_may_have():
    array = np.arange(4, dtype="float32").reshape((1,) * 62 + (2, 2))
    assert np.array_equal(load(dump([array]))[0][0].data, array)
    content = dump([array])
    damaged = content.replace((64).to_bytes(4, "little"), (65).to_bytes(4, "little"))
    with pytest.raises(ValueError, match="65 dimensions, of at most 64"):
        load(damaged)


@pytest.fixture
def many_parts(monkeypatch):
    """Arrays are read in as many parts as they have pieces of 100 bytes, four at most."""
    monkeypatch.setattr(serialization, "_PART", 100)
    monkeypatch.setattr(serialization, "processors", lambda: 8)


@pytest.mark.parametrize("threads", [True, False])
def test_large_arrays_are_read_in_parts(many_parts, monkeypatch, tmp_path, threads):
    """By threads, or where there is no room for any: the same as one after the other."""
    made = []

    class Counted(serialization.Workers):
        def __init__(self, n, name):
            made.append(n)
            if not threads:
                raise RuntimeError("no room for threads")
            super().__init__(n, name)

    monkeypatch.setattr(serialization, "Workers", Counted)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 256, n).astype("uint8") for n in (0, 1, 99, 199, 200, 201, 399, 401, 9001, 70000)]
    arrays += [rng.random((7, 11, 13)), rng.random((9, 9)) < 0.5]
    save_file(tmp_path / "x", arrays)
    records, _ = load_file(tmp_path / "x")
    for record, array in zip(records, arrays, strict=True):
        np.testing.assert_array_equal(record.data, array, strict=True)
    assert made == [3] * (1 if threads else 7), "threads are made once for a file"


def test_a_file_that_shrinks_while_it_is_read_in_parts(many_parts, monkeypatch, tmp_path):
    path = tmp_path / "x"
    save_file(path, [np.arange(5000.0)])
    read_at = serialization._read_at

    def shrunk(fd, view, at):
        os.truncate(path, 9000)
        return read_at(fd, view, at)

    monkeypatch.setattr(serialization, "_read_at", shrunk)
    with pytest.raises(MXNetError, match="written to while it was read"):
        load_file(path)
    with open(path, "rb") as file, pytest.raises(MXNetError, match="truncated: 40000 bytes expected, 8960 left"):
        reader = serialization._Reader(file, 50000, "x")
        file.seek(40)
        reader.fill(40000, lambda: np.empty(5000))


def test_what_cannot_be_read_in_parts_is_told(many_parts, monkeypatch, tmp_path):
    save_file(tmp_path / "x", [np.arange(5000.0)])

    def failing(fd, view, at):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(serialization, "_read_at", failing)
    with pytest.raises(OSError, match=r"cannot read '.*x': Input/output error"):
        load_file(tmp_path / "x")


def test_entries_without_array():
    records, _ = load(dump([None, np.ones(2, "int8"), Record(None, np_shape=True)]))
    assert [r.data is None for r in records] == [True, False, True]
    first_format = struct.pack("<QQQIQ", 0x112, 0, 1, 0, 0)
    assert load(first_format)[0][0].data is None


def test_one_record():
    record = load_record(dump_record(np.arange(4, dtype="int64").reshape(2, 2)))
    assert record.data.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "arrays, names, word",
    [
        ([np.zeros(2, "complex64")], [], "complex64"),
        ([np.zeros(2, "f4")], ["a", "b"], "2 names"),
        ([np.zeros(2, "f4")], [b"a"], "strings"),
        ([[1, 2]], [], "list"),
        ([np.float32(1) + np.zeros((), "f4")[()]], [], "NumPy array"),
        ([np.zeros((), "f4")], ["s"], "scalar"),
        ([Record(np.zeros(2, "f4"), (3,))], [], "shape"),
        ([Record(np.zeros(2, "f4"), (3,), "coo")], [], "coo"),
        ([Record(np.zeros(2, "f4"), (3,), "csr")], [], "indptr"),
    ],
)
def test_what_cannot_be_written_says_why(arrays, names, word):
    with pytest.raises(MXNetError, match=word):
        dump(arrays, names)


def test_every_cut_is_found_and_located():
    content = (GOLDEN / "csr.params").read_bytes()
    for n in range(len(content)):
        with pytest.raises(MXNetError, match=r"file\.params.*offset \d+, while reading") as caught:
            load(content[:n], "file.params")
        assert isinstance(caught.value, ValueError)
    with pytest.raises(MXNetError, match=r"24 bytes expected, 18 left.*offset 152, while reading the ind"):
        load(content[:170])
    with pytest.raises(MXNetError, match=r"while reading name 1 of 2"):
        load(content[:-1])


def test_no_damaged_byte_escapes():
    content = (GOLDEN / "row_sparse.params").read_bytes()
    caught = 0
    for i in range(len(content)):
        for value in (0, 0x7F, 0xFF):
            damaged = content[:i] + bytes([value]) + content[i + 1 :]
            try:
                load(damaged)
            except MXNetError:
                caught += 1
    assert caught > 100


@pytest.mark.parametrize("shape", [(1 << 40,), (1 << 31, 1 << 31, 1 << 31), (0, 1 << 62)])
@pytest.mark.parametrize("known_length", [True, False])
def test_absurd_sizes_are_never_allocated(shape, known_length):
    head = struct.pack("<QQQIi", 0x112, 0, 1, serialization.V2, 0)
    body = struct.pack(f"<i{len(shape)}qiii", len(shape), *shape, 1, 0, 0) + bytes(12)
    stream = io.BytesIO(head + body)
    size = len(stream.getvalue()) if known_length else None
    with pytest.raises(MXNetError, match="array 0|names"):
        serialization._Reader(stream, size, "x").read_list()


@pytest.mark.parametrize("shape", [(2**32 - 1,) * 32, (2**31, 2**31), (0, *(2**32 - 1,) * 3)])
def test_absurd_shapes_of_the_first_versions(shape):
    data = struct.pack(f"<QQQI{len(shape)}Iiii", 0x112, 0, 1, len(shape), *shape, 1, 0, 0) + bytes(30)
    with pytest.raises(
        MXNetError, match=r"absurd shape .*offset 28, while reading the shape of array 0 of 1|truncated"
    ):
        load(data)


def test_millions_of_empty_entries_take_little():
    """They are one object, and no text is made for any of them."""
    many = 200_000
    data = struct.pack("<QQQ", 0x112, 0, many) + bytes(4 * many) + bytes(8)
    records, names = load(data)
    assert len(records) == many and len({id(r) for r in records}) == 1 and records[0].data is None and names == []
    tracemalloc.start()
    load(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * many
    with pytest.raises(
        MXNetError, match=f"4 bytes expected, 0 left.*while reading the kind of array {many - 1} of {many}|truncated"
    ):
        load(data[:-12])


@pytest.mark.parametrize("more", [b"\0", bytes(8), b"junk" * 100])
def test_bytes_behind_the_end_are_refused(more):
    whole = dump([np.ones(2, "f4")], ["a"])
    with pytest.raises(
        MXNetError, match=rf"{len(more)} bytes follow the last entry.*offset {len(whole)}, while reading the end"
    ):
        load(whole + more)
    with pytest.raises(MXNetError, match="more bytes follow"):
        serialization._Reader(io.BytesIO(whole + more), None, "pipe").read_list()
    with pytest.raises(MXNetError, match="bytes follow"):
        load_record(dump_record(np.ones(2, "f4")) + more)


def test_two_arrays_of_one_name_are_refused():
    one, other = np.ones(2, "f4"), np.zeros(3, "f4")
    data = dump([one, other], ["a", "b"]).replace(b"b", b"a")
    with pytest.raises(MXNetError, match="two arrays are named 'a', one would be lost"):
        load(data)
    assert load(dump([one, other]))[1] == []


@pytest.mark.parametrize("key", [1, None, ("a",), b"a"])
def test_names_are_text(tmp_path, key):
    """As in MXNet: 1 and "1" would be one name, and the file none that can be read."""
    path = str(tmp_path / "a")
    mx.nd.save(path, {"1": mx.nd.ones(1)})
    with pytest.raises(TypeError, match="names of arrays are text, got"):
        mx.nd.save(path, {"1": mx.nd.zeros(1), key: mx.nd.zeros(1)})
    assert mx.nd.load(path)["1"].asscalar() == 1


def test_names_that_no_file_can_hold():
    with pytest.raises(MXNetError, match="name of an array holds half of a character"):
        dump([np.ones(2, "f4")], ["\ud800"])


@pytest.mark.parametrize("value", [None, "abc", 3])
def test_what_is_no_bytes(value):
    with pytest.raises(MXNetError, match="arrays are read from bytes"):
        load(value)


def test_a_sparse_array_may_be_larger_than_memory_as_long_as_it_is_sparse(tmp_path):
    path = tmp_path / "a.params"
    save_file(path, [Record(np.ones(1, "f4"), (3, 1 << 50), "csr", (np.array([0, 1, 1, 1]), np.array([5])))])
    (found,) = mx.nd.load(str(path))
    assert found.shape == (3, 1 << 50) and found.indices.asnumpy().tolist() == [5]
    with pytest.raises(MXNetError, match=r"csr array of shape \(3, 1125899906842624\) does not fit into memory"):
        found.asnumpy()


def test_absurd_counts():
    with pytest.raises(MXNetError, match="truncated"):
        load(struct.pack("<QQQ", 0x112, 0, 1 << 60))
    with pytest.raises(MXNetError, match="3 names"):
        load(struct.pack("<QQQQ", 0x112, 0, 0, 3))
    with pytest.raises(MXNetError, match="dimensions"):
        load(struct.pack("<QQQIii", 0x112, 0, 1, serialization.V2, 0, 1 << 20) + bytes(100))


def test_streams_that_cannot_seek():
    class Pipe(io.RawIOBase):
        def __init__(self, content):
            self.rest = io.BytesIO(content)

        def readable(self):
            return True

        def readinto(self, out):
            return self.rest.readinto(memoryview(out)[:7])  # small pieces, as from a socket

    content = (GOLDEN / "list.params").read_bytes()
    records, _ = serialization._Reader(io.BufferedReader(Pipe(content)), None, "pipe").read_list()
    assert dump(records) == content
    with pytest.raises(MXNetError, match="truncated"):
        serialization._Reader(io.BufferedReader(Pipe(content[:150])), None, "pipe").read_list()


def sparse(stype, shape, data, *aux):
    return dump([Record(np.array(data, "f4"), shape, stype, tuple(np.array(a, "int64") for a in aux))])


@pytest.mark.parametrize(
    "stype, data, aux, known, unknown",
    [
        ("row_sparse", [[0, 1], [2, 3]], [[0, 2]], (2, 2), (0, 2)),
        ("csr", [1, 2, 3], [[0, 1, 1, 3], [1, 0, 1]], (3,), (0,)),
    ],
)
def test_the_indices_tell_the_stored_shape_of_what_mxnet_saved_before_it_was_computed(stype, data, aux, known, unknown):
    known, unknown = map(serialization._shape_bytes, (known, unknown))
    ((found,), _) = load(sparse(stype, (3, 2), data, *aux).replace(known, unknown, 1))
    assert found.data.tolist() == data and [a.tolist() for a in found.aux] == aux


@pytest.mark.parametrize(
    "content, word",
    [
        (sparse("row_sparse", (3, 2), [[1, 2]], [3]), "out of range"),
        (sparse("row_sparse", (3, 2), [[1, 2]], [-1]), "out of range"),
        (sparse("row_sparse", (3, 2), [[1, 2], [3, 4]], [1, 1]), "increase"),
        (sparse("row_sparse", (3, 2), [[1, 2]], [0, 1]), "2 indices"),
        (sparse("row_sparse", (3, 2), [[1, 2, 3]], [0]), "stored rows"),
        (sparse("csr", (2, 2), [1], [0, 1, 1], [2]), "out of range"),
        (sparse("csr", (2, 2), [1], [0, 2, 1], [0]), "does not rise"),
        (sparse("csr", (3, 4), [1, 2], [0, 2**63 - 1, -2, 2], [0, 3]), "does not rise"),  # differences wrap around
        (sparse("csr", (2, 2), [1], [0, 1], [0]), "2 entries for 2 rows"),
        (sparse("csr", (2, 2), [], [], []), "0 entries for 2 rows"),
        (sparse("csr", (2, 2, 1), [1], [0, 1, 1], [0]), "expected a matrix"),
    ],
)
def test_sparse_indices_are_checked(content, word):
    with pytest.raises(MXNetError, match=word):
        load(content)


def test_rows_that_mxnet_wrote_unsorted_are_sorted():
    ((found,), _) = load(sparse("row_sparse", (5, 1), [[1], [2], [3]], [3, 0, 1]))
    assert found.data.tolist() == [[2], [3], [1]] and found.aux[0].tolist() == [0, 1, 3]


def test_a_sparse_array_needs_rows():
    data = dump([Record(np.ones(1, "f4"), (), "row_sparse", (np.zeros(1, "int64"),), np_shape=True)])
    with pytest.raises(MXNetError, match="it has no rows"):
        load(data)


def zipped():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("a.npy", "")
    return out.getvalue()


@pytest.mark.parametrize(
    "content, word",
    [
        (b"", "empty"),
        (b"\x12\x01", "2 bytes"),
        (zipped(), "npz"),
        (b"\x93NUMPY\x01\x00" + bytes(20), "numpy.load"),
        (b'\n{"nodes": []}        ', "JSON"),
        (b"\x1f\x8b\x08" + bytes(20), "gzip"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (pickle.dumps({0: 1.5, 1: "abcdefgh"}), "pickle"),
        (struct.pack("<II", 0xCED7230A, 8) + bytes(8), "RecordIO"),
        (struct.pack(">QQ", 0x112, 0), "big-endian"),
        (dump_record(np.zeros(9, "f4")), "single array"),
        (b"\x07" * 30, "starts with 07 07"),
    ],
)
def test_other_files_are_recognised(content, word, tmp_path):
    path = tmp_path / "other.params"
    path.write_bytes(content)
    with pytest.raises(MXNetError, match=word) as caught:
        load_file(path)
    assert "other.params" in str(caught.value) and "0x112" in str(caught.value)


@pytest.mark.parametrize("code", [8, 13, -1])
def test_dtypes_that_mxnet_does_not_know(code):
    content = bytearray((GOLDEN / "float32.params").read_bytes())
    content[60:64] = struct.pack("<i", code)
    with pytest.raises(MXNetError, match=f"dtype code {code}"):
        load(content)


def test_a_failed_save_keeps_the_file(tmp_path):
    path = tmp_path / "w.params"
    save_file(path, [np.ones(3, "f4")], ["w"])
    before = path.read_bytes()
    with pytest.raises(MXNetError, match="complex"):
        save_file(path, [np.ones(300, "f4"), np.ones(3, "complex64")], ["v", "w"])
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["w.params"]


def test_operators_without_room_for_a_dense_array_say_so():
    """A sparse array of a few bytes may have any shape."""
    wide = mx.nd.sparse.csr_matrix((np.ones(1, "float32"), [1 << 49], [0, 1]), shape=(1, 1 << 50))
    assert wide.sum().asscalar() == 1
    for use in (lambda: mx.nd.exp(wide), lambda: wide + 1, lambda: mx.nd.cos(wide)):
        # Where several contexts are in use, the result is made before the array is turned dense.
        with pytest.raises(
            MemoryError, match="csr array of shape .* does not fit into memory|operator .*Unable to allocate"
        ) as caught:
            use()
        assert isinstance(caught.value, MXNetError)


@pytest.mark.parametrize("shape, kind", [((10**12, 10**4), MemoryError), ((1,) * 501, ValueError)])
def test_room_that_there_is_not_is_refused_by_name(shape, kind):
    with pytest.raises(kind, match="operator empty with shape") as caught:
        mx.nd.empty(shape)
    assert isinstance(caught.value, MXNetError)


def test_arrays_of_the_host_are_written_from_their_own_memory_and_read_into_it(tmp_path):
    x = mx.nd.arange(1 << 18)
    rows = x[16:32]
    for a in (x, rows):
        assert np.shares_memory(to_record(a).data, a._data)
    y = mx.nd.array(np.arange(12).reshape(3, 4)).T  # of any layout
    flags = mx.nd.array([1, 0, 1], dtype="bool")
    file = str(tmp_path / "a")
    mx.nd.save(file, {"x": x, "rows": rows, "y": y, "flags": flags})
    for found in (mx.nd.load(file), mx.nd.load_frombuffer((tmp_path / "a").read_bytes())):
        assert {n: (a.asnumpy().tolist(), a.dtype) for n, a in found.items()} == {
            n: (a.asnumpy().tolist(), a.dtype) for n, a in {"x": x, "rows": rows, "y": y, "flags": flags}.items()
        }
        big = found["x"]
        assert big.context.device.owns(big._data) and big.writable
        big += 1
        assert found["rows"].asnumpy()[0] == 16 and x.asnumpy()[0] == 0
    with mx.Context("cpu_pinned"):
        pinned = mx.nd.load(file)["x"]
        assert pinned.context == mx.Context("cpu_pinned") and (pinned.asnumpy() == x.asnumpy()).all()
