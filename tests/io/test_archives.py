"""Archives of strangers: what searching them may take, what their headers may tell, and links within them."""

import bz2
import io
import os
import shutil
import struct
import subprocess
import tarfile
import time
import tracemalloc
import zipfile
import zlib

import fsspec
import numpy as np
import pytest

import mxcore as mx
from mxcore import urls
from mxcore._io_files import names_in, open_read
from mxcore.gluon import _repository

LIMIT = 1 << 22
END = bytes(1024)


@pytest.fixture(autouse=True)
def limited(monkeypatch):
    monkeypatch.setenv("MXCORE_MAX_UNPACKED_BYTES", str(LIMIT))


@pytest.fixture
def imported(tmp_path_factory):
    """What reads archives is there, and takes no more memory."""
    path = tmp_path_factory.mktemp("sound") / "a.zip"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("a.csv", "1,2\n")
    with open_read(f"zip://a.csv::{path}") as file:
        assert file.read() == b"1,2\n"
    refused(f"tar://a.csv::{path}", "cannot read")


def header(kind=tarfile.REGTYPE, size=0, name="a.bin", form=tarfile.USTAR_FORMAT, link=""):
    member = tarfile.TarInfo(name)
    member.type, member.size, member.linkname = kind, size, link
    return member.tobuf(form)[:512]


def padded(data):
    return data + bytes(-len(data) % 512)


def record(key, value):
    """One of a pax header, which begins with its own length."""
    rest = b" %s=%s\n" % (key, value)
    n = len(rest) + 1
    while n != len(b"%d" % n) + len(rest):
        n += 1
    return b"%d" % n + rest


def pax(content, kind=tarfile.XHDTYPE):
    return header(kind, len(content)) + padded(content)


def refused(url, words, seconds=20):
    begin = time.monotonic()
    with pytest.raises(mx.MXNetError, match=words):
        mx.nd.load(url)
    assert time.monotonic() - begin < seconds


def zeros(n):
    """bz2, of pieces that unfold to 16 MiB of zeros each."""
    return bz2.compress(bytes(1 << 24)) * (n >> 24)


def long_file():
    return bz2.compress(header(size=5 << 30)) + zeros(1 << 28)


def long_name():
    return bz2.compress(header(tarfile.GNUTYPE_LONGNAME, 5 << 30)) + zeros(1 << 28)


@pytest.mark.parametrize("ending", ["tar.bz2", "tar.gz", "tar.xz"])
def test_a_packed_archive_is_searched_up_to_the_limit(ending, tmp_path):
    path = tmp_path / f"a.{ending}"
    with tarfile.open(path, f"w:{ending[4:]}") as t:
        for name in ("a.bin", "net.params"):
            member = tarfile.TarInfo(name)
            member.size = LIMIT
            t.addfile(member, io.BytesIO(bytes(LIMIT)))
    refused(f"tar://net.params::{path}", r"a\.tar\.\w+ tells of \d+ bytes, more than the 4194304")


def test_a_deflated_file_that_claims_to_be_as_large_as_it_lies_there_is_refused(tmp_path):
    """Both of its sizes are what the archive says."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("a.params", bytes(2 * LIMIT))
        (member,) = z.infolist()
    data = bytearray(path.read_bytes())
    for at in (18, data.rindex(b"PK\1\2") + 20):
        data[at : at + 4] = struct.pack("<I", member.file_size)
    path.write_bytes(data)
    assert zipfile.ZipFile(path).infolist()[0].compress_size == member.file_size
    refused(f"zip://a.params::{path}", "tells of 8388608 bytes, more than the 4194304")


@pytest.mark.parametrize(
    "content, words", [(long_file, "tells of 5368709631 bytes"), (long_name, "headers of more than 1048576 bytes")]
)
def test_a_bomb_is_refused_before_it_unfolds(content, words, tmp_path, imported):
    path = tmp_path / "a.tar.bz2"
    path.write_bytes(content())
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as z:
        z.write(path, "in/a.tar.bz2")
    with tarfile.open(tmp_path / "outer.tar", "w") as t:
        t.add(path, "in/a.tar.bz2")
    for chain in (f"{path}", f"zip://in/a.tar.bz2::{tmp_path}/a.zip", f"tar://in/a.tar.bz2::{tmp_path}/outer.tar"):
        tracemalloc.start()
        refused(f"tar://net.params::{chain}", words, seconds=5)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 24, chain


def test_a_long_name_of_a_plain_archive(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(header(tarfile.GNUTYPE_LONGNAME, 1 << 21) + b"a" * (1 << 21) + header() + END)
    refused(
        f"tar://net.params::{path}",
        "a.tar is damaged: the tar archive has headers of more than 1048576 bytes at byte 512",
    )


N = 400_000
DAMAGED = {
    "digits": b"1" * N,
    "digits behind a record": record(b"path", b"a") + b"0" * N,
    "digits in a record": record(b"comment", b"1" * N),
    "lengths within records": b"2 " * (N // 2) + b"=",
    "a length of 0": b"0 path=a\n",
    "a length beyond": b"99 path=a\n",
    "a length that ends elsewhere": b"8 path=a\n9 path=b\n",
    "a character set": record(b"path", b"a") + b"1 hdrcharset=x" * (N // 14),
    "no record": b"\xff" * 600,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE])
def test_a_damaged_pax_header_is_refused_at_once(kind, content, tmp_path, monkeypatch):
    monkeypatch.setenv("MXCORE_MAX_UNPACKED_BYTES", str(1 << 26))
    if kind == tarfile.XGLTYPE:
        content = content[:4000]
    sound = padded(header(size=5, name="net.params")) + padded(b"12345")
    path = tmp_path / "cifar.tar"
    path.write_bytes(sound + pax(content, kind) + header() + END)
    records = "(whose records|with more than 255 digits)"
    words = rf"cifar\.tar is damaged: the tar archive has an extended \(pax\) header {records} .* at byte 1536"
    refused(f"tar://other::{path}", words, seconds=2)
    with pytest.raises(ValueError, match=words):
        _repository.unpack(str(path), ["a.bin"], str(tmp_path))


def test_headers_of_all_files_are_few(tmp_path):
    """tarfile copies them for every file."""
    path = tmp_path / "a.tar"
    path.write_bytes(pax(b"".join(record(b"k%d" % i, b"") for i in range(1000)), tarfile.XGLTYPE) + header() + END)
    refused(f"tar://net.params::{path}", r"an extended \(pax\) header of all files of 7890 bytes at byte 0")
    some = [b"".join(record(b"k%d" % (100 * j + i), b"") for i in range(30)) for j in range(10)]
    path.write_bytes(b"".join(pax(s, tarfile.XGLTYPE) + header() for s in some) + END)
    refused(f"tar://net.params::{path}", r"too many extended \(pax\) headers of all files at byte")


def test_sizes_below_zero_do_not_lead_back(tmp_path):
    below = bytearray(header(size=0))
    below[124:136] = (-1024).to_bytes(12, "big", signed=True)
    below[148:156] = b"%06o\0 " % tarfile.calc_chksums(bytes(below))[0]
    for content in (bytes(below), pax(record(b"size", b"-1536")) + header()):
        path = tmp_path / "a.tar"
        path.write_bytes(content + END)
        refused(f"tar://net.params::{path}", "a.tar is damaged: the tar archive has a file of a size below 0")


def test_a_list_of_files_takes_no_more_memory_than_the_limit(tmp_path):
    plain, packed = tmp_path / "a.tar", tmp_path / "a.tar.gz"
    plain.write_bytes(header() * 20_000 + END)
    packed.write_bytes(zlib.compress(header() * 20_000 + END, wbits=31))
    for path in (plain, packed):
        refused(f"tar://net.params::{path}", f"list of files of {path} tells of .* MXCORE_MAX_UNPACKED_BYTES")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as z:
        for i in range(5000):
            z.writestr(zipfile.ZipInfo(f"{i:050}"), b"")
    refused(f"zip://net.params::{tmp_path}/a.zip", f"the list of files of {tmp_path}/a.zip tells of")


def test_an_archive_in_another_is_looked_at_before_it_is_unfolded(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("inner.zip", bytes(1 << 26))
    monkeypatch.setattr(zipfile.ZipExtFile, "seek", None)
    monkeypatch.setattr(zipfile.ZipExtFile, "read", None)
    for cache in ("", "simplecache::"):
        refused(
            f"zip://a::{cache}zip://inner.zip::{tmp_path}/a.zip", r"::.*a\.zip tells of 67108864 bytes|a\.zip tells of"
        )


def test_folders_of_long_names_take_no_memory(tmp_path, imported):
    """fsspec makes a text of each folder above each file."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as z:
        for i in range(3):
            z.writestr(zipfile.ZipInfo(f"{i}/" + ("a" * 60 + "/") * 900 + "a"), b"")
        z.writestr("net.csv", "1,2\n")
    tracemalloc.start()
    with open_read(f"zip://net.csv::{tmp_path}/a.zip") as file:
        assert file.read() == b"1,2\n"
    assert tracemalloc.get_traced_memory()[1] < 1 << 23
    tracemalloc.stop()


def text(url):
    with open_read(url) as file:
        return file.read()


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tar.bz2", "tar.xz"])
def test_sound_archives_are_read(form, ending, tmp_path):
    names = ["./a", "b/c", "b//d", "/e", "lang/" + "é" * 300, "f/../g"]
    path = tmp_path / f"x.{ending}"
    with tarfile.open(path, f"w:{ending[4:]}", format=form, pax_headers={"comment": "0" * 40}) as t:
        for name in [*names, "b/c"]:  # the last of a name counts
            member = tarfile.TarInfo(name)
            member.size, member.mtime = 300, 1.5
            data = name.encode()[:5] if len(t.getmembers()) < len(names) else b"last"
            t.addfile(member, io.BytesIO(data.ljust(300, b".")))
    found = {name: text(f"tar://{name}::{path}").rstrip(b".") for name in ("a", "./a", "b/c", "b/d", "b//d", "e", "g")}
    assert [*found.values()] == [b"./a", b"./a", b"last", b"b//d", b"b//d", b"/e", b"f/../"]
    assert text(f"tar://{names[4]}::{path}").startswith(b"lang/")
    assert names_in(f"tar://b::{path}") == ["c", "d"] and names_in(f"tar://::{path}") == ["a", "b", "e", "g", "lang"]
    with pytest.raises(FileNotFoundError):
        names_in(f"tar://nowhere::{path}")
    with pytest.raises(OSError, match="cannot read .*b"):
        text(f"tar://b::{path}")


def test_links_in_an_archive(tmp_path):
    path = tmp_path / "x.tar"
    hard, soft = tarfile.LNKTYPE, tarfile.SYMTYPE
    path.write_bytes(
        header(size=3, name="in/a") + padded(b"abc")
        + header(hard, name="hard", link="in/a") + header(hard, name="in/a", link="in/a")
        + header(soft, name="in/soft", link="../hard") + header(soft, name="soft", link="in/soft")
        + header(soft, name="round", link="about") + header(soft, name="about", link="round")
        + header(soft, name="lost", link="nowhere") + header(hard, name="early", link="late")
        + header(size=1, name="late") + padded(b"l") + END
    )  # fmt: skip
    for name in ("in/a", "hard", "in/soft", "soft"):
        assert text(f"tar://{name}::{path}") == b"abc", name
    fs = urls.store(f"tar://soft::{path}")[0]
    assert fs.info("soft")["size"] == 3 and fs.isdir("in") and not fs.exists("lost/a")
    assert [(f["name"], f["type"], f["size"]) for f in fs.ls("")][:4] == [
        *(("about", "file", 0), ("early", "file", 0), ("hard", "file", 3), ("in", "directory", 0))
    ]
    assert names_in(f"tar://::{path}") == ["about", "early", "hard", "in", "late", "lost", "round", "soft"]
    for name in ("round", "lost", "early"):
        with pytest.raises(FileNotFoundError, match="cannot read"):
            text(f"tar://{name}::{path}")


def test_thousands_of_links_are_found_at_once(tmp_path, monkeypatch):
    monkeypatch.delenv("MXCORE_MAX_UNPACKED_BYTES")
    path = tmp_path / "x.tar"
    links = [header(tarfile.SYMTYPE, name=f"{i}", link=f"{i - 1}") for i in range(1, 10_000)]
    path.write_bytes(header(size=3, name="0") + padded(b"abc") + b"".join(links) + END)
    begin = time.monotonic()
    assert text(f"tar://39::{path}") == b"abc"
    with pytest.raises(FileNotFoundError):
        text(f"tar://9999::{path}")
    assert time.monotonic() - begin < 20


@pytest.mark.skipif(shutil.which("tar") is None, reason="needs tar, which knows of holes")
@pytest.mark.parametrize("form", ["gnu", "pax --sparse-version=0.1", "pax --sparse-version=1.0"])
def test_files_with_holes(form, tmp_path):
    content = np.zeros(LIMIT // 2, "uint8")
    content[[5, 400_000, 1_500_000, -1]] = 1, 2, 3, 4
    for name, n in (("some", 1), ("many", 3)):
        with open(tmp_path / name, "wb") as f:
            for at in np.flatnonzero(content).tolist():
                f.seek(at)
                f.write(content[at : at + 1].tobytes())
            f.truncate(len(content) * n)
    made = subprocess.run(
        ["tar", *f"-c -S --format={form} -f x.tar some many".split()], cwd=tmp_path, capture_output=True
    )
    if made.returncode or os.path.getsize(tmp_path / "x.tar") > LIMIT // 2:
        pytest.skip("this tar, or this disk, knows of no holes")
    assert text(f"tar://some::{tmp_path}/x.tar") == content.tobytes()
    refused(f"tar://many::{tmp_path}/x.tar", f"tells of {3 * len(content)} bytes, more than")


def test_what_others_read_through_fsspec_stays_as_it_was(tmp_path):
    (tmp_path / "x.tar").write_bytes(header(size=3, name="a") + padded(b"abc") + END)
    text(f"tar://a::{tmp_path}/x.tar")
    for kind in ("tar", "zip"):
        assert fsspec.get_filesystem_class(kind).__module__.startswith("fsspec.")
