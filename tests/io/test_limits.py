"""`mxcore.limits`: what pictures and compressed files may unfold to."""

import gzip
import os
import struct

import cv2
import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.gluon.data import vision
from mxcore.limits import DEFAULTS, check_picture, limit, picture_size

BYTES = np.random.RandomState(0).randint(0, 256, (33, 48, 3), dtype=np.uint8)
ENDINGS = [
    ".jpg",
    ".png",
    ".bmp",
    ".gif",
    ".webp",
    ".tiff",
    ".ppm",
    ".pgm",
    ".pbm",
    ".pam",
    ".pfm",
    ".hdr",
    ".ras",
    ".jp2",
    ".avif",
]


def encoded(ending, image=BYTES):
    if ending in (".pgm", ".pbm"):
        image = image[:, :, 0]
    elif ending in (".pfm", ".hdr"):
        image = image.astype("float32")
    try:
        done, buffer = cv2.imencode(ending, image)
    except cv2.error:
        done = False
    if not done:
        pytest.skip(f"this OpenCV does not write {ending}")
    return buffer.tobytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_size_of_a_picture_is_told_by_its_header(ending, monkeypatch):
    monkeypatch.setenv("MXCORE_TRUSTED_IMAGE_FORMATS", "jp2, avif")
    data = encoded(ending)
    assert cv2.imdecode(np.frombuffer(data, np.uint8), -1).shape[:2] == (33, 48)
    assert picture_size(data) == (48, 33)
    monkeypatch.setenv("MXCORE_MAX_IMAGE_PIXELS", str(48 * 33 - 1))
    with pytest.raises(ValueError, match="48 x 33 pixels"):
        mx.nd.imdecode(data)
    for end in range(0, len(data), 7):  # cut anywhere: a size, the right one, or none, and no other error
        assert picture_size(data[:end]) in (None, (0, 0), (48, 33))


def test_sizes_of_lossless_and_large_webp():
    done, data = cv2.imencode(".webp", BYTES, [cv2.IMWRITE_WEBP_QUALITY, 101])
    assert done and picture_size(data.tobytes()) == (48, 33)
    extended = b"RIFF\0\0\0\0WEBPVP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + (29999).to_bytes(3, "little") * 2
    assert picture_size(extended) == (30000, 30000)


@pytest.mark.parametrize(
    "header, size",
    [
        (b"BM" + bytes(12) + struct.pack("<Iii", 40, 30000, -30000), (30000, 30000)),
        (b"BM" + bytes(12) + struct.pack("<IHH", 12, 300, 200), (300, 200)),
        (b"P5 # a comment\n# and another\n 30000\n40000 255\n", (30000, 40000)),
        (
            b"\xff\xd8\xff\xe1\x00\x04ab" + b"\xff\xff\xc2\x00\x11\x08" + struct.pack(">HH", 40000, 30000) + bytes(12),
            (30000, 40000),
        ),
        (
            b"MM\0*"
            + struct.pack(">IH", 8, 2)
            + struct.pack(">HHII", 256, 4, 1, 30000)
            + struct.pack(">HHIHH", 257, 3, 1, 40000, 0),
            (30000, 40000),
        ),
        (
            b"II+\0\x08\0\0\0"
            + struct.pack("<QQ", 16, 2)
            + struct.pack("<HHQQ", 256, 16, 1, 30000)
            + struct.pack("<HHQQ", 257, 4, 1, 9),
            (30000, 9),
        ),
        (
            b"GIF89a"
            + struct.pack("<HHBBB", 2, 3, 0, 0, 0)
            + b"!\xf9\x04abcd\0,"
            + struct.pack("<HHHH", 1, 2, 30000, 40000),
            (30001, 40002),
        ),
        (b"\xff\x4f\xff\x51" + bytes(4) + struct.pack(">II", 30000, 40000), (30000, 40000)),
        (b"P7\nWIDTH 30000\nHEIGHT 40000\nENDHDR\n", (30000, 40000)),
        (
            b"\x76\x2f\x31\x01\x02\0\0\0dataWindow\0box2i\0\x10\0\0\0" + struct.pack("<iiii", 0, 0, 29999, 39999),
            (30000, 40000),
        ),
        (b"no picture at all", None),
        (b"", None),
    ],
)
def test_headers(header, size, monkeypatch):
    monkeypatch.setenv("MXCORE_TRUSTED_IMAGE_FORMATS", "jp2")
    assert picture_size(header) == size
    if size is not None and size[0] * size[1] > DEFAULTS["MXCORE_MAX_IMAGE_PIXELS"]:
        with pytest.raises(
            ValueError, match=rf"the file of {len(header)} bytes is a picture of {size[0]} x {size[1]} pixels"
        ) as caught:
            check_picture(memoryview(header), "the file")
        assert isinstance(caught.value, MXNetError)


@pytest.mark.parametrize("text", ["0", "-1", "many", "", "9" * 5000])
def test_limits_are_whole_numbers(text, monkeypatch):
    monkeypatch.setenv("MXCORE_MAX_IMAGE_PIXELS", text)
    with pytest.raises(ValueError, match="MXCORE_MAX_IMAGE_PIXELS must be a whole number"):
        limit("MXCORE_MAX_IMAGE_PIXELS")


# -- gzipped files of MNIST ----------------------------------------------------------------------------


def idx(array, shape=None):
    shape = array.shape if shape is None else shape
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape) + array.tobytes()


@pytest.fixture
def digits(tmp_path):
    paths = {"image": tmp_path / "train-images-idx3-ubyte", "label": tmp_path / "train-labels-idx1-ubyte"}
    paths["image"].write_bytes(gzip.compress(idx(BYTES // 64)))
    paths["label"].write_bytes(idx(np.arange(33, dtype="uint8")))
    return paths


OPENERS = {
    "MNISTIter": lambda paths: mx.io.MNISTIter(**paths, batch_size=1),
    "MNIST": lambda paths: vision.MNIST(root=str(paths["image"].parent)),
}


@pytest.mark.parametrize("opened", OPENERS)
def test_a_gzipped_file_that_unfolds_to_too_much(opened, digits, monkeypatch):
    OPENERS[opened](digits)
    monkeypatch.setenv("MXCORE_MAX_UNPACKED_BYTES", str(BYTES.size - 1))
    with pytest.raises(
        ValueError,
        match=f"idx3-ubyte' tells of {BYTES.size} bytes, more than the {BYTES.size - 1} .*MXCORE_MAX_UNPACKED",
    ):
        OPENERS[opened](digits)
    monkeypatch.delenv("MXCORE_MAX_UNPACKED_BYTES")
    digits["image"].write_bytes(gzip.compress(idx(np.zeros(1 << 16, "uint8"), (1 << 20, 1 << 10, 1 << 10))))
    with pytest.raises(ValueError, match=f"tells of {1 << 40} bytes, more than the {1 << 31}") as caught:
        OPENERS[opened](digits)
    assert isinstance(caught.value, MXNetError)


@pytest.mark.parametrize("opened", OPENERS)
def test_what_follows_is_not_unfolded(opened, digits):
    """A bomb behind a small header: no more than a byte of it is asked for."""
    digits["image"].write_bytes(gzip.compress(idx(BYTES) + bytes(1 << 24)))
    with pytest.raises(ValueError, match="idx3-ubyte' goes on, but its header"):
        OPENERS[opened](digits)


@pytest.mark.parametrize("opened", OPENERS)
def test_every_damage_of_a_gzipped_file_is_explained(opened, digits):
    sound = digits["image"].read_bytes()
    told = set()
    for at in range(2, len(sound), max(len(sound) // 50, 1)):
        digits["image"].write_bytes(sound[:at] + bytes([sound[at] ^ 0xFF]) + sound[at + 1 :])
        try:
            OPENERS[opened](digits)
        except MXNetError as e:
            assert "idx3-ubyte' " in str(e)
            told.add(type(e.__cause__).__name__)
    assert "error" in told, told  # zlib's


@pytest.mark.parametrize("shape", [(0, 2**32 - 1, 2**32 - 1), (2**32 - 1, 0, 2**32 - 1)])
@pytest.mark.parametrize("opened", OPENERS)
def test_shapes_that_no_array_can_have(opened, digits, shape):
    digits["image"].write_bytes(idx(np.zeros(0, "uint8"), shape))
    with pytest.raises(MXNetError, match="idx3-ubyte' tells of .*, which no array can be"):
        OPENERS[opened](digits)


def test_no_image_at_all(digits):
    digits["image"].write_bytes(idx(np.zeros((0, 2, 3), "uint8")))
    digits["label"].write_bytes(idx(np.zeros(0, "uint8")))
    assert list(mx.io.MNISTIter(**digits, batch_size=1, flat=True)) == []


@pytest.mark.parametrize("what", ["image", "label"])
def test_a_file_without_an_end(what, digits):
    with pytest.raises(OSError, match="cannot read '/dev/zero': it is a pipe or a device"):
        mx.io.MNISTIter(**digits | {what: "/dev/zero"}, batch_size=1)


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="a file that opens and cannot be read, of Linux")
def test_a_disk_that_fails_while_reading():
    with pytest.raises(OSError, match="cannot read '/proc/self/mem'") as caught:
        mx.io.MNISTIter(image="/proc/self/mem", label="/proc/self/mem", batch_size=1)
    assert isinstance(caught.value, MXNetError)
