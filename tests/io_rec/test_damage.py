"""Damaged record files: nothing hangs, nothing wrong is returned, and what is sound is found again."""

import re

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from mxcore.base import MXNetError, MXNetWarning
from mxcore_io_rec.framing import frame
from mxcore_io_rec.recordio import MXIndexedRecordIO, MXRecordIO

from .cases import MAGIC

RECORDS = [b"first record", b"", b"with " + b"xyz" + MAGIC + b"magic", b"fourth, longer " * 4, b"last"]
FRAMED = [frame(r) for r in RECORDS]
STARTS = [sum(map(len, FRAMED[:i])) for i in range(len(FRAMED) + 1)]
WHOLE = b"".join(FRAMED)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damage")
    (folder / "a.idx").write_text("".join(f"{i}\t{s}\n" for i, s in enumerate(STARTS[:-1])))
    return folder / "a.rec"


def touched(begin, end):
    """Numbers of the records that a stretch of bytes belongs to."""
    return {i for i in range(len(RECORDS)) if STARTS[i] < end and begin < STARTS[i + 1]}


def swallowed(data, hit):
    """Records that one with a damaged length takes in unnoticed: the wrong length ends where another record starts."""
    for i in set(hit):
        # The third one has two parts, each with a length.
        for head in (STARTS[i], STARTS[i] + 16) if i == 2 else STARTS[i : i + 1]:
            length = int.from_bytes(data[head + 4 : head + 8], "little") & ((1 << 29) - 1)
            end = head + 8 + length + -length % 4
            if end in STARTS[i + 1 :]:
                hit |= set(range(i, STARTS.index(end)))
    return hit


def read_all(path, policy):
    reader = MXRecordIO(path, "r", on_error=policy)
    return list(reader), reader.skipped


@settings(max_examples=400, deadline=None)
@example(7, b" ")  # the first record turns into the beginning of a longer one
@example(4, bytes([STARTS[2] + 16 - 8]))  # its length ends where the third one goes on
@example(48, b"U")  # the second part of the third one takes in all that follows
@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=12))
def test_any_damage_is_survived(path, position, junk):
    """The records that the damage did not touch are found, in order, but for one before it at most."""
    data = bytearray(WHOLE)
    data[position : position + len(junk)] = junk[: len(WHOLE) - position]
    path.write_bytes(bytes(data))
    found, _ = read_all(path, "skip")
    hit = swallowed(data, touched(position, position + len(junk)))
    # One record before the damage may be given up: whose length can't be told from a wrong one.
    hit |= {min(hit) - 1}
    expected = [r for i, r in enumerate(RECORDS) if i not in hit]
    rest = iter(found)
    assert all(any(r == f for f in rest) for r in expected)
    assert len(found) <= len(RECORDS) + 1


def test_a_file_cut_anywhere(path):
    ends = [end - -len(r) % 4 for end, r in zip(STARTS[1:], RECORDS)]  # the padding may be missing
    for cut in range(1, len(WHOLE)):
        path.write_bytes(WHOLE[:cut])
        complete = [r for r, end in zip(RECORDS, ends) if end <= cut]
        torn = cut > STARTS[len(complete)]
        assert read_all(path, "skip") == (complete, torn), cut
        reader = MXRecordIO(path, "r")
        assert [reader.read() for _ in complete] == complete
        if torn:
            with pytest.raises(ValueError, match=rf"record {len(complete)} of .*{re.escape(path.name)}"):
                reader.read()
        assert reader.read() is None


@pytest.mark.parametrize("which", range(len(RECORDS)))
def test_a_broken_magic_word_loses_one_record(path, which):
    data = bytearray(WHOLE)
    data[STARTS[which]] ^= 0xFF
    path.write_bytes(bytes(data))
    found, skipped = read_all(path, "skip")
    assert found == RECORDS[:which] + RECORDS[which + 1 :] and skipped == 1


def test_errors_name_file_record_and_offset(path):
    data = bytearray(WHOLE)
    data[STARTS[3]] ^= 0xFF
    path.write_bytes(bytes(data))
    reader = MXRecordIO(path, "r")
    assert [reader.read() for _ in range(3)] == RECORDS[:3]
    with pytest.raises(ValueError, match=rf"record 3 of '.*a\.rec' at offset {STARTS[3]} is damaged") as caught:
        reader.read()
    assert isinstance(caught.value, MXNetError) and "on_error='skip'" in str(caught.value)
    assert reader.read() == RECORDS[4] and reader.read() is None


@pytest.mark.parametrize("policy", ["skip", "raise"])
def test_a_file_that_is_cut_while_it_is_read(policy, path):
    """What the reader holds of it already comes once, and then the error that says so, whatever the policy."""
    path.write_bytes(WHOLE[:-4] if policy == "skip" else WHOLE + b"damage" * 100)
    reader = MXRecordIO(path, "r", on_error=policy)
    assert reader.read() == RECORDS[0]
    path.write_bytes(WHOLE[: STARTS[2]])
    assert [reader.read() for _ in range(3)] == RECORDS[1:4]
    for _ in range(3):
        with pytest.raises(OSError, match="was written over since it was opened"):
            reader.read()
    assert reader.skipped == 0


def test_warnings_name_them_too_and_count(path):
    data = bytearray(WHOLE)
    data[STARTS[1]] ^= 0xFF
    data[STARTS[3]] ^= 0xFF
    path.write_bytes(bytes(data))
    reader = MXRecordIO(path, "r", on_error="warn")
    with pytest.warns(MXNetWarning, match=r"left out: record \d of") as told:
        assert list(reader) == [RECORDS[0], RECORDS[2], RECORDS[4]]
    assert len(told) == 2 and reader.skipped == 2


def test_lost_bytes_shift_what_follows(path):
    """A hole of a length that is no multiple of 4: the records behind it are off their places, and found."""
    at = STARTS[3] + 20
    path.write_bytes(WHOLE[:at] + WHOLE[at + 5 :])
    found, skipped = read_all(path, "skip")
    assert found == [*RECORDS[:3], RECORDS[4]] and skipped == 1


def test_reading_by_key(path):
    data = bytearray(WHOLE)
    data[STARTS[3] + 4] ^= 0xFF
    path.write_bytes(bytes(data))
    idx = path.with_suffix(".idx")
    reader = MXIndexedRecordIO(idx, path, "r")
    with pytest.raises(ValueError, match=rf"the record of key 3 of .*at offset {STARTS[3]} is damaged"):
        reader.read_idx(3)
    assert reader.read_idx(4) == RECORDS[4]
    lenient = MXIndexedRecordIO(idx, path, "r", on_error="skip")
    assert lenient.read_idx(3) is None and lenient.skipped == 1 and lenient.read_idx(2) == RECORDS[2]
    path.write_bytes(WHOLE[: STARTS[2]])
    with pytest.raises(ValueError, match="index and file may not belong together"):
        MXIndexedRecordIO(idx, path, "r").read_idx(4)


def test_a_file_of_something_else(path):
    path.write_bytes(b"this is no record file at all" * 100)
    with pytest.raises(ValueError, match="record 0 .*magic word"):
        MXRecordIO(path, "r").read()
    assert read_all(path, "skip") == ([], 1)
    path.write_bytes(b"")
    assert read_all(path, "raise") == ([], 0)
