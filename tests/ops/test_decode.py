"""Decoding, reading, resizing and borders by OpenCV, and the functions that are no operators."""

import importlib

import numpy as np
import pytest

import mxcore as mx

cv2 = pytest.importorskip("cv2")
J = mx.nd._internal
IMAGE = np.random.RandomState(0).randint(0, 256, (5, 6, 3)).astype("uint8")


def file_of(image, ending=".png"):
    """An image (red, green, blue) as the bytes of a file."""
    return cv2.imencode(ending, image[..., ::-1] if image.ndim == 3 else image)[1].tobytes()


def bytes_of(data):
    return mx.nd.array(np.frombuffer(data, "uint8"), dtype="uint8")


PNG = bytes_of(file_of(IMAGE))


@pytest.mark.parametrize("colour", [True, False], ids=["colour", "grey"])
@pytest.mark.parametrize("door", ["imdecode", "_cvimdecode", "imread", "nd.imdecode", "folder"])
def test_pictures_of_floats_are_in_colour_or_grey_as_asked_for(colour, door, tmp_path):
    image = IMAGE if colour else IMAGE[..., 0]
    (tmp_path / "a").mkdir()
    file = tmp_path / "a" / "b.png"  # OpenCV goes by what is in it
    file.write_bytes(file_of(image.astype("float32"), ".pfm"))
    raw = file.read_bytes()
    doors = {
        "imdecode": lambda flag: mx.image.imdecode(raw, flag=flag),
        "_cvimdecode": lambda flag: J._cvimdecode(bytes_of(raw), flag=flag),
        "imread": lambda flag: mx.image.imread(str(file), flag=flag),
        "nd.imdecode": lambda flag: mx.nd.imdecode(raw, channels=3 if flag else 1).transpose((1, 2, 0)),
        "folder": lambda flag: mx.gluon.data.vision.ImageFolderDataset(str(tmp_path), flag)[0][0],
    }
    assert np.array_equal(doors[door](1).asnumpy(), IMAGE if colour else image[..., None].repeat(3, 2))
    grey = cv2.cvtColor(IMAGE, cv2.COLOR_RGB2GRAY) if colour else image
    assert np.array_equal(doors[door](0).asnumpy(), grey[..., None])


def test_decode():
    y = J._cvimdecode(PNG)
    assert y.dtype == np.uint8 and (y.asnumpy() == IMAGE).all()
    assert (J._cvimdecode(PNG, to_rgb=False).asnumpy() == IMAGE[..., ::-1]).all()
    assert (J._cvimdecode(PNG, flag=0).asnumpy() == cv2.imdecode(PNG.asnumpy(), cv2.IMREAD_GRAYSCALE)[..., None]).all()
    assert (J._cvimdecode(PNG.reshape((1, -1))).asnumpy() == IMAGE).all()
    grey = bytes_of(file_of(IMAGE[..., 0]))
    assert (J._cvimdecode(grey).asnumpy() == IMAGE[..., :1].repeat(3, 2)).all()
    assert J._cvimdecode(bytes_of(file_of(np.full((9, 7, 3), 80, "uint8"), ".jpg"))).shape == (9, 7, 3)


def test_decoding_inside_a_graph():
    s = mx.sym.image.to_tensor(mx.sym._internal._cvimdecode(mx.sym.var("file")))
    y = s.bind(mx.cpu(), {"file": PNG}).forward()[0]
    np.testing.assert_allclose(y.asnumpy(), IMAGE.transpose(2, 0, 1) / 255, rtol=1e-6)


def test_read(tmp_path):
    path = tmp_path / "a b.png"
    path.write_bytes(file_of(IMAGE))
    read = importlib.import_module("mxcore.ndarray.numpy._internal").cvimread
    found = read(str(path), to_rgb=False)
    assert type(found) is mx.np.ndarray and (found.asnumpy() == IMAGE[..., ::-1]).all()
    assert read(path, out=found) is found and (found.asnumpy() == IMAGE).all()
    assert (J._cvimread(str(path)).asnumpy() == IMAGE).all() and J._cvimread(filename=path, flag=0).shape == (5, 6, 1)
    out = mx.nd.zeros((5, 6, 3), dtype="uint8")
    assert J._cvimread(path, to_rgb=False, out=out) is out and (out.asnumpy() == IMAGE[..., ::-1]).all()
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"a b.png \(8 bytes\) is no image.*begins with 6e 6f 6e"):
        J._cvimread(path)
    with pytest.raises(FileNotFoundError, match="nowhere.png"):
        J._cvimread(tmp_path / "nowhere.png")
    path.write_bytes(file_of(IMAGE))
    with pytest.raises(ValueError, match=r"an image \(5, 6, 3\), out has shape \(2,\)"):
        J._cvimread(path, out=mx.nd.zeros((2,)))
    with pytest.raises(ValueError, match="'flag' must be int >= 0, got -1"):
        J._cvimread(path, flag=-1)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("interp", range(5))
def test_resize(interp, dtype):
    methods = (cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_CUBIC, cv2.INTER_AREA, cv2.INTER_LANCZOS4)
    for w, h in ((3, 4), (9, 11), (6, 5)):
        got = J._cvimresize(mx.nd.array(IMAGE, dtype=dtype), w=w, h=h, interp=interp).asnumpy()
        assert (got == cv2.resize(IMAGE.astype(dtype), (w, h), interpolation=methods[interp])).all()
    assert J._cvimresize(mx.nd.array(IMAGE[..., :1], dtype=dtype), w=3, h=4, interp=interp).shape == (4, 3, 1)


@pytest.mark.parametrize("kind", range(5))
def test_borders(kind):
    kinds = (cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT, cv2.BORDER_WRAP, cv2.BORDER_REFLECT_101)
    for margins in ((1, 2, 3, 0), (0, 0, 0, 0), (9, 0, 0, 13)):
        got = J._cvcopyMakeBorder(mx.nd.array(IMAGE, dtype="uint8"), *margins, type=kind, value=7)
        assert (got.asnumpy() == cv2.copyMakeBorder(IMAGE, *margins, kinds[kind], value=(7, 7, 7))).all()


def test_coloured_borders():
    x = mx.nd.array(IMAGE, dtype="float32")
    y = J._cvcopyMakeBorder(x, 1, 0, 0, 1, values=(1, 2, 3)).asnumpy()
    assert (y[0] == [1, 2, 3]).all() and (y[:, -1] == [1, 2, 3]).all() and (y[1:, :-1] == IMAGE).all()
    assert J._cvcopyMakeBorder(x, 1, 0, 0, 0, values=(1, 2)).asnumpy()[0, 0].tolist() == [1, 2, 0]


def test_imdecode():
    data = file_of(IMAGE)
    want = IMAGE.transpose(2, 0, 1)
    assert (mx.nd.imdecode(data).asnumpy() == want).all()
    assert (mx.nd.imdecode(data, clip_rect=(1, 2, 4, 5)).asnumpy() == want[:, 2:5, 1:4]).all()
    assert mx.nd.imdecode(data, channels=1).shape == (1, 5, 6)
    assert (mx.nd.imdecode(data, mean=mx.nd.ones((3, 5, 6))).asnumpy() == want - 1.0).all()
    out = mx.nd.zeros((2, 3, 5, 6))
    assert (
        mx.nd.imdecode(data, out=out, index=1) is out
        and (out.asnumpy()[1] == want).all()
        and not out.asnumpy()[0].any()
    )
    assert (J._imdecode(mx.nd.empty((0,)), 0, 0, 0, 0, 0, 3, len(data), str_img=data + b"more").asnumpy() == want).all()


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: J._cvimdecode(mx.nd.zeros((9,), dtype="uint8")).wait_to_read(),
            r"_cvimdecode.*buf \(9 bytes\) is no image.*begins with 00",
        ),
        (lambda: J._cvimdecode(mx.nd.zeros((9,))), "buf must be uint8, the bytes of a file, got float32"),
        (lambda: J._cvimdecode(PNG, flag=-1), "'flag' must be int >= 0"),
        (
            lambda: J._cvimresize(mx.nd.ones((2, 2)), w=1, h=1),
            r"src must be an image \(height, width, channels\), got \(2, 2\)",
        ),
        (lambda: J._cvimresize(mx.nd.ones((2, 2, 3)), w=0, h=1), "'w' must be int >= 1, got 0"),
        (lambda: J._cvimresize(mx.nd.ones((2, 2, 3)), w=1), "needs parameter 'h'"),
        (lambda: J._cvimresize(mx.nd.ones((2, 2, 3)), w=1, h=1, interp=9), "'interp' must be int between 0 and 4"),
        (lambda: J._cvimresize(mx.nd.ones((2, 2, 3), dtype="int32"), w=1, h=1), "src must be uint8.*got int32"),
        (lambda: J._cvcopyMakeBorder(mx.nd.ones((2, 2)), 1, 1, 1, 1), "src must be an image"),
        (lambda: J._cvcopyMakeBorder(mx.nd.ones((2, 2, 3)), -1, 1, 1, 1), "'top' must be int >= 0, got -1"),
        (lambda: J._cvcopyMakeBorder(mx.nd.ones((2, 2, 3)), 1, 1, 1, 1, type=5), "'type' must be int between 0 and 4"),
        (lambda: mx.nd.imdecode(b"xx"), r"imdecode: str_img \(2 bytes\) is no image"),
        (lambda: mx.nd.imdecode("text"), "must be the bytes of an image file, got str"),
        (lambda: mx.nd.imdecode(file_of(IMAGE), channels=2), "channels must be 1 or 3, got 2"),
        (
            lambda: mx.nd.imdecode(file_of(IMAGE), clip_rect=(0, 0, 7, 2)),
            r"\(0, 0, 7, 2\) is not inside an image of 6x5",
        ),
        (
            lambda: mx.nd.imdecode(file_of(IMAGE), out=mx.nd.zeros((2, 3, 5, 6)), index=2),
            "does not fit into out .* at 2",
        ),
        (lambda: mx.nd.imdecode(file_of(IMAGE), mean=mx.nd.zeros((3, 5))), "mean .* must have the shape of the image"),
        (lambda: J._set_value(src=1), "_set_value needs out="),
        (lambda: J._onehot_encode(mx.nd.zeros((3,)), mx.nd.zeros((2, 4))), "_onehot_encode: indices"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(mx.MXNetError, match=words):
        call()


def test_without_opencv(monkeypatch):
    import sys

    from mxcore.ops.image import opencv

    monkeypatch.setitem(sys.modules, "cv2", None)
    opencv.opencv.cache_clear()
    try:
        with pytest.raises(ImportError, match="OpenCV, which cannot be imported.*pip install"):
            mx.nd.imdecode(b"\x89PNG")
    finally:
        opencv.opencv.cache_clear()


def test_old_functions():
    out = mx.nd.zeros((2, 3), dtype="int32")
    assert J._set_value(src=3.7, out=out) is out and (out.asnumpy() == 3).all()
    rows = mx.nd.ones((3, 4))
    assert J._onehot_encode(mx.nd.array([1, 0, 9]), rows) is rows
    assert rows.asnumpy().tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]


def test_backward_operators_by_name():
    dy = mx.nd.array(np.arange(6).reshape(3, 2))
    old, new = mx.nd.contrib.backward_index_copy(dy, mx.nd.array([2, 0], dtype="int32"))
    assert old.asnumpy().tolist() == [[0, 0], [2, 3], [0, 0]] and new.asnumpy().tolist() == [[4, 5], [0, 1]]
    parts = [mx.nd.ones((2, 3)), mx.nd.zeros((2, 4))]
    assert J._split_v2_backward(*parts, indices=(0, 3), axis=1).shape == (2, 7)
    assert J._split_v2_backward(parts[0], parts[0], sections=2, axis=0, squeeze_axis=True).shape == (2, 2, 3)
    with pytest.raises(ValueError, match="differ in other axes"):
        J._split_v2_backward(*parts, axis=0)
