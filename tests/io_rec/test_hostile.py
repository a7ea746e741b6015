"""Record files, indexes, lists and pictures from strangers: no more work and memory than the file is worth."""

import argparse
import os
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore_io_rec import codec, framing, im2rec, make_index, source
from mxcore_io_rec.det_iter import ImageDetRecordIter
from mxcore_io_rec.framing import frame
from mxcore_io_rec.image_iter import ImageRecordIter
from mxcore_io_rec.labels import read_labels
from mxcore_io_rec.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO, pack, read_index, unpack_img
from mxcore_io_rec.records import RecordFile

from .cases import MAGIC


def part(kind, n):
    return MAGIC + struct.pack("<I", kind << 29 | max(n, 0))


def row(kind, count, end):
    """Headers of parts, one behind the other, all of which end at the same place."""
    return b"".join(part(kind, end - 8 * i - 8) for i in range(count))


RESYNC = {
    "the magic word": lambda n: MAGIC * (n // 4),
    "first parts of nothing": lambda n: part(1, 0) * (n // 8),
    "records beyond the end": lambda n: part(0, (1 << 29) - 1) * (n // 8),
    "records up to where none follows": lambda n: row(0, n // 8, n) + b"no record",
    "records of half the file": lambda n: part(0, n // 2 - 4) * (n // 8),
    "first parts that all lead to the same middle ones": lambda n: (
        row(1, n // 16, n // 2) + part(2, 0) * (n // 16) + b"end"
    ),
    "the same, off their places": lambda n: b"?" + row(1, n // 16, n // 2) + b"???" + part(2, 0) * (n // 16) + b"end",
    "records off their places": lambda n: b"?" + row(0, n // 8, n) + b"no record",
    "many small records, damaged": lambda n: (part(0, 4) + b"goodbad.") * (n // 16),
}


def work(path, read, monkeypatch):
    """How many functions are called to read a file, and how many bytes come from the disk."""
    counts, functions = {"calls": 0, "bytes": 0}, {f"{framing.__file__}", f"{source.__file__}"}

    def profile(frame, event, arg):
        counts["calls"] += event == "call" and frame.f_code.co_filename in functions

    original = source.LocalFile.read

    def counted(self, position, n):
        data = original(self, position, n)
        counts["bytes"] += len(data)
        return data

    with monkeypatch.context() as m:
        m.setattr(source.LocalFile, "read", counted)
        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            read(path)
        finally:
            sys.setprofile(before)
    return counts


READERS = {
    "sequential": lambda path: sum(1 for _ in MXRecordIO(path, "r", on_error="skip")),
    "by number": lambda path: RecordFile(str(path), on_error="skip", neighbour=False).known(1 << 62),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", RESYNC)
def test_finding_the_next_record_takes_linear_work(case, reader, tmp_path, monkeypatch):
    found = []
    for n in (1 << 12, 1 << 14):
        (tmp_path / "a.rec").write_bytes(RESYNC[case](n))
        found.append(work(tmp_path / "a.rec", READERS[reader], monkeypatch))
    small, large = found
    for what in small:
        assert large[what] <= 5 * small[what] + 100, (what, small, large)
    assert large["bytes"] <= 20 * (1 << 14)


def test_one_read_of_a_damaged_file_is_linear_too(tmp_path, monkeypatch):
    def read(path):
        with pytest.raises(ValueError, match="damaged"):
            MXRecordIO(path, "r").read()

    (tmp_path / "a.rec").write_bytes(RESYNC["the same, off their places"](1 << 14))
    assert work(tmp_path / "a.rec", read, monkeypatch)["bytes"] <= 4 << 14


def test_a_record_behind_many_damaged_ones_is_found(tmp_path):
    for case in RESYNC.values():
        data = case(1 << 10)
        (tmp_path / "a.rec").write_bytes(data + b"\0" * (-len(data) % 4) + frame(b"sound"))
        assert b"sound" in list(MXRecordIO(tmp_path / "a.rec", "r", on_error="skip"))[-1]


def test_nothing_is_read_because_a_header_tells_of_it(tmp_path, monkeypatch):
    asked = []
    read = source.LocalFile._read
    monkeypatch.setattr(source.LocalFile, "_read", lambda self, at, n: asked.append(n) or read(self, at, n))
    (tmp_path / "a.rec").write_bytes(part(0, (1 << 29) - 1) + b"four")
    (tmp_path / "a.idx").write_text("0\t0\n")
    for reader in (
        MXRecordIO(tmp_path / "a.rec", "r").read,
        lambda: MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "r").read_idx(0),
    ):
        with pytest.raises(ValueError, match="536870911 bytes should follow its header, but the file ends after 4"):
            reader()
    assert max(asked) <= 1 << 20


def det_file(path, flag):
    label = np.array([2, 5, 1, 0.1, 0.2, 0.5, 0.6], "float32")
    sound = pack(IRHeader(0, label, 0, 0), codec.encode(np.zeros((8, 8, 3), "uint8"), ".png"))
    with MXRecordIO(path, "w") as record:
        record.write(sound)
        record.write(struct.pack("<I", flag) + sound[4:])
        record.write(sound)


@pytest.mark.parametrize("flag", [100, 1 << 20, (1 << 32) - 1])
def test_a_count_of_labels_is_not_believed(flag, tmp_path):
    det_file(tmp_path / "a.rec", flag)
    parameters = {"path_imgrec": str(tmp_path / "a.rec"), "data_shape": (3, 8, 8), "batch_size": 1, "verbose": False}
    with pytest.raises(ValueError, match=rf"record 1 of .*a\.rec.*tells of {flag} labels"):
        ImageDetRecordIter(**parameters)
    it = ImageDetRecordIter(**parameters, on_error="skip")
    assert it.provide_label[0].shape == (1, 11)
    assert sum(1 for _ in it) == 2 and it.skipped == 1


def test_labels_that_no_number_describes(tmp_path):
    with MXRecordIO(tmp_path / "a.rec", "w") as record:
        record.write(
            pack(IRHeader(0, [np.inf, np.nan, 1, 1, 1, 1, 1], 0, 0), codec.encode(np.zeros((8, 8, 3), "uint8")))
        )
    it = ImageDetRecordIter(path_imgrec=str(tmp_path / "a.rec"), data_shape=(3, 8, 8), batch_size=1, verbose=False)
    with pytest.raises(ValueError, match=r"record 0 of .*detection label"):
        it.next()


# -- pictures ------------------------------------------------------------------------------------------


def png_bomb(side):
    """The header of a picture of so many pixels, and nothing else."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBBI", 13, b"IHDR", side, side, 8, 2, 0, 0, 0, 0)


def doors(folder):
    """Everything that decodes a picture."""

    def by_iterator(data):
        with MXRecordIO(folder / "p.rec", "w") as record:
            record.write(pack(IRHeader(0, 1, 0, 0), data))
        ImageRecordIter(path_imgrec=str(folder / "p.rec"), data_shape=(3, 8, 8), batch_size=1, verbose=False).next()

    def by_im2rec(data):
        (folder / "p.png").write_bytes(data)
        (folder / "p.lst").write_text("0\t1\tp.png\n")
        parser = argparse.ArgumentParser()
        im2rec.add_arguments(parser)
        im2rec.make_record(str(folder / "p.lst"), parser.parse_args([str(folder / "p"), str(folder), "--strict"]))

    return {
        "unpack_img": lambda data: unpack_img(pack(IRHeader(0, 1, 0, 0), data)),
        "ImageRecordIter": by_iterator,
        "im2rec": by_im2rec,
        "nd.imdecode": mx.nd.imdecode,
        "operator": lambda data: mx.nd._internal._cvimdecode(mx.nd.array(np.frombuffer(data, "uint8"), dtype="uint8")),
    }


@pytest.mark.parametrize("door", doors(Path()))
def test_pictures_that_unfold_to_too_much_are_not_decoded(door, tmp_path, monkeypatch):
    through = doors(tmp_path)[door]
    with pytest.raises(
        ValueError, match="30000 x 30000 pixels, more than the 134217728 .*MXCORE_MAX_IMAGE_PIXELS"
    ) as caught:
        through(png_bomb(30000))
    assert isinstance(caught.value, MXNetError)
    with pytest.raises(ValueError, match="(?i)OpenCV"):
        through(png_bomb(3000))  # within the limit, and no picture
    small = codec.encode(np.zeros((20, 30, 3), "uint8"), ".png")
    monkeypatch.setenv("MXCORE_MAX_IMAGE_PIXELS", "599")
    with pytest.raises(ValueError, match="30 x 20 pixels, more than the 599"):
        through(small)
    monkeypatch.setenv("MXCORE_MAX_IMAGE_PIXELS", "600")
    through(small)


# -- indexes, lists, and files without an end ---------------------------------------------------------


@pytest.fixture
def sound(tmp_path):
    with MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "w") as record:
        for i in range(6):
            record.write_idx(i, b"%d" % i * (i + 1) * 10)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        b"0\t1" + b"0" * 30,
        b"0\t-1",
        b"\xff\xfe\t0",
        b"0\t\xf1\xba\x91\xb8",
        b"0\t" + b"9" * 5000,
        b"\0\0\0\t0",
        b"0\t1e3",
        b"x\t0",
    ],
)
def test_lines_that_are_no_index(line, sound):
    (sound / "a.idx").write_bytes(b"1\t0\n" + line + b"\n")
    for read in (
        lambda: read_index(sound / "a.idx"),
        lambda: MXIndexedRecordIO(sound / "a.idx", sound / "a.rec", "r"),
        lambda: (
            RecordFile(str(sound / "a.rec"), str(sound / "a.idx"))
            if b"\t0" not in line
            else read_index(sound / "a.idx")
        ),
    ):
        with pytest.raises(ValueError, match=r"line 2 of the index .*a\.idx") as caught:
            read()
        assert isinstance(caught.value, MXNetError)


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\t1\ta.png",
        b"0\t\xffx\ta.png",
        b"0",
        b"0\t" + b"x" * 5000 + b"\ta.png",
        b"\0" * 40,
        b"9" * 5000 + b"\t1\ta.png",
    ],
)
@pytest.mark.parametrize("read", [read_labels, im2rec.read_list])
def test_lines_that_are_no_list(line, read, tmp_path):
    (tmp_path / "a.lst").write_bytes(b"0\t1\ta.png\n" + line + b"\n")
    with pytest.raises(ValueError, match=r"line 2 of .*a\.lst") as caught:
        read(tmp_path / "a.lst")
    assert isinstance(caught.value, MXNetError)


def test_an_id_that_stands_twice_in_a_list(tmp_path):
    (tmp_path / "a.lst").write_bytes(b"0\t1\ta.png\n1\t2\tb.png\n0\t3\tc.png\n")
    with pytest.raises(ValueError, match=r"line 3 of .*a\.lst.*the id 0 stands in an earlier line, too"):
        read_labels(tmp_path / "a.lst")


def test_a_key_that_stands_twice_in_an_index_is_told(sound):
    (sound / "a.idx").write_bytes((sound / "a.idx").read_bytes().replace(b"\n2\t", b"\n1\t"))
    with pytest.warns(UserWarning, match=r"a\.idx' has the key 1 more than once"):
        found = MXIndexedRecordIO(sound / "a.idx", sound / "a.rec", "r").read_idx(1)
    assert (
        MXIndexedRecordIO(sound / "a.idx", sound / "a.rec", "r", on_error="skip").read_idx(1)
        == found
        == b"2" * len(found)
    )


def test_an_index_of_three_columns(sound):
    (sound / "a.idx").write_bytes(b"0\t0\t7\n")
    with pytest.raises(ValueError, match=r"line 1 of the index .*a\.idx"):
        RecordFile(str(sound / "a.rec"), str(sound / "a.idx"))


def test_names_of_pictures_may_be_any_bytes(tmp_path):
    (tmp_path / "a.lst").write_bytes(b"3\t1\tcaf\xe9.png\r\n4\t1e300\tb.png\n")
    assert im2rec.read_list(tmp_path / "a.lst")[0] == (3, [1.0], "caf\udce9.png")
    labels = read_labels(tmp_path / "a.lst")
    assert labels[3].tolist() == [1] and labels[4].tolist() == [np.inf]


def test_an_index_of_another_file_is_told(sound):
    with MXIndexedRecordIO(sound / "b.idx", sound / "b.rec", "w") as record:
        for i in range(6):
            record.write_idx(i, b"%d" % i * 100)
    for read in (
        lambda: MXIndexedRecordIO(sound / "a.idx", sound / "b.rec", "r"),
        lambda: RecordFile(str(sound / "b.rec"), str(sound / "a.idx")),
    ):
        with pytest.raises(
            ValueError, match=r"b\.rec' and '.*a\.idx': index and file may not belong together.*make_index"
        ):
            read()
    with pytest.warns(UserWarning, match="may not belong together"):
        MXIndexedRecordIO(sound / "a.idx", sound / "b.rec", "r", on_error="warn")
    assert MXIndexedRecordIO(sound / "a.idx", sound / "b.rec", "r", on_error="skip").read_idx(0) == b"0" * 100
    data = bytearray((sound / "a.rec").read_bytes())
    data[MXIndexedRecordIO(sound / "a.idx", sound / "a.rec", "r").idx[5]] ^= 0xFF
    (sound / "a.rec").write_bytes(data)  # one damaged record is no other file
    assert MXIndexedRecordIO(sound / "a.idx", sound / "a.rec", "r").read_idx(4) == b"4" * 50


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
def test_files_without_an_end(sound):
    zero = "/dev/zero"
    (sound / "z.lst").write_text("0\t1\t/dev/zero\n")
    for read in (
        lambda: MXRecordIO(zero, "r").read(),
        lambda: MXIndexedRecordIO(zero, sound / "a.rec", "r"),
        lambda: MXIndexedRecordIO(sound / "a.idx", zero, "r"),
        lambda: RecordFile(zero),
        lambda: RecordFile(str(sound / "a.rec"), zero),
        lambda: make_index(zero, sound / "z.idx"),
        lambda: read_index(zero),
        lambda: read_labels(zero),
        lambda: im2rec.read_list(zero),
        lambda: (
            doors(sound)["im2rec"]
            and im2rec._record((0, [1.0], zero), argparse.Namespace(root=str(sound), pass_through=True))
        ),
    ):
        with pytest.raises(OSError, match="cannot read '/dev/zero': it is a pipe or a device") as caught:
            read()
        assert isinstance(caught.value, MXNetError)


def test_a_name_that_no_file_can_have():
    with pytest.raises(MXNetError, match="cannot read 'a.x00b.rec'"):
        MXRecordIO("a\0b.rec", "r").read()
