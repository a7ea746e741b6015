"""`MXRecordIO` and `MXIndexedRecordIO`: files as MXNet writes and reads them, threads, forks, stores."""

import errno
import gc
import io
import os
import pickle
import shutil
import signal
import threading
import zipfile
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import mxcore as mx
from mxcore.base import MXNetError
from mxcore_io_rec import make_index, source
from mxcore_io_rec.recordio import (
    IRHeader,
    MXIndexedRecordIO,
    MXRecordIO,
    pack,
    pack_img,
    read_index,
    unpack,
    unpack_img,
)
from mxcore_io_rec.records import RecordFile

from .cases import payloads

GOLDEN = Path(__file__).parent / "golden"
LABELS = [3, 2.5, [1, 2, 3], np.arange(7, dtype="float32")]


def golden_records():
    return payloads() + [pack(IRHeader(0, label, 2**40 + i, 0), b"image") for i, label in enumerate(LABELS)]


def filled(folder, records, keys=None):
    keys = range(len(records)) if keys is None else keys
    with MXIndexedRecordIO(folder / "a.idx", folder / "a.rec", "w") as record:
        for key, data in zip(keys, records):
            record.write_idx(key, data)
    return folder / "a.idx", folder / "a.rec"


def test_the_bytes_are_mxnets(tmp_path):
    idx, rec = filled(tmp_path, golden_records())
    assert rec.read_bytes() == (GOLDEN / "framing.rec").read_bytes()
    assert idx.read_bytes() == (GOLDEN / "framing.idx").read_bytes()


def test_mxnets_files_are_read():
    assert list(MXRecordIO(GOLDEN / "framing.rec", "r")) == golden_records()
    indexed = MXIndexedRecordIO(GOLDEN / "framing.idx", GOLDEN / "framing.rec", "r")
    assert [indexed.read_idx(key) for key in reversed(indexed.keys)] == golden_records()[::-1]


def test_labels_come_back():
    for i, (label, record) in enumerate(zip(LABELS, golden_records()[-len(LABELS) :])):
        header, data = unpack(record)
        assert data == b"image" and header.id == 2**40 + i
        assert header.flag == np.size(label) * (not np.isscalar(label))
        np.testing.assert_array_equal(header.label, np.float32(label))


@pytest.mark.parametrize("label", [True, np.float64(1.5), np.int64(4), 2])
def test_any_number_is_one_label(label):
    header, _ = unpack(pack(IRHeader(9, label, 1, 2), b""))
    assert header == (0, np.float32(label), 1, 2)


def test_header_looks_and_travels_as_mxnets():
    header = IRHeader(0, 1.0, 2, 3)
    assert repr(header) == "HEADER(flag=0, label=1.0, id=2, id2=3)"
    assert pickle.loads(pickle.dumps(header)) == header


@pytest.mark.parametrize(
    "header",
    [IRHeader(0, 1, -1, 0), (0, 1, 2), IRHeader(0, "x", 1, 0), IRHeader(0, 1, 2**64, 0), IRHeader(0, [1e300, 1], 0, 0)],
)
def test_headers_that_do_not_fit(header):
    with pytest.raises(MXNetError, match="pack"):
        pack(header, b"")


@pytest.mark.parametrize("record", [b"", b"x" * 23, pack(IRHeader(0, [1, 2], 0, 0), b"")[:-1]])
def test_records_too_short_to_unpack(record):
    with pytest.raises(ValueError, match="unpack") as caught:
        unpack(record)
    assert isinstance(caught.value, MXNetError)


@pytest.mark.parametrize("record", [None, 5, "text" * 10, [1] * 30])
def test_what_is_no_record(record):
    for read in (unpack, unpack_img):
        with pytest.raises(MXNetError, match="unpack: a record must be bytes, not (NoneType|int|str|list)"):
            read(record)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3, 4]), st.integers(0, 2**32 - 1))
def test_images_come_back(height, width, channels, seed):
    image = np.random.RandomState(seed).randint(0, 256, (height, width, channels), dtype=np.uint8)
    header, found = unpack_img(pack_img(IRHeader(0, 7, 1, 0), image, img_fmt=".png", quality=3))
    assert header.label == 7
    np.testing.assert_array_equal(found.reshape(image.shape), image)


def test_jpeg_is_near_and_smaller_with_less_quality():
    y, x = np.mgrid[:64, :64]
    image = np.stack([x * 3, y * 3, x + y], -1).astype(np.uint8)
    good, poor = (pack_img(IRHeader(0, 0, 0, 0), image, quality=q) for q in (95, 20))
    assert len(poor) < len(good)
    assert np.abs(unpack_img(good, 1)[1].astype(int) - image).mean() < 3
    assert unpack_img(good, 0)[1].shape == (64, 64)


def test_images_that_cannot_be_coded():
    with pytest.raises(ValueError, match="cannot decode the image of 5 bytes"):
        unpack_img(pack(IRHeader(0, 0, 0, 0), b"nopng"))
    with pytest.raises(ValueError, match="cannot encode"):
        pack_img(IRHeader(0, 0, 0, 0), np.zeros((4, 4), np.uint8), img_fmt=".nope")
    with pytest.raises(ValueError, match="cannot encode"):
        pack_img(IRHeader(0, 0, 0, 0), "no image")


def test_reading_by_key_moves_the_place(tmp_path):
    idx, rec = filled(tmp_path, [b"five", b"three", b"nine"], keys=[5, 3, 9])
    record = MXIndexedRecordIO(idx, rec, "r")
    assert record.keys == [5, 3, 9] and record.idx == {5: 0, 3: 12, 9: 28}
    assert record.read_idx(3) == b"three" and record.read() == b"nine" and record.read() is None
    record.seek(5)
    assert record.tell() == 0 and record.read() == b"five" and record.tell() == 12
    record.reset()
    assert record.read() == b"five"


def test_keys_of_other_types(tmp_path):
    with MXIndexedRecordIO(tmp_path / "s.idx", tmp_path / "s.rec", "w", key_type=str) as record:
        record.write_idx("a b", b"1")
        record.write_idx("c", b"2")
    assert MXIndexedRecordIO(tmp_path / "s.idx", tmp_path / "s.rec", "r", key_type=str).read_idx("a b") == b"1"


def test_keys_that_an_index_cannot_hold(tmp_path):
    with MXIndexedRecordIO(tmp_path / "s.idx", tmp_path / "s.rec", "w", key_type=str) as record:
        for key in ("a\tb", "a\n", "\r"):
            with pytest.raises(ValueError, match="holds a tab or a line break"):
                record.write_idx(key, b"1")
    assert (tmp_path / "s.rec").read_bytes() == b""


def test_wrong_use_is_told(tmp_path):
    idx, rec = filled(tmp_path, [b"x"])
    with pytest.raises(ValueError, match="flag must be 'r' or 'w', not 'a'"):
        MXRecordIO(rec, "a")
    with pytest.raises(ValueError, match="on_error must be one of"):
        MXRecordIO(rec, "r", on_error="ignore")
    reader = MXIndexedRecordIO(idx, rec, "r")
    with pytest.raises(AssertionError, match="open for reading, not for writing"):
        reader.write(b"x")
    with pytest.raises(KeyError, match="no key 77 among its 1, such as 0"):
        reader.read_idx(77)
    reader.close()
    reader.close()
    with pytest.raises(ValueError, match="is closed"):
        reader.read()
    with MXRecordIO(tmp_path / "w.rec", "w") as writer, pytest.raises(AssertionError, match="open for writing"):
        writer.read()
    with pytest.raises(TypeError, match="holds bytes, not str"), MXRecordIO(tmp_path / "w.rec", "w") as writer:
        writer.write("text")
    for name in (3, b"a.rec", ""):
        with pytest.raises(TypeError, match="the name of a record file must be a non-empty string or a path, not "):
            MXRecordIO(name, "r")


@pytest.mark.parametrize("name", ["no.rec", "no/folder.rec"])
def test_missing_files(tmp_path, name):
    for flag in "rw" if "/" in name else "r":
        with pytest.raises(FileNotFoundError, match="no.*rec") as caught:
            MXRecordIO(tmp_path / name, flag)
        assert isinstance(caught.value, MXNetError)
    shutil.copy(GOLDEN / "framing.rec", tmp_path / "a.rec")
    with pytest.raises(FileNotFoundError, match="b.idx"):
        MXIndexedRecordIO(tmp_path / "b.idx", tmp_path / "a.rec", "r")


@pytest.mark.parametrize("text", ["0\t0\n1\n", "0\tx\n", "x\t0\n", "0\t-1\n", "0 0\n"])
def test_broken_indexes_name_file_and_line(tmp_path, text):
    (tmp_path / "a.idx").write_text(text)
    line = text.count("\n")
    with pytest.raises(ValueError, match=rf"line {line} of the index '.*a\.idx'"):
        read_index(tmp_path / "a.idx")


def test_an_index_can_be_remade(tmp_path):
    idx, rec = filled(tmp_path, golden_records())
    assert make_index(rec, tmp_path / "new.idx") == len(golden_records())
    assert (tmp_path / "new.idx").read_bytes() == idx.read_bytes()


def test_a_full_disk_is_told():
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    writer = MXRecordIO("/dev/full", "w")
    with pytest.raises(OSError, match="cannot write '/dev/full'") as caught:
        for _ in range(100):
            writer.write(b"x" * 10000)
    assert isinstance(caught.value, MXNetError)
    with pytest.raises(OSError, match="No space"):
        writer.close()


# -- threads and processes ---------------------------------------------------------------------------


def in_threads(count, work):
    results, threads = [], []
    for i in range(count):
        threads.append(threading.Thread(target=lambda i=i: results.append(work(i))))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert len(results) == count
    return results


def test_threads_share_a_reader(tmp_path):
    records = [b"%d" % i * (i % 50 + 1) for i in range(2000)]
    idx, rec = filled(tmp_path, records)
    sequential, indexed = MXRecordIO(rec, "r"), MXIndexedRecordIO(idx, rec, "r")
    parts = in_threads(4, lambda _: list(sequential))
    assert sorted(sum(parts, [])) == sorted(records)

    def by_key(seed):
        keys = np.random.RandomState(seed).permutation(2000).tolist()
        return all(indexed.read_idx(k) == records[k] for k in keys)

    assert in_threads(4, by_key) == [True] * 4


def test_threads_share_a_writer(tmp_path):
    with MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "w") as record:
        in_threads(4, lambda t: [record.write_idx(t * 300 + i, b"%d" % (t * 300 + i)) for i in range(300)])
    reader = MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "r")
    assert [reader.read_idx(i) for i in range(1200)] == [b"%d" % i for i in range(1200)]


def in_child(work):
    """Result of a function in a forked child."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(into, pickle.dumps(work()))
        finally:
            os._exit(0)
    os.close(into)
    os.waitpid(pid, 0)
    with os.fdopen(out, "rb") as f:
        return pickle.loads(f.read())


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@needs_fork
def test_a_forked_child_reads_on_its_own(tmp_path):
    idx, rec = filled(tmp_path, [b"%d" % i for i in range(100)])
    reader = MXIndexedRecordIO(idx, rec, "r")
    assert [reader.read() for _ in range(3)] == [b"0", b"1", b"2"]
    reader._lock.acquire()  # as if another thread was reading
    assert in_child(lambda: (reader.read(), reader.read_idx(50), reader.read())) == (b"3", b"50", b"51")
    reader._lock.release()
    assert reader.read() == b"3"


@pytest.mark.parametrize("look", [lambda file: file.size(), lambda file: file.read(0, 4)], ids=["size", "read"])
@pytest.mark.parametrize("when", ["before", "in between"])
def test_a_file_that_was_closed_while_it_is_looked_at_says_so(tmp_path, monkeypatch, look, when):
    (tmp_path / "a").write_bytes(bytes(8))
    file = source.LocalFile(str(tmp_path / "a"))
    if when == "before":
        file.close()
    else:  # when the system has been given its number
        fstat, own = os.fstat, file._file.fileno()

        def gone(number):
            if number == own:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            return fstat(number)

        monkeypatch.setattr(os, "fstat", gone)
    with pytest.raises(MXNetError, match="closed while another thread read it"):
        look(file)


def test_a_writer_that_is_opened_again_completes_what_it_wrote(tmp_path):
    """And does not put it in the place of what comes later, when its draft is collected."""
    record = MXRecordIO(tmp_path / "a.rec", "w")
    record.write(b"old")
    record.open()
    assert list(MXRecordIO(tmp_path / "a.rec", "r")) == [b"old"]
    record.write(b"new")
    record.close()
    del record
    gc.collect()
    assert list(MXRecordIO(tmp_path / "a.rec", "r")) == [b"new"]


@pytest.mark.parametrize("flag", ["w", "r"])
def test_threads_wait_while_a_file_is_opened_again(tmp_path, monkeypatch, flag):
    name = tmp_path / "a.idx", tmp_path / "a.rec"
    with MXIndexedRecordIO(*name, "w") as record:
        record.write_idx(1, b"first")
    record, half, go = MXIndexedRecordIO(*name, flag), threading.Event(), threading.Event()
    source = record._source if flag == "r" else None
    begin = record._begin

    def slowly():
        half.set()
        assert go.wait(10)
        begin()

    monkeypatch.setattr(record, "_begin", slowly)
    resets = threading.Thread(target=record.reset)
    resets.start()
    assert half.wait(10)
    found = []
    if flag == "w":
        other = threading.Thread(target=lambda: (record.write_idx(2, b"second"), record.close()))
    else:
        other = threading.Thread(target=lambda: found.extend((record.tell(), record.read_idx(1))))
    other.start()
    go.set()
    resets.join()
    other.join()
    if flag == "w":
        assert list(MXRecordIO(name[1], "r")) == [b"second"]
    else:
        assert found == [0, b"first"]
        assert source.read(0, 1)  # which others may be reading by a key


@needs_fork
def test_records_are_found_in_a_child_whatever_threads_of_its_parent_are_doing(tmp_path):
    """One of them holds the lock, has moved the window, and has noted a record but not the place behind it."""
    _, rec = filled(tmp_path, [b"%d" % i for i in range(100)])
    records = RecordFile(str(rec), neighbour=False)
    assert records.known(10) == 10 and records._next is not None
    kept = records._scan
    taken, done = threading.Event(), threading.Event()

    def search():
        with records._lock:
            taken.set()
            done.wait(30)

    def find():
        signal.alarm(20)
        return records.known(1000), [records.read(i) for i in (0, 10, 11, 99)]

    thread = threading.Thread(target=search)
    thread.start()
    taken.wait()
    records._scan = None
    records._offsets.append(records._next)
    try:
        assert in_child(find) == (100, [b"0", b"10", b"11", b"99"])
    finally:
        records._scan = kept
        done.set()
        thread.join()
    assert find() == (100, [b"0", b"10", b"11", b"99"])
    signal.alarm(0)


@needs_fork
def test_a_forked_child_may_not_write(tmp_path):
    writer = MXRecordIO(tmp_path / "a.rec", "w")
    writer.write(b"parent")

    def attempt():
        try:
            writer.write(b"child")
        except RuntimeError as e:
            writer.close()  # which must not write what the parent has yet to write
            return str(e)

    assert "forked child must write a file of its own" in in_child(attempt)
    writer.close()
    assert list(MXRecordIO(tmp_path / "a.rec", "r")) == [b"parent"]


def test_readers_are_pickled_and_begin_anew(tmp_path):
    idx, rec = filled(tmp_path, [b"%d" % i for i in range(5)])
    reader = MXIndexedRecordIO(idx, rec, "r")
    assert reader.read_idx(3) == b"3"
    copy = pickle.loads(pickle.dumps(reader))
    assert copy.read() == b"0" and copy.read_idx(4) == b"4" and copy.keys == reader.keys
    reader.close()
    assert not pickle.loads(pickle.dumps(reader)).is_open
    with MXRecordIO(tmp_path / "w.rec", "w") as writer, pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(writer)


@pytest.mark.skipif(not hasattr(os, "pread"), reason="needs pread")
def test_systems_without_pread_and_interrupted_reads(tmp_path, monkeypatch):
    idx, rec = filled(tmp_path, golden_records())
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, position: pread(fd, min(n, 5), position))
    assert list(MXRecordIO(rec, "r")) == golden_records()
    monkeypatch.delattr(os, "pread")
    reader = MXIndexedRecordIO(idx, rec, "r")
    assert list(reader) == golden_records() and reader.read_idx(9) == golden_records()[9]


# -- stores ------------------------------------------------------------------------------------------


@pytest.fixture
def store():
    pytest.importorskip("fsspec")
    from fsspec.implementations.memory import MemoryFileSystem

    yield "memory://store"
    MemoryFileSystem.store.clear()


def test_files_in_a_store(store):
    with MXIndexedRecordIO(f"{store}/a.idx", f"{store}/a.rec", "w") as record:
        for i, data in enumerate(golden_records()):
            record.write_idx(i, data)
    assert list(MXRecordIO(f"{store}/a.rec", "r")) == golden_records()
    indexed = MXIndexedRecordIO(f"{store}/a.idx", f"{store}/a.rec", "r")
    assert indexed.read_idx(9) == golden_records()[9]
    assert pickle.loads(pickle.dumps(indexed)).read() == golden_records()[0]
    if hasattr(os, "fork"):
        assert in_child(lambda: indexed.read_idx(9)) == golden_records()[9]
    with pytest.raises(FileNotFoundError, match="memory://store/none.rec"):
        MXRecordIO(f"{store}/none.rec", "r")


def test_file_urls_are_paths(tmp_path):
    _, rec = filled(tmp_path, [b"x"])
    assert MXRecordIO(f"file://{rec}", "r").read() == b"x"


def test_a_damaged_archive_is_told(tmp_path):
    pytest.importorskip("fsspec")
    (tmp_path / "a.zip").write_bytes(b"PK\3\4 no archive")
    for flag, said in (
        ("r", "read '.*a.zip': BadZipFile: File is not a zip file"),
        ("w", "write '.*a.zip': archives are"),
    ):
        with pytest.raises(MXNetError, match=f"cannot {said}") as caught:
            MXRecordIO(f"zip://a.rec::{tmp_path}/a.zip", flag)
        assert isinstance(caught.value, OSError)


def test_records_that_unfold_beyond_the_limit_are_refused(tmp_path, monkeypatch):
    pytest.importorskip("fsspec")
    _, rec = filled(tmp_path, [bytes(1 << 20)])
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.write(rec, "a.rec")
    url = f"zip://a.rec::{tmp_path}/a.zip"
    assert MXRecordIO(url, "r").read() == bytes(1 << 20)
    monkeypatch.setenv("MXCORE_MAX_UNPACKED_BYTES", str(1 << 19))
    with pytest.raises(ValueError, match=r"a\.zip tells of 10485\d\d bytes, more than the 524288"):
        MXRecordIO(url, "r")


def test_unknown_stores_are_told():
    with pytest.raises(ValueError, match="nostore://x"):
        MXRecordIO("nostore://x", "r")


def test_the_public_face_is_the_plugins():
    assert mx.recordio.MXRecordIO is MXRecordIO and mx.recordio.IRHeader is IRHeader
    assert {"pack", "unpack_img", "MXIndexedRecordIO"} <= set(dir(mx.recordio))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        mx.recordio.nonsense  # noqa: B018


def test_records_and_index_are_two_files(tmp_path):
    with pytest.raises(ValueError, match="name two files"):
        MXIndexedRecordIO(str(tmp_path / "a"), str(tmp_path / ".." / tmp_path.name / "a"), "w")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a").write_bytes(b"records")
    (tmp_path / "a.idx").symlink_to(tmp_path / "a")
    with pytest.raises(ValueError, match="name two files"):
        MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a"), "w")
    assert (tmp_path / "a").read_bytes() == b"records"


def test_numbers_that_share_a_hash_are_no_keys(tmp_path):
    """A table of them takes quadratic time: 5 MB of an index, minutes."""
    from mxcore_io_rec.labels import read_labels

    with MXRecordIO(str(tmp_path / "a.rec"), "w") as record:
        record.write(b"one")
    (tmp_path / "a.idx").write_bytes(b"".join(b"%d\t0\n" % (i * ((1 << 61) - 1)) for i in range(30)))
    with pytest.raises(ValueError, match="line 10 of the index .* more than 64 bits"):
        MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "r")
    (tmp_path / "a.lst").write_bytes(b"%d\t1\ta.jpg\n" % (1 << 64))
    with pytest.raises(ValueError, match="line 1 of the list .* more than 64 bits"):
        read_labels(str(tmp_path / "a.lst"))


def test_what_could_not_be_read_again_is_no_key(tmp_path):
    names = [str(tmp_path / name) for name in ("a.idx", "a.rec")]
    with MXIndexedRecordIO(*names, "w") as record:
        with pytest.raises(ValueError, match="18446744073709551616 is no key: the number has more than 64 bits"):
            record.write_idx(1 << 64, b"one")
        with pytest.raises(ValueError, match="'x' is no key"):
            record.write_idx("x", b"one")
        record.write_idx((1 << 64) - 1, b"two")
    with MXIndexedRecordIO(*names, "r") as record:
        assert record.keys == [(1 << 64) - 1] and record.read_idx(record.keys[0]) == b"two"


@pytest.mark.parametrize("name", ["a\0b.idx", "\ud800.idx"])
@pytest.mark.parametrize("flag", ["r", "w"])
def test_an_index_whose_name_no_file_can_have(name, flag, tmp_path):
    with MXRecordIO(str(tmp_path / "a.rec"), "w") as record:
        record.write(b"one")
    with pytest.raises(ValueError) as caught:
        MXIndexedRecordIO(str(tmp_path / name), str(tmp_path / "a.rec"), flag)
    assert isinstance(caught.value, MXNetError)
    assert [p.name for p in tmp_path.iterdir()] == ["a.rec"]


def test_records_that_were_read_are_read_however_their_file_closes(tmp_path, monkeypatch):
    class Failing(io.FileIO):
        def close(self):
            super().close()
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = str(tmp_path / "a.rec")
    with MXIndexedRecordIO(str(tmp_path / "a.idx"), path, "w") as writer:
        writer.write_idx(3, b"abc")
    monkeypatch.setattr(source, "open", lambda path, mode, buffering: Failing(path, mode), raising=False)
    reader = MXIndexedRecordIO(str(tmp_path / "a.idx"), path, "r")
    assert reader.read_idx(3) == b"abc"
    reader.close()
    file = source.LocalFile(path)
    assert file.read(0, file.size())
    file.__del__()
