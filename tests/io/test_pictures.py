"""Pictures whose headers tell one size to a careless reader and another to OpenCV's decoders."""

import resource
import struct
import zlib

import cv2
import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.limits import check_picture, picture_size
from mxcore.limits.pictures import chunks, jpeg_scans, tiff_strips

WIDTH, HEIGHT = 30, 20
SIZE = b"%d %d" % (WIDTH, HEIGHT)
PIXELS = bytes(WIDTH * HEIGHT * 4)
PAM = b"WIDTH %d\nHEIGHT %d\nDEPTH 3\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\n" % (WIDTH, HEIGHT) + PIXELS
HDR = b"FORMAT=32-bit_rle_rgbe\n"


def tiff(*sizes, after=b""):
    """A grey picture of classic TIFF: entries of sizes as (tag, kind, four bytes), then the pixels."""
    entries = sorted(
        [
            *sizes,
            *(
                (tag, 4, struct.pack("<I", v))
                for tag, v in ((258, 8), (259, 1), (262, 1), (277, 1), (278, HEIGHT), (279, WIDTH * HEIGHT))
            ),
        ],
        key=lambda e: e[0],
    )
    behind = 8 + 2 + 12 * (len(entries) + 1) + 4
    entries.append((273, 4, struct.pack("<I", behind)))
    body = b"".join(
        struct.pack("<HHI", tag, kind, 1) + value for tag, kind, value in sorted(entries, key=lambda e: e[0])
    )
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + body + bytes(4) + PIXELS[: WIDTH * HEIGHT] + after


def tiff_of(kind, layout):
    return tiff((256, kind, struct.pack(layout, WIDTH)), (257, kind, struct.pack(layout, HEIGHT)))


def webp(quality):
    done, data = cv2.imencode(
        ".webp",
        np.random.RandomState(0).randint(0, 256, (HEIGHT, WIDTH, 3)).astype("u1"),
        [cv2.IMWRITE_WEBP_QUALITY, quality],
    )
    assert done
    return data.tobytes()[20:]  # without the container


ELSEWHERE = 8 + 2 + 12 * 9 + 4 + WIDTH * HEIGHT
PICTURES = {
    "a comment that ends in CR": b"P5 #\r" + SIZE + b" 255 #\n1 1 255 " + PIXELS,
    "a # behind a number": b"P5 %d#\n%d 255 " % (WIDTH, HEIGHT) + PIXELS,
    "ENDHDR in a comment": b"P7\n# ENDHDR\n" + PAM,
    "a long comment": b"P7\n#" + b"x" * 70000 + b"\n" + PAM,
    "a PAM comment that ends in CR": b"P7\n#\r" + PAM,
    "a line that looks like the last": b"#?RADIANCE\n-Y 1 +X 1\n" + HDR + b"\n-Y %d +X %d\n" % (HEIGHT, WIDTH) + PIXELS,
    "two blanks": b"#?RADIANCE\n" + HDR + b"\n-Y  %d\t+X  %d\n" % (HEIGHT, WIDTH) + PIXELS,
    "a long header": b"#?RADIANCE\n" + HDR + (b"#" * 60 + b"\n") * 1200 + b"\n-Y %d +X %d\n" % (HEIGHT, WIDTH) + PIXELS,
    "signed bytes": tiff_of(6, "<bxxx"),
    "signed 16 bits": tiff_of(8, "<hxx"),
    "signed 32 bits": tiff_of(9, "<i"),
    "64 bits elsewhere": tiff(
        (256, 16, struct.pack("<I", ELSEWHERE)), (257, 3, struct.pack("<I", HEIGHT)), after=struct.pack("<Q", WIDTH)
    ),
    "each size twice": tiff(
        *((tag, 3, struct.pack("<I", v)) for tag, v in ((256, WIDTH), (256, 1), (257, HEIGHT), (257, 1)))
    ),
    "WebP without a container": webp(80),
    "lossless WebP without a container": webp(101),
}


@pytest.mark.parametrize("name", PICTURES)
def test_sizes_are_found_where_opencv_finds_them(name, monkeypatch):
    data = PICTURES[name]
    image = cv2.imdecode(np.frombuffer(data, np.uint8), -1)
    if image is not None:  # this OpenCV
        assert image.shape[:2] == (HEIGHT, WIDTH)
    assert picture_size(data) == (WIDTH, HEIGHT)
    monkeypatch.setenv("MXCORE_MAX_IMAGE_PIXELS", str(WIDTH * HEIGHT - 1))
    with pytest.raises(ValueError, match=f"{WIDTH} x {HEIGHT} pixels"):
        mx.nd.imdecode(data)


@pytest.mark.parametrize(
    "data",
    [
        b"P5 +3 +2 255 ",
        b"P7\nDEPTH 1\nENDHDR\n",
        b"#?RADIANCE\n",
        b"\xff\xd8\xff\xd9",
        b"\x89PNG\r\n\x1a\n",
        tiff((257, 3, struct.pack("<I", 2))),
        b"RIFF\0\0\0\0WEBPVP8X",
    ],
)
def test_pictures_that_do_not_tell_their_size_are_not_decoded(data):
    assert picture_size(data) == (0, 0)
    with pytest.raises(ValueError, match="no header that tells") as caught:
        check_picture(data)
    assert isinstance(caught.value, MXNetError)


def test_boxes_nested_without_end():
    nested = b"".join(struct.pack(">I4sI", 0, b"meta", 0) for _ in range(3000))
    assert picture_size(b"\0\0\0\x08ftyp" + nested) == (0, 0)


def test_a_header_of_blanks_takes_no_memory_for_each():
    import tracemalloc

    data = b"P5 " + b" " * (1 << 22)
    tracemalloc.start()
    try:
        assert picture_size(data) == (0, 0)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_progressive_jpeg_of_many_scans():
    done, data = cv2.imencode(".jpg", np.zeros((64, 64, 3), "u1"), [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])
    data = data.tobytes()
    assert done and mx.nd.imdecode(data).size == 64 * 64 * 3
    last = data[data.rindex(b"\xff\xda") : -2]
    with pytest.raises(ValueError, match="scans, more than"):
        mx.nd.imdecode(data[:-2] + last * 600 + b"\xff\xd9")


@pytest.mark.parametrize(
    "change, scans",
    [
        (lambda data, at: data, 1),
        (lambda data, at: data[:-2] + data[at:-2] * 600 + data[-2:], 1),  # which no decoder looks at
        (lambda data, at: data.replace(b"\xff\xc0", b"\xff\xc2"), 1),
        (lambda data, at: data.replace(b"\xff\xc0", b"\xff\xc2")[:-2] + b"\xff\xda" * 7, 8),
        (lambda data, at: data[: at + 4] + b"\1" + data[at + 5 :] + b"\xff\xda" * 3 + b"\0" + b"\xff\xda" * 3, 7),
        (lambda data, at: data[: at + 2], 1),
        (lambda data, at: data[:at] + b"\xff\xe0" + data[at:], 1),  # a segment that reaches beyond its end
    ],
)
def test_scans_that_a_decoder_goes_through(change, scans):
    """All, where they refine each other or have some of the components; only the first otherwise."""
    done, data = cv2.imencode(".jpg", np.zeros((64, 64, 3), "u1"))
    data = data.tobytes()
    assert done and data.count(b"\xff\xda") == data.count(b"\xff\xc0") == 1
    data = change(data, data.index(b"\xff\xda"))
    assert jpeg_scans(data) == scans
    if scans == 1 and data.endswith(b"\xff\xd9") and b"\xff\xc0" in data:
        check_picture(data)


@pytest.mark.parametrize("trusted, decoded", [("", ()), ("jp2", ("jp2",)), ("AVIF, jp2", ("jp2", "avif"))])
@pytest.mark.parametrize("ending", ["jp2", "j2k", "avif"])
def test_formats_for_which_no_limit_holds_are_refused(ending, trusted, decoded, monkeypatch):
    """96 bytes of JPEG 2000 name so many precincts or layers, and the frame of an AVIF file is as large as it likes."""
    monkeypatch.setenv("MXCORE_TRUSTED_IMAGE_FORMATS", trusted)
    kind = ending.replace("j2k", "jp2")
    done, data = cv2.imencode(f".{kind}", np.zeros((64, 64, 3), "u1"))
    data = data.tobytes()
    if ending == "j2k":
        data = data[data.index(b"\xff\x4f\xff\x51") :]
    assert done
    if kind in decoded:
        assert mx.image.imdecode(data).shape == (64, 64, 3)
        return
    refusal = rf"is in the format '{kind}', .*set MXCORE_TRUSTED_IMAGE_FORMATS={kind}, or else convert"
    with pytest.raises(ValueError, match=refusal):
        mx.image.imdecode(data)
    with pytest.raises(ValueError, match=refusal):
        check_picture(memoryview(data))


def strips_of_tiff(strips, size, order="<", big=False, counts=True):
    """A picture of 16 pixels in a row, in strips of one row that all lie at the same `size` bytes."""
    number, offset = "QQ" if big else "HI"
    head = struct.pack(order + "HHHQ", 43, 8, 0, 16) if big else struct.pack(order + "HI", 42, 8)
    inline = struct.calcsize(offset)
    fields = {256: 16, 257: strips, 258: 8, 259: 1, 262: 1, 266: 2, 277: 1, 278: 1}
    n = len(fields) + 1 + counts
    # Behind the page: where strips begin, how long they are, the pixels.
    tables = 2 + len(head) + struct.calcsize(number) + n * (4 + 2 * inline) + inline
    pixels = tables + 4 * strips * (1 + counts)

    def field(tag, values, elsewhere):
        found = struct.pack(f"{order}{len(values)}I", *values)
        value = found.ljust(inline, b"\0") if len(found) <= inline else struct.pack(order + offset, elsewhere)
        return struct.pack(order + "HH" + offset, tag, 4, len(values)) + value

    page = {tag: field(tag, [value], None) for tag, value in fields.items()}
    page[273] = field(273, [pixels] * strips, tables)
    if counts:
        page[279] = field(279, [size] * strips, tables + 4 * strips)
    data = (b"II" if order == "<" else b"MM") + head + struct.pack(order + number, n)
    data += b"".join(page[tag] for tag in sorted(page)) + bytes(inline)
    assert len(data) == tables
    data += struct.pack(order + "I", pixels) * strips + struct.pack(order + "I", size) * strips * counts
    return data + bytes(size)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("counts", [False, True])
def test_strips_of_a_tiff_that_lie_upon_each_other_are_refused(order, big, counts):
    """A decoder copies each of them, and may turn around its bits."""
    data = strips_of_tiff(5000, 1000000, order, big, counts)
    assert picture_size(data) == (16, 5000)
    with pytest.raises(ValueError, match=r"whose strips or tiles are \d{10} bytes in all: they lie upon each other"):
        mx.image.imdecode(data)
    check_picture(strips_of_tiff(200, 1000000, order, big, counts))


@pytest.mark.parametrize("strips, size", [(1, 16), (3, 16), (3, 1000)])
def test_strips_of_a_sound_tiff_are_counted(strips, size):
    data = strips_of_tiff(strips, size)
    assert tiff_strips(data) == strips * min(size, len(data))
    assert mx.image.imdecode(data).shape == (strips, 16, 3)
    for end in range(len(data)):
        assert tiff_strips(data[:end]) >= 0
    done, encoded = cv2.imencode(".tiff", np.zeros((64, 64, 3), "u1"))
    assert done and 0 < tiff_strips(encoded.tobytes()) < len(encoded)


def test_scans_times_pixels_are_bounded():
    done, data = cv2.imencode(".jpg", np.zeros((4096, 4096, 3), "u1"), [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])
    data = data.tobytes()
    check_picture(data)
    last = data[data.rindex(b"\xff\xda") : -2]
    with pytest.raises(ValueError, match="scans, more than"):
        check_picture(data[:-2] + last * 300 + data[-2:])


def test_scans_beyond_the_first_of_all_components_are_not_read():
    done, data = cv2.imencode(".jpg", np.arange(64 * 64 * 3, dtype="u1").reshape(64, 64, 3))
    data = data.tobytes()
    more = data[:-2] + data[data.index(b"\xff\xda") : -2] * 600 + data[-2:]
    assert done and (cv2.imdecode(np.frombuffer(more, "u1"), 1) == cv2.imdecode(np.frombuffer(data, "u1"), 1)).all()
    assert (mx.nd.imdecode(more).asnumpy() == mx.nd.imdecode(data).asnumpy()).all()


@pytest.mark.parametrize("length", [1 << 20, 1 << 31, (1 << 32) - 1])
def test_a_png_chunk_that_ends_behind_the_file_takes_no_memory(length):
    done, whole = cv2.imencode(".png", np.zeros((HEIGHT, WIDTH, 3), "u1"))
    data = bytearray(whole.tobytes())
    assert done and check_picture(bytes(data)) is None and data[37:41] == b"IDAT"
    data[33:37] = struct.pack(">I", length)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(
        ValueError,
        match=rf"chunk IDAT at offset 33 has {length} bytes, but {len(data) - 41} are left; it is cut or damaged",
    ) as caught:
        mx.image.imdecode(bytes(data))
    assert isinstance(caught.value, MXNetError)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 18  # KiB


def _chunk(kind, body):
    return struct.pack(">I4s", len(body), kind) + body + struct.pack(">I", zlib.crc32(kind + body))


def test_chunks_of_a_png_file():
    head = b"\x89PNG\r\n\x1a\n"
    parts = [_chunk(kind, body) for kind, body in ((b"IHDR", bytes(13)), (b"IDAT", b""), (b"IEND", b""))]
    found = [("IHDR", 8, 13), ("IDAT", 33, 0), ("IEND", 45, 0)]
    assert (
        [*chunks(head)] == [] and [*chunks(head + b"".join(parts))] == found and [*chunks(head + parts[0])] == found[:1]
    )
    assert [*chunks(head + b"".join(parts) + b"\xff" * 8)] == found  # what comes behind the end is not read
    assert [*chunks(head + parts[0] + b"\0\0\0\x05\n\xffAT1234")][-1] == ("\\n\\xffAT", 33, 5)


@pytest.mark.parametrize(("kind", "text"), [(b"zTXt", b"key\0\0"), (b"iTXt", b"key\0\1\0\0\0")])
def test_packed_texts_of_a_png_file_are_counted(kind, text):
    """Each of 8 KB takes a decoder 13 ms."""
    done, whole = cv2.imencode(".png", np.full((HEIGHT, WIDTH, 3), 7, "u1"))
    whole = whole.tobytes()
    texts = [_chunk(kind, text + zlib.compress(b"%d" % i)) for i in range(65)]
    assert done and (mx.image.imdecode(whole[:33] + b"".join(texts[1:]) + whole[33:]).asnumpy() == 7).all()
    for data in (whole[:33] + b"".join(texts) + whole[33:], whole[:-12] + b"".join(texts) + whole[-12:]):
        with pytest.raises(ValueError, match="more than 64 packed texts"):
            mx.image.imdecode(data)
