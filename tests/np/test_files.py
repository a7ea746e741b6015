"""``npx.save`` and ``npx.load``."""

import copy
import os
import struct
import tracemalloc
import zipfile

import numpy as onp
import pytest

import mxcore as mx
from mxcore import np, npx


def _np(values, dtype="float32"):
    return mx.nd.array(onp.asarray(values, dtype), dtype=dtype).as_np_ndarray()


@pytest.mark.parametrize("ending", ["params", "npz"])
def test_what_was_saved_is_read(tmp_path, ending):
    with mx.util.np_shape():
        scalar = mx.nd.full((), 3).as_np_ndarray()
        empty = mx.nd.full((2, 0), 0).as_np_ndarray()
    arrays = {"a": _np([1, 2], "int32"), "scalar": scalar, "empty": empty}
    name = str(tmp_path / f"x.{ending}")
    npx.save(name, arrays)
    found = npx.load(name)
    assert {k: (type(v), v.shape, v.dtype) for k, v in found.items()} == {
        k: (np.ndarray, v.shape, v.dtype) for k, v in arrays.items()
    }
    for k, v in arrays.items():
        onp.testing.assert_array_equal(found[k].asnumpy(), v.asnumpy())


def test_lists_and_single_arrays(tmp_path):
    name = str(tmp_path / "x.params")
    npx.save(name, _np([1, 2]))
    (found,) = npx.load(name)
    assert found.asnumpy().tolist() == [1, 2]
    npx.save(name, [_np([1]), _np([2])])
    assert [x.asnumpy().tolist() for x in npx.load(name)] == [[1], [2]]
    assert [type(x) for x in mx.nd.load(name)] == [mx.nd.NDArray] * 2 if npx.is_np_shape() else True


def test_numpys_archives(tmp_path):
    onp.savez(tmp_path / "x.npz", a=onp.arange(3), b=onp.ones((2, 2), "float16"))
    found = npx.load(str(tmp_path / "x.npz"))
    assert found["a"].dtype == onp.int64 and found["b"].dtype == onp.float16


def test_bad_files_and_arguments(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"x\.npz"):
        npx.load(str(tmp_path / "x.npz"))
    with pytest.raises(TypeError, match="npx.save"):
        npx.save(str(tmp_path / "y"), {"a": onp.ones(2)})
    assert not (tmp_path / "y").exists()
    with pytest.raises(OSError, match="missing"):
        npx.load(str(tmp_path / "missing"))


def member(header, data=b"", name="a.npy", magic=b"\x93NUMPY\x01\x00"):
    return name, magic + len(header).to_bytes(2, "little") + header + data


def head(shape="(3,)", descr="'<f4'", fortran="False"):
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()


@pytest.mark.parametrize(
    "members, text",
    [
        ([member(head(), bytes(12)), member(head(), bytes(12))], "two arrays are called 'a'"),
        ([member(head(), bytes(12)), member(head(), bytes(12), "a")], "two arrays are called 'a'"),
        ([member(head(), bytes(20))], r"member 'a\.npy': its header tells of 12 bytes, 20 are there"),
        ([member(head(), bytes(8))], "tells of 12 bytes, 8 are there"),
        ([member(head("(10**15,)"), b"")], "a.npy"),
        ([member(head("(1000000000000,)"), bytes(4))], "tells of 4000000000000 bytes, 4 are there"),
        ([member(head("(-1,)"), bytes(4))], "a.npy"),
        ([member(head("(1,)", "'<f16'"), bytes(16))], "dtype float128 cannot be held"),
        ([member(head("(1,)", "'|V2'"), bytes(2))], r"dtype \|V2 cannot be held"),
        ([member(b"(" * 900)], "a.npz.*: .*[a-z]"),
        ([member(b"{'descr': (")], r"a\.npz.*member 'a\.npy'"),  # what NumPy raises is no ValueError
        ([member(b'{\t"' + b" " * 9000 + b"x")], "its header has 9004 bytes; .* fewer than 1024"),
        ([("a.npy", b"\x93NUMPY\x02\0" + b"\xff" * 4 + b" " * 70000)], "its header has 4294967295 bytes"),
        ([member(head()[:20] + b" " * 60)], "a.npy"),
        ([("a.npy", b"\x93NUMPY\x01\x00\xff\0" + head())], r"its header ends \d+ bytes early"),
        ([member(head(), magic=b"\x93NUMPY\x03\x00")], r"version \(3, 0\) .* is for arrays of fields"),
        ([("a.txt", b"hello")], r"member 'a\.txt'"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_archives_that_lie(tmp_path, members, text):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    with pytest.raises(mx.MXNetError, match=text):
        npx.load(str(path))


@pytest.mark.parametrize("version, digits", [(1, 2), (2, 4)])
def test_headers_with_room(tmp_path, version, digits):
    """Some writers leave room for a longer shape; Python 2 wrote numbers with an L."""
    text = head("(3L, 1)").ljust(4000)
    data = b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(digits, "little") + text
    values = onp.arange(3, dtype="<f4")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", data + values.tobytes())
    with pytest.warns(UserWarning, match="created on Python 2"):
        found = npx.load(str(tmp_path / "a.npz"))
    assert found["a"].tolist() == values[:, None].tolist()


def test_members_that_share_their_bytes(tmp_path):
    """A stored member takes no more memory than the file, unless there are many over the same place."""
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(*member(head("(1000,)"), bytes(4000)))
        first = archive.infolist()[0]
        for i in range(3):
            twin = copy.copy(first)
            twin.filename = twin.orig_filename = f"{'bcd'[i]}.npy"
            archive.filelist.append(twin)
    with pytest.raises(ValueError, match="its members share bytes"):
        npx.load(str(path))


def renumbered(data, **changes):
    """An archive whose end tells something else."""
    end = data.rindex(b"PK\5\6")
    fields = dict(zip(("here", "count", "size", "offset"), struct.unpack_from("<HHII", data, end + 8)))
    return data[: end + 8] + struct.pack("<HHII", *{**fields, **changes}.values()) + data[end + 20 :]


@pytest.mark.parametrize("comment", [b"", b"a comment"])
@pytest.mark.parametrize("changes", [{"size": 0}, {"count": 3}, {"count": 1}, {"cut": 1}])
def test_a_directory_that_lacks_members(tmp_path, comment, changes):
    path = tmp_path / "a.npz"
    onp.savez(path, a=onp.ones(3), b=onp.ones(2))
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = comment
    sound = path.read_bytes()
    assert sorted(npx.load(str(path))) == ["a", "b"]
    if "cut" in changes:  # the first of two entries, as if there were something in front of the archive
        first, second = (i for i in range(len(sound)) if sound[i : i + 4] == b"PK\1\2")
        changes = {"size": sound.rindex(b"PK\5\6") - second, "offset": second}
        assert second > first
    path.write_bytes(renumbered(sound, **changes))
    with pytest.raises(ValueError, match=r"a\.npz: .*its end tells of \d members, but its directory has \d; it is dam"):
        npx.load(str(path))


def test_more_members_than_the_end_of_an_archive_counts(tmp_path, monkeypatch):
    """They are counted in front of it; here the limit is lower, so that there are two."""
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    path = tmp_path / "a.npz"
    onp.savez(path, a=onp.ones(3), b=onp.ones(2))
    large = renumbered(path.read_bytes(), count=0xFFFF)
    at = large.index(b"PK\6\6")
    path.write_bytes(large)
    assert sorted(npx.load(str(path))) == ["a", "b"]
    path.write_bytes(large[: at + 32] + b"\3" + large[at + 33 :])
    with pytest.raises(ValueError, match="its end tells of 3 members, but its directory has 2"):
        npx.load(str(path))


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no /dev/zero")
def test_devices_are_no_archives(tmp_path):
    path = tmp_path / "a.npz"
    path.symlink_to("/dev/zero")
    with pytest.raises(OSError, match="it is a pipe or a device"):
        npx.load(str(path))


def test_another_packing_is_told_as_what_it_is(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr(*member(head(), bytes(12)))
    with pytest.raises(ValueError, match=r"'a\.npy' is packed by method 12, .*\. numpy\.load reads it, or pack"):
        npx.load(str(path))


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_archives_that_unfold_to_much(tmp_path, method, monkeypatch):
    monkeypatch.setenv("MXCORE_MAX_UNPACKED_BYTES", "1000000")
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name in ("a.npy", "b.npy"):
            archive.writestr(*member(head("(150000,)"), bytes(600000), name))
    with pytest.raises(ValueError, match="MXCORE_MAX_UNPACKED_BYTES"):
        npx.load(str(path))
    onp.savez(path, a=onp.zeros(400000, "f4"))  # not packed: no more in memory than in the file
    assert npx.load(str(path))["a"].shape == (400000,)


def test_arrays_of_numpy_in_any_layout(tmp_path):
    there = {
        "f": onp.asfortranarray(onp.arange(6.0).reshape(2, 3)),
        "big": onp.arange(3, dtype=">i4"),
        "none": onp.zeros((0, 3)),
        "one": onp.float32(3),
        "truth": onp.array([True, False]),
    }
    onp.savez_compressed(tmp_path / "x.npz", **there)
    found = npx.load(str(tmp_path / "x.npz"))
    for name, a in there.items():
        onp.testing.assert_array_equal(found[name].asnumpy(), a)
        assert found[name].dtype == onp.asarray(a).dtype.newbyteorder("=")


@pytest.mark.parametrize("shape", [(40, 70), (700, 3), (3, 700), (2, 300, 4), (5, 1, 6, 2), (1, 1), (0, 3)])
@pytest.mark.parametrize("dtype", ["<f4", ">i2", "?"])
@pytest.mark.parametrize("piece", [16, 500, 1 << 18])
def test_any_part_of_an_array_in_fortrans_order_may_come_at_a_time(tmp_path, monkeypatch, shape, dtype, piece):
    monkeypatch.setattr("mxcore.numpy_extension.files._PIECE", piece)
    a = onp.asfortranarray((onp.arange(onp.prod(shape)).reshape(shape) % 7).astype(dtype))
    onp.savez_compressed(tmp_path / "x.npz", a=a)
    assert (npx.load(str(tmp_path / "x.npz"))["a"].asnumpy() == a).all()


@pytest.mark.parametrize("nested", [lambda x: {"a": {"b": x}}, lambda x: {"a": [x]}, lambda x: [[x], x]])
@pytest.mark.parametrize("name", ["a.npz", "a.params"])
def test_nested_arrays_are_refused(tmp_path, name, nested):
    with pytest.raises(
        TypeError, match="npx.save: arrays of mx.np are saved, or lists and dicts of them, got (dict|list)"
    ):
        npx.save(str(tmp_path / name), nested(np.ones(2)))
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("how", [{}, {"order": "F"}, {"dtype": ">f4"}])
def test_unfolding_takes_no_memory_beside_the_arrays(tmp_path, how):
    a = onp.asarray(onp.arange(2000000.0).reshape(1000, 2000), **{"dtype": "f4", **how})
    onp.savez_compressed(tmp_path / "x.npz", a=a)
    npx.load(str(tmp_path / "x.npz"))  # what is imported on the way
    mx.cpu().empty_cache()  # and what that left in reserve
    tracemalloc.start()
    try:
        found = npx.load(str(tmp_path / "x.npz"))["a"]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < a.nbytes + (5 << 20)
    assert found.shape == a.shape and (found.asnumpy() == a).all()


@pytest.mark.parametrize("how", [{}, {"order": "F"}])
def test_bytes_that_the_checksum_does_not_fit(tmp_path, how):
    a = onp.asarray(onp.arange(1000000.0).reshape(1000, 1000), **{"dtype": "f4", **how})
    onp.savez(tmp_path / "x.npz", a=a)
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(ValueError, match="CRC"):
        npx.load(str(tmp_path / "x.npz"))


BROKEN = onp.array([0, 1, 2, 255, 0, 128], onp.uint8).view(onp.bool_).reshape(2, 3)


@pytest.mark.parametrize("how", ["C", "F"])
def test_a_damaged_byte_of_an_archive_is_no_broken_bool(tmp_path, how):
    onp.savez(tmp_path / "x.npz", a=onp.asarray(BROKEN, order=how))
    found = npx.load(str(tmp_path / "x.npz"))["a"]
    assert found.asnumpy().view(onp.uint8).tolist() == [[0, 1, 1], [1, 0, 1]]
    assert int(found.sum()) == 4


def test_broken_bools_of_numpy_become_whole_ones():
    old = BROKEN.view(onp.uint8).tolist()
    written, picked, legacy = np.zeros((2, 3), dtype="bool"), np.zeros((2, 3), dtype="bool"), mx.nd.zeros((2, 3))
    written[:], picked[np.array([0, 1])] = BROKEN, BROKEN
    legacy = legacy.astype("bool")
    legacy[:] = BROKEN
    for x in (
        mx.nd.array(BROKEN, dtype="bool"),
        mx.nd.array(BROKEN.T, dtype="bool").T,
        mx.nd.from_numpy(BROKEN, zero_copy=False),
        np.array(BROKEN),
        np.array(BROKEN, dtype="bool"),
        np.array(BROKEN[1, 0]).reshape(1, 1),
        written,
        picked,
        legacy,
    ):
        bits = x.asnumpy().view(onp.uint8)
        assert bits.tolist() == ([[0, 1, 1], [1, 0, 1]] if x.size > 1 else [[1]])
    assert BROKEN.view(onp.uint8).tolist() == old, "who gave them keeps them as they are"


def test_columns_first_of_three_axes(tmp_path):
    a = onp.asfortranarray(onp.arange(60 * 70 * 80.0).reshape(60, 70, 80)).astype(">f8")
    onp.savez(tmp_path / "x.npz", a=a, wide=a[:1, :, :1], bit=onp.asfortranarray(a > 7))
    found = npx.load(str(tmp_path / "x.npz"))
    for name, there in {"a": a, "wide": a[:1, :, :1], "bit": a > 7}.items():
        assert (found[name].asnumpy() == there).all()


@pytest.mark.parametrize(
    "key, text",
    [
        (1, "names of arrays are text"),
        ("a\0b", "NUL"),
        ("\ud800", "the name of an array holds half of a character"),
        ("a" * 70000, "65531"),
    ],
)
def test_names_that_archives_do_not_keep(tmp_path, key, text):
    with pytest.raises(mx.MXNetError, match=text):
        npx.save(str(tmp_path / "x.npz"), {key: np.ones(1)})
    assert not list(tmp_path.iterdir())


def test_bfloat16_is_for_mxnets_format(tmp_path):
    with pytest.raises(ValueError, match="'w' is bfloat16"):
        npx.save(str(tmp_path / "x.npz"), {"w": np.ones(1).astype("bfloat16")})


def test_an_archive_in_an_archive(tmp_path):
    onp.savez(tmp_path / "a.npz", x=onp.arange(3.0))
    with zipfile.ZipFile(tmp_path / "o.zip", "w", zipfile.ZIP_DEFLATED) as outer:
        outer.write(tmp_path / "a.npz", "in/a.npz")
    assert npx.load(f"zip://in/a.npz::{tmp_path}/o.zip")["x"].tolist() == [0, 1, 2]


def test_folders_in_an_archive_are_no_arrays(tmp_path):
    path = tmp_path / "a.npz"
    onp.savez(path, x=onp.arange(3.0))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("d/", b"")
    assert [*npx.load(str(path))] == ["x"]
