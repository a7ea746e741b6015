"""Record files that are replaced, or written over, while they are read: the old file whole, or an error."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap

import fsspec
import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.gluon.data import DataLoader, RecordFileDataset
from mxcore_io_rec import source
from mxcore_io_rec.recordio import MXIndexedRecordIO, MXRecordIO
from mxcore_io_rec.records import RecordFile

cv2 = pytest.importorskip("cv2")


def said(path):
    return rf"{str(path)!r} (was replaced|was written over).* since it was opened.*anew"


def write(folder, word, n=8, width=16):
    """Records of one length, so that offsets of another file fit as well."""
    with MXIndexedRecordIO(f"{folder}/a.idx", f"{folder}/a.rec", "w") as record:
        for i in range(n):
            record.write_idx(i, f"{word} {i}".ljust(width).encode())


def over(folder, word, n=8, width=16):
    """As programs write that know no drafts: into the file that others have open."""
    other = folder / "other"
    other.mkdir(exist_ok=True)
    write(other, word, n, width)
    for name in ("a.rec", "a.idx"):
        (folder / name).write_bytes((other / name).read_bytes())
        os.utime(folder / name, ns=(1, 1))  # clocks of file systems may be too coarse for a test


SHAPES = {"shorter": 3, "longer": 20, "other": 8}


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "old")
    return tmp_path


@pytest.mark.parametrize("n", SHAPES.values(), ids=SHAPES)
def test_an_open_reader_reads_the_old_file_whole(folder, n):
    sequential, indexed = MXRecordIO(folder / "a.rec", "r"), MXIndexedRecordIO(folder / "a.idx", folder / "a.rec", "r")
    numbered = RecordFile(str(folder / "a.rec"))
    sequential.read()
    write(folder, "new", n)
    assert [r[:3] for r in sequential] == [b"old"] * 7
    assert {indexed.read_idx(i)[:3] for i in range(8)} == {numbered.read(i)[:3] for i in range(8)} == {b"old"}


@pytest.mark.parametrize("n", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("duplicate", [lambda r: pickle.loads(pickle.dumps(r)), copy.deepcopy], ids=["pickle", "copy"])
def test_a_copy_is_of_the_same_file_or_of_none(folder, n, duplicate):
    reader = MXIndexedRecordIO(folder / "a.idx", folder / "a.rec", "r")
    assert duplicate(reader).read_idx(7).startswith(b"old 7")
    write(folder, "new", n)
    for made in (reader, MXRecordIO(folder / "a.rec", "r")):
        if made is reader:
            with pytest.raises(MXNetError, match=said(folder / "a.rec")) as caught:
                duplicate(made)
            assert isinstance(caught.value, OSError)
        else:
            assert duplicate(made).read().startswith(b"new 0")


def test_a_copy_keeps_the_index_of_its_original(folder):
    reader = MXIndexedRecordIO(folder / "a.idx", folder / "a.rec", "r")
    (folder / "a.idx").write_text("0\t0\n")
    assert pickle.loads(pickle.dumps(reader)).keys == reader.keys == list(range(8))
    (folder / "a.idx").unlink()
    assert pickle.loads(pickle.dumps(reader)).read_idx(7).startswith(b"old 7")


def test_a_pickle_of_another_machine(folder, monkeypatch):
    """Its copy of the file is another file with other times: length and end tell."""
    monkeypatch.setattr(source, "_MACHINE", "another")
    there = pickle.dumps(MXIndexedRecordIO(folder / "a.idx", folder / "a.rec", "r"))
    monkeypatch.undo()
    write(folder, "old")
    assert pickle.loads(there).read_idx(7).startswith(b"old 7")
    for word, n in (("new", 8), ("old", 7)):
        write(folder, word, n)
        with pytest.raises(MXNetError, match=said(folder / "a.rec")):
            pickle.loads(there)


@pytest.mark.parametrize("policy", ["raise", "warn", "skip"])
@pytest.mark.parametrize("n", [3, 8], ids=["shorter", "other"])
def test_a_file_that_is_written_over(folder, n, policy):
    """No policy for damaged records leaves it out: nothing is damaged."""
    indexed = MXIndexedRecordIO(folder / "a.idx", folder / "a.rec", "r", on_error=policy)
    sequential = MXRecordIO(folder / "a.rec", "r", on_error=policy)
    numbered = RecordFile(str(folder / "a.rec"), on_error=policy)
    over(folder, "new", n)
    for read in (lambda: indexed.read_idx(1), lambda: numbered.read(1), sequential.read):
        for _ in range(2):
            with pytest.raises(MXNetError, match=said(folder / "a.rec")):
                read()
    assert indexed.skipped == sequential.skipped == numbered.skipped == 0
    indexed.reset()
    assert indexed.read_idx(1).startswith(b"new 1")


def test_a_file_that_is_written_over_by_a_longer_one(folder):
    reader = MXIndexedRecordIO(folder / "a.idx", folder / "a.rec", "r")
    over(folder, "new", 20)
    with pytest.raises(MXNetError, match=said(folder / "a.rec")):
        reader.read_idx(1)


def test_a_file_that_grows_is_the_same(folder):
    whole = (folder / "a.rec").read_bytes()
    (folder / "a.rec").write_bytes(whole[:72])
    indexed, sequential = (
        MXIndexedRecordIO(folder / "a.idx", folder / "a.rec", "r", on_error="skip"),
        MXRecordIO(folder / "a.rec", "r"),
    )
    assert len(list(sequential)) == 3
    with open(folder / "a.rec", "ab") as f:
        f.write(whole[72:])
    assert [r[:5] for r in sequential] == [b"old %d" % i for i in range(3, 8)]
    assert indexed.read_idx(7).startswith(b"old 7") and pickle.loads(pickle.dumps(indexed)).read_idx(0)


@pytest.mark.parametrize("n", SHAPES.values(), ids=SHAPES)
def test_objects_in_a_store(n, monkeypatch):
    monkeypatch.setattr(source, "_FAR", 60)
    write("memory://replaced", "old")
    url = "memory://replaced/a.rec"
    indexed, sequential = MXIndexedRecordIO("memory://replaced/a.idx", url, "r"), MXRecordIO(url, "r", on_error="skip")
    numbered, frozen = RecordFile(url), pickle.dumps(indexed)
    assert pickle.loads(frozen).read_idx(1).startswith(b"old 1")
    write("memory://replaced", "new", n)
    for read in (lambda: indexed.read_idx(1), lambda: numbered.read(1), sequential.read, lambda: pickle.loads(frozen)):
        with pytest.raises(MXNetError, match=said(url)):
            read()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_of_a_reader_in_a_store(monkeypatch):
    monkeypatch.setattr(source, "_FAR", 60)
    write("memory://forked", "old")
    reader = MXIndexedRecordIO("memory://forked/a.idx", "memory://forked/a.rec", "r")
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)

    def child():
        write("memory://forked", "new")
        try:
            there.send(reader.read_idx(1))
        except MXNetError as e:
            there.send(str(e))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    assert "since it was opened" in here.recv()
    process.join()


def test_a_store_that_is_far_is_asked_once_a_second(monkeypatch):
    """A look costs a request: whoever reads much is not to pay for two requests a record."""
    write("memory://far", "old")
    now, looks = [0.0], []
    fs = fsspec.filesystem("memory")

    def info(path, **kwargs):
        looks.append(path)
        now[0] += 0.1
        return type(fs).info(fs, path, **kwargs)

    monkeypatch.setattr(fs, "info", info)
    monkeypatch.setattr(source, "_clock", lambda: now[0])
    reader = MXIndexedRecordIO("memory://far/a.idx", "memory://far/a.rec", "r")
    looks.clear()
    for _ in range(20):
        reader.read_idx(1)
    assert len(looks) <= 1
    write("memory://far", "new")
    now[0] += 1.5
    with pytest.raises(MXNetError, match="since it was opened"):
        reader.read_idx(1)


# -- loaders


def pictures(folder, value, n=8):
    with MXIndexedRecordIO(f"{folder}/a.idx", f"{folder}/a.rec", "w") as record:
        for i in range(n):
            image = np.full((8, 8, 3), value, np.uint8)
            record.write_idx(i, mx.recordio.pack_img(mx.recordio.IRHeader(0, value, i, 0), image, img_fmt=".png"))


class _First(RecordFileDataset):
    def __getitem__(self, idx):
        return super().__getitem__(idx)[:3].decode()


def _joined(samples):
    return " ".join(samples)


@pytest.mark.parametrize("n", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("kind", [{}, {"num_workers": 1}, {"num_workers": 1, "thread_pool": True}], ids=str)
def test_loaders_read_the_old_file_whole(folder, n, kind):
    loader = DataLoader(_First(str(folder / "a.rec")), 2, batchify_fn=_joined, **kind)
    batches = iter(loader)
    found = [next(batches)]
    write(folder, "new", n)
    assert [*found, *batches, *loader] == ["old old"] * 8


@pytest.mark.parametrize("kind", [{}, {"num_workers": 1}, {"num_workers": 1, "thread_pool": True}], ids=str)
def test_loaders_tell_of_a_file_that_is_written_over(folder, kind):
    loader = DataLoader(_First(str(folder / "a.rec")), 2, batchify_fn=_joined, prefetch=1, **kind)
    batches = iter(loader)
    assert next(batches) == "old old"
    over(folder, "new")
    with pytest.raises(MXNetError, match=said(folder / "a.rec")):
        list(batches)


def in_fresh_python(folder, code):
    script = folder / "script.py"
    script.write_text(textwrap.dedent(code))
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    return ran.stdout.splitlines(), ran.stderr


def test_spawned_workers(folder):
    code = f"""
        import multiprocessing, os
        from mxcore.base import MXNetError
        from mxcore.gluon.data import DataLoader, RecordFileDataset
        from mxcore_io_rec.recordio import MXIndexedRecordIO

        class First(RecordFileDataset):
            def __getitem__(self, idx):
                return super().__getitem__(idx)[:3].decode()

        def joined(samples):
            return " ".join(samples)

        if __name__ == "__main__":
            os.chdir({str(folder)!r})
            multiprocessing.set_start_method("spawn")
            data = First("a.rec")
            loader = DataLoader(data, 2, batchify_fn=joined, num_workers=1)
            batches = iter(loader)
            print(next(batches))
            with MXIndexedRecordIO("a.idx", "a.rec", "w") as record:
                for i in range(20):
                    record.write_idx(i, b"new %d" % i)
            print(*batches, *loader)
            try:
                list(DataLoader(data, 2, batchify_fn=joined, num_workers=1))
            except MXNetError as e:
                print(type(e).__name__, e)
    """
    out, err = in_fresh_python(folder, code)
    assert out[:2] == ["old old", " ".join(["old"] * 14)], err
    assert len(out) == 3 and "'a.rec' was replaced" in out[2] and "since it was opened" in out[2], (out, err)


def test_image_iter(folder):
    """Its order is that of the index that it read first, so it stays with that file."""
    pictures(folder, 10)
    files = {"path_imgrec": str(folder / "a.rec"), "path_imgidx": str(folder / "a.idx")}
    it = mx.image.ImageIter(4, (3, 8, 8), **files)
    it.next()
    pictures(folder, 20, 3)
    for _ in range(2):
        it.reset()
        assert [b.label[0].asnumpy().tolist() for b in it] == [[10.0] * 4] * 2
    assert mx.image.ImageIter(3, (3, 8, 8), **files).next().label[0].asnumpy().tolist() == [20.0] * 3


@pytest.mark.parametrize("policy", ["raise", "warn", "skip"])
def test_image_record_iter(folder, policy):
    pictures(folder, 10)
    settings = {"path_imgrec": str(folder / "a.rec"), "data_shape": (3, 8, 8), "batch_size": 4, "on_error": policy}
    it = mx.io.ImageRecordIter(**settings)
    it.next()
    pictures(folder, 20, 3)
    it.reset()
    assert [b.label[0].asnumpy().tolist() for b in it] == [[10.0] * 4] * 2
    later = mx.io.ImageRecordIter(**settings)
    os.utime(folder / "a.rec", ns=(1, 1))
    later.reset()
    with pytest.raises(MXNetError, match=said(folder / "a.rec")):
        for _ in range(5):
            later.next()
    assert later.skipped == 0
