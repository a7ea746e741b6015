"""What programs print comes in whole lines, and nothing is lost."""

import os

import pytest

from mxcore_kv_dist import actors


def taken(*chunks: bytes) -> bytes:
    """What is taken of what was written in pieces."""
    read, write = os.pipe()
    output = actors._Output({1: read})
    for chunk in chunks:
        os.write(write, chunk)
    os.close(write)
    output.end()
    found, more = [], True
    while more:
        lines, more = output.next()
        assert all(stream == 1 and text.endswith((b"\n", b"\r")) for stream, text in lines)
        found += [text for _, text in lines]
    return b"".join(found)


@pytest.mark.parametrize(
    "chunks",
    [
        (b"one\ntwo\n",),
        (b"o", b"n", b"e\nt", b"wo\n"),
        (b"windows\r", b"\n", b"more\r\n"),
        (b" 10%\r 20%", b"\r 30%\r\n"),
        (b"\xff\xfe\n\n\n", b"\0\n"),
        (),
    ],
)
def test_lines(chunks):
    assert taken(*chunks) == b"".join(chunks)


def test_last_line_is_ended():
    assert taken(b"one\ntwo") == b"one\ntwo\n"


def test_endless_line(monkeypatch):
    """A line that does not end is cut before it fills the memory."""
    monkeypatch.setattr(actors, "_LONGEST_LINE", 10)
    assert taken(b"x" * 25).replace(b"\n", b"") == b"x" * 25


def test_much(monkeypatch):
    """More than is taken at once."""
    monkeypatch.setattr(actors, "_MOST", 100)
    chunks = [b"x" * 60 + b"%d\n" % i for i in range(10)]
    assert taken(*chunks) == b"".join(chunks)
