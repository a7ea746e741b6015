"""The RecordIO format, byte by byte."""

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from mxcore.base import MXNetError
from mxcore_io_rec import framing
from mxcore_io_rec.framing import Damage, Window, find_record, frame, read_record, skip_record

from .cases import MAGIC, payloads

# Payloads that are likely to hold the magic word, or most of it.
PIECE = st.sampled_from([MAGIC, MAGIC[:3], MAGIC[1:], b"\0", b"ab", b"xyz1"]) | st.binary(max_size=9)
PAYLOAD = st.lists(PIECE, max_size=8).map(b"".join)


class Held:
    """Bytes in memory as a source."""

    block = 1 << 16

    def __init__(self, data):
        self.data = data

    def read(self, position, n):
        return self.data[position : position + n]

    def size(self):
        return len(self.data)


def fetch_from(data, block=None):
    return Window(Held(data), block)


def read_all(data):
    fetch, at, found = fetch_from(data), 0, []
    while True:
        payload, at = read_record(fetch, at)
        if payload is None:
            return found
        found.append(payload)


@settings(max_examples=300, deadline=None)
@given(st.lists(PAYLOAD, max_size=6))
@example(payloads())
def test_records_come_back(records):
    data = b"".join(frame(r) for r in records)
    assert len(data) % 4 == 0
    assert read_all(data) == records
    at, starts = 0, []
    while at is not None:
        starts.append(at)
        at = skip_record(fetch_from(data), at)
    assert starts[-1] == len(data) and len(starts) == len(records) + 1


@settings(max_examples=200, deadline=None)
@given(PAYLOAD)
def test_the_magic_word_stands_at_starts_of_parts_only(payload):
    data = frame(payload)
    words = [i for i in range(0, len(data), 4) if data[i : i + 4] == MAGIC]
    kinds = [data[i + 7] >> 5 for i in words]
    assert kinds == [0] or (kinds[0] == 1 and kinds[-1] == 3 and set(kinds[1:-1]) <= {2})


@settings(max_examples=200, deadline=None)
@given(st.lists(PAYLOAD, min_size=1, max_size=5), st.integers(0, 400), st.integers(0, 40))
def test_the_next_record_is_found_from_anywhere(records, position, block):
    framed = [frame(r) for r in records]
    starts = [sum(map(len, framed[:i])) for i in range(len(framed))]
    data = b"".join(framed)
    expected = next((s for s in starts if s >= position), None)
    assert find_record(fetch_from(data, block + 8), position) == expected


@pytest.mark.parametrize("bad", [3, "text", None, [1]])
def test_only_bytes_are_framed(bad):
    with pytest.raises(TypeError, match="holds bytes") as caught:
        frame(bad)
    assert isinstance(caught.value, MXNetError)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_all_kinds_of_bytes_are_framed(kind):
    assert frame(kind(b"abc" + MAGIC)) == frame(b"abc" + MAGIC)


def test_too_long_a_payload_is_refused(monkeypatch):
    monkeypatch.setattr(framing, "MAX_LENGTH", 8)
    assert read_all(frame(b"12345678")) == [b"12345678"]
    with pytest.raises(ValueError, match="at most 8 bytes, not 9"):
        frame(b"123456789")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=12), min_size=2, max_size=4), st.data())
def test_a_wrong_length_never_passes_for_right(records, data):
    """A record whose length was changed raises, unless the new one leads to a place where records may end."""
    framed = [frame(r) for r in records]
    which = data.draw(st.integers(0, len(records) - 1))
    start = sum(map(len, framed[:which]))
    whole = bytearray(b"".join(framed))
    whole[start + 4] = data.draw(st.integers(0, 255))
    try:
        payload, _ = read_record(fetch_from(bytes(whole)), start)
    except Damage as damage:
        assert damage.offset >= start
    else:
        # Lengths that end in the same padding, or right before another record, are all alike.
        n = whole[start + 4]
        end = start + 8 + (n + 3) // 4 * 4
        assert len(payload) == n and (end == len(whole) or whole[end : end + 4] == MAGIC)
