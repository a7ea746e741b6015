"""Operators on images: MXNet's numbers, OpenCV's, definitions, statistics of what is random, gradients, refusals."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.ops.image import colours, resampling
from mxcore.testing.gradcheck import check_grads

from .golden.corners import wave

cv2 = pytest.importorskip("cv2")
I = mx.nd.image
IMAGE = (np.arange(5 * 6 * 3) * 37 % 256).astype("uint8").reshape(5, 6, 3)
LARGE = np.random.RandomState(0).randint(0, 256, (40, 32, 3)).astype("uint8")
METHODS = (cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_CUBIC, cv2.INTER_AREA, cv2.INTER_LANCZOS4)

#: MXNet 1.9.1's IMAGE, resized to (4, 3) by each method, and the start of it at (8, 7).
SMALLER = """
0 37 74 111 148 185 77 114 151 188 225 6 154 191 228 9 46 83 231 12 49 86 123 160 206 243 24 61 98 135 27 64 101 138 175
212 |
58 95 132 160 69 106 135 108 102 109 146 76 80 117 154 54 91 128 157 130 167 131 104 141 144 181 112 119 156 150 115 152
189 153 126 163 |
53 97 134 175 67 104 130 106 100 109 153 71 82 119 156 43 80 117 171 141 178 132 102 139 150 187 105 121 158 152 110 154
191 157 124 161 |
64 101 138 144 79 116 141 110 96 119 156 73 106 143 146 83 120 157 149 101 138 160 112 115 148 185 102 125 162 148 105
142 179 151 120 157 |
51 101 130 184 80 110 119 102 96 116 157 66 88 126 163 51 74 111 183 147 184 130 95 132 156 192 100 119 162 156 106 148
178 159 127 157
"""
LARGER = """
0 37 74 0 37 74 111 148 185 222 3 40 77 114 151 77 114 151 188 225 6 43 80 117 |
0 37 74 69 106 143 153 93 130 204 17 54 95 100 137 146 183 60 134 170 48 43 80 117 |
0 15 52 60 127 164 184 102 139 219 0 31 74 99 155 156 220 48 151 186 23 19 56 134 |
0 37 74 74 111 148 148 100 137 222 3 40 77 114 151 151 188 54 140 177 43 43 80 117 |
0 5 45 52 138 181 200 109 132 207 0 29 66 95 159 156 235 55 166 174 8 9 54 146
"""


def array(x, dtype=None):
    return mx.nd.array(x, dtype=dtype or x.dtype)


@pytest.mark.parametrize("interp", range(5))
def test_resize_is_mxnets(interp):
    """OpenCV's versions round the cubic and the Lanczos method differently by one."""
    for size, text in (((4, 3), SMALLER), ((8, 7), LARGER)):
        want = np.array(text.split("|")[interp].split(), int)
        got = I.resize(array(IMAGE), size, interp=interp).asnumpy().astype(int).ravel()[: want.size]
        assert abs(got - want).max() <= (1 if interp in (2, 4) else 0)


@pytest.mark.parametrize("interp", range(5))
@pytest.mark.parametrize("new", [(3, 4), (7, 9), (5, 3), (9, 4), (10, 12), (1, 1), (5, 6)])
def test_resampling_is_opencvs(interp, new):
    """The products that other devices compute give what OpenCV gives, and their transposes the gradient."""
    x = wave((5, 6, 2), 1).astype("float64")
    want = cv2.resize(x, new[::-1], interpolation=METHODS[interp]).reshape(*new, 2)
    y, w = resampling.matrices(np, (5, 6), new, interp, "float64")
    np.testing.assert_allclose(resampling.apply(np, y, w, x), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(I.resize(array(x), new[::-1], interp=interp).asnumpy(), want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose((y.sum(1), w.sum(1))[0], 1, rtol=1e-12)


@pytest.mark.parametrize(
    "size, keep, shape",
    [
        (4, False, (4, 4)),
        ((4,), False, (4, 4)),
        ((4, 3), False, (3, 4)),
        (4, True, (4, 4)),
        (10, True, (10, 12)),
        ((7, 3), True, (3, 7)),
    ],
)
def test_sizes(size, keep, shape):
    x = array(np.stack([IMAGE, 255 - IMAGE]))
    got = I.resize(x, size, keep)
    assert got.shape == (2, *shape, 3) and got.dtype == np.uint8
    assert (got[1].asnumpy() == I.resize(x[1], size, keep).asnumpy()).all()
    assert I.resize(x[0].transpose((1, 0, 2)), size, keep).shape == (
        *(shape[::-1] if keep and not isinstance(size, tuple) else shape),
        3,
    )


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float16", "float32", "float64"])
def test_resize_of_all_dtypes(dtype):
    got = I.resize(array(LARGE, dtype), (11, 13))
    want = cv2.resize(LARGE.astype("float64"), (11, 13))
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_allclose(
        got.asnumpy().astype("d"), want, atol=0.2 if dtype == "float16" else 1 if np.dtype(dtype).kind != "f" else 1e-3
    )


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "float64"])
def test_tensors(dtype):
    x = array(IMAGE, dtype)
    t = I.to_tensor(x)
    assert t.dtype == np.float32 and t.shape == (3, 5, 6)
    np.testing.assert_allclose(t.asnumpy(), IMAGE.transpose(2, 0, 1) / 255, rtol=1e-3 if dtype == "float16" else 1e-6)
    assert (I.to_tensor(x.expand_dims(0)).asnumpy() == t.asnumpy()[None]).all()
    n = I.normalize(x.transpose((2, 0, 1)), (1, 2, 3), (2, 4, 8))
    want = (IMAGE.transpose(2, 0, 1).astype("d") - np.reshape([1, 2, 3], (3, 1, 1))) / np.reshape([2, 4, 8], (3, 1, 1))
    inside = want >= 0
    assert n.dtype == np.dtype(dtype)
    want = want.astype(dtype) if np.dtype(dtype).kind == "f" else np.trunc(want)
    np.testing.assert_allclose(n.asnumpy()[inside], want[inside], rtol=1e-3 if dtype == "float16" else 1e-6)


def test_tensor_gradients():
    x = array(IMAGE, "float32")
    x.attach_grad()
    with mx.autograd.record():
        y = I.normalize(I.to_tensor(x), 0.5, (0.5, 0.25, 1))
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), np.broadcast_to([2 / 255, 4 / 255, 1 / 255], (5, 6, 3)), rtol=1e-6)
    check_grads(lambda x: I.normalize(x, (0.1, 0.2, 0.3), 0.5), [wave((2, 3, 2, 2), 1)], order=2)


def test_crop():
    x = array(np.stack([IMAGE, 255 - IMAGE]))
    assert (I.crop(x, 1, 2, 3, 2).asnumpy() == x.asnumpy()[:, 2:4, 1:4]).all()
    assert (I.crop(x[1], x=0, y=0, width=6, height=5).asnumpy() == 255 - IMAGE).all()
    check_grads(lambda x: I.crop(x, 1, 0, 2, 2), [wave((3, 4, 1), 1)], order=2)


@pytest.mark.parametrize("name, axis", [("flip_left_right", 1), ("flip_top_bottom", 0)])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "float32", "float64"])
def test_flips(name, axis, dtype):
    x = array(IMAGE, dtype)
    got = getattr(I, name)(x)
    assert (got.asnumpy() == np.flip(IMAGE, axis)).all() and got.dtype == np.dtype(dtype)
    batch = getattr(I, name)(array(np.stack([IMAGE, LARGE[:5, :6]]), dtype)).asnumpy()
    assert (batch[1] == np.flip(LARGE[:5, :6], axis)).all()


@pytest.mark.parametrize("name, axis", [("flip_left_right", 1), ("flip_top_bottom", 0)])
def test_random_flips(name, axis):
    mx.random.seed(3)
    x, head = array(IMAGE, "float32"), wave(IMAGE.shape, 2)
    x.attach_grad()
    flipped = 0
    for _ in range(200):
        with mx.autograd.record():
            y = getattr(I, "random_" + name)(x)
        y.backward(array(head))
        is_flipped = (y.asnumpy() == np.flip(IMAGE, axis)).all()
        assert is_flipped or (y.asnumpy() == IMAGE).all()
        assert (x.grad.asnumpy() == (np.flip(head, axis) if is_flipped else head)).all()
        flipped += bool(is_flipped)
    assert 60 < flipped < 140


def reference(name, x, factor):
    """Changes of colour by their definitions, in double precision."""
    import colorsys

    x, grey = x.astype("float64"), x.astype("float64") @ np.array([0.299, 0.587, 0.114])
    if name == "brightness":
        return x * factor
    if name == "contrast":
        return x * factor + (1 - factor) * grey.mean()
    if name == "saturation":
        return x * factor + (1 - factor) * grey[..., None]
    out = np.empty_like(x)
    for i in np.ndindex(x.shape[:2]):
        h, lightness, s = colorsys.rgb_to_hls(*(x[i] / 255))
        out[i] = 255 * np.array(colorsys.hls_to_rgb((h + factor) % 1, lightness, s))
    return out


@pytest.mark.parametrize("image", [IMAGE, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "float32", "float64"])
@pytest.mark.parametrize("factor", [0.3, 1.0, 1.37])
@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation", "hue"])
def test_colours(name, factor, dtype, image):
    got = getattr(I, "random_" + name)(array(image, dtype), factor, factor)
    want = reference(name, image, factor)
    assert got.dtype == np.dtype(dtype)
    got = got.asnumpy().astype("d")
    if np.dtype(dtype).kind in "iu":
        assert abs(got - np.trunc(np.clip(want, *((0, 255) if dtype == "uint8" else (-1e9, 1e9))))).max() <= 1
    else:
        np.testing.assert_allclose(
            got, want, rtol=2e-3 if dtype == "float16" else 1e-4, atol=0.3 if dtype == "float16" else 3e-3
        )


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("image", [IMAGE, LARGE], ids=["small", "large"])
def test_lighting(dtype, image):
    got = I.adjust_lighting(array(image, dtype), (0.1, -0.2, 0.3)).asnumpy().astype("d")
    want = image + colours.COMPONENTS.astype("d") @ [0.1, -0.2, 0.3]
    assert abs(got - (np.trunc(np.clip(want, 0, 255)) if dtype == "uint8" else want)).max() <= (
        1 if dtype == "uint8" else 1e-4
    )
    noise = np.array([I.random_lighting(array(np.zeros((1, 1, 3), "f")), 0.5).asnumpy().ravel() for _ in range(800)])
    np.testing.assert_allclose(np.cov(noise.T), colours.COMPONENTS @ colours.COMPONENTS.T / 4, rtol=0.25)
    assert abs(noise.mean(0)).max() < 3


def test_factors_are_drawn_evenly():
    mx.random.seed(5)
    pixel = array(np.full((1, 1, 3), 100, "float32"))
    drawn = np.array([I.random_brightness(pixel, 0.5, 1.5).asnumpy()[0, 0, 0] / 100 for _ in range(1000)])
    assert (
        0.5 <= drawn.min() < 0.52
        and 1.48 < drawn.max() <= 1.5
        and abs(drawn.mean() - 1) < 0.04
        and abs(drawn.var() - 1 / 12) < 0.01
    )
    drawn = np.array([I.random_color_jitter(pixel, 0.2, 0, 0, 0).asnumpy()[0, 0, 0] / 100 for _ in range(1000)])
    assert 0.8 <= drawn.min() < 0.81 and 1.19 < drawn.max() <= 1.2 and abs(drawn.mean() - 1) < 0.02


def test_jitter():
    mx.random.seed(0)
    x = array(LARGE)
    seen = {I.random_color_jitter(x, 0.5, 0.5, 0.5, 0.5).asnumpy().tobytes() for _ in range(20)}
    assert len(seen) == 20
    assert (I.random_color_jitter(x, 0, 0, 0, 0).asnumpy() == LARGE).all()


@pytest.mark.parametrize(
    "name, args",
    [
        ("random_brightness", (0.5, 1.5)),
        ("random_hue", (0.5, 1.5)),
        ("random_color_jitter", (0.3,) * 4),
        ("random_lighting", (0.3,)),
        ("random_flip_left_right", ()),
    ],
)
def test_the_seed_decides(name, args):
    def draw():
        mx.random.seed(11)
        return [getattr(I, name)(array(IMAGE), *args).asnumpy() for _ in range(12)]

    first, again = draw(), draw()
    assert all((a == b).all() for a, b in zip(first, again))
    assert any((a != first[0]).any() for a in first)


@pytest.mark.parametrize(
    "name, args",
    [
        ("random_saturation", (1.5, 1.5)),
        ("random_hue", (1.3, 1.3)),
        ("random_lighting", (0.5,)),
        ("adjust_lighting", ((1, 2, 3),)),
        ("random_color_jitter", (0, 0, 0.5, 0.5)),
    ],
)
def test_grey_images_stay_as_they_are(name, args):
    x = array(LARGE[..., :1])
    assert (getattr(I, name)(x, *args).asnumpy() == LARGE[..., :1]).all()
    assert (I.random_contrast(x, 1, 1).asnumpy() == LARGE[..., :1]).all()


def test_in_graphs():
    x = mx.sym.var("x")
    s = mx.sym.image.normalize(
        mx.sym.image.to_tensor(mx.sym.image.resize(mx.sym.image.random_flip_left_right(x), (4, 3))), 0.5, 0.5
    )
    assert s.infer_shape(x=(5, 6, 3))[1] == [(3, 3, 4)]
    y = s.bind(mx.cpu(), {"x": array(IMAGE, "float32")}).forward()[0]
    both = [((cv2.resize(i.astype("f"), (4, 3)) / 255 - 0.5) / 0.5).transpose(2, 0, 1) for i in (IMAGE, IMAGE[:, ::-1])]
    assert min(abs(y.asnumpy() - b).max() for b in both) < 1e-5


X, T = mx.nd.ones((5, 6, 3)), mx.nd.ones((3, 5, 6))


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: I.to_tensor(mx.nd.ones((5, 6))),
            r"to_tensor.*data must be \(height, width, channels\) or \(N, height, width, channels\), got \(5, 6\)",
        ),
        (lambda: I.normalize(mx.nd.ones((2, 5, 6))), r"\(2, 5, 6\) must have 1 or 3 channels"),
        (lambda: I.normalize(T, (1, 2)), r"mean must be one number or 3, one a channel, got \(1.0, 2.0\)"),
        (lambda: I.normalize(T, 0, (1, 2)), r"std must be one number or 3"),
        (lambda: I.normalize(T, "x"), "'mean' must be a tuple of floats"),
        (lambda: I.resize(X), r"size must be one positive number or \(width, height\), got \(\)"),
        (lambda: I.resize(X, (1, 2, 3)), r"got \(1, 2, 3\)"),
        (lambda: I.resize(X, -1), r"got \(-1,\)"),
        (lambda: I.resize(X, 3, interp=7), "'interp' must be int between 0 and 4, got 7"),
        (lambda: I.resize(mx.nd.ones((5, 6)), 3), "data must be"),
        (lambda: I.resize(X.astype("int32"), 3), "got int32; cast it"),
        (lambda: I.crop(X, 4, 0, 3, 2), r"a window of 3x2 at \(4, 0\) is not inside an image of 6x5"),
        (lambda: I.crop(X, -1, 0, 3, 2), r"at \(-1, 0\)"),
        (lambda: I.crop(X, 0, 0, 0, 2), "a window of 0x2"),
        (lambda: I.crop(X, 0, 0, 2), "needs parameter 'height'"),
        (lambda: I.flip_left_right(mx.nd.ones((5,))), "data must be"),
        (
            lambda: I.random_flip_left_right(mx.nd.ones((2, 5, 6, 3))),
            r"one image \(height, width, channels\), got \(2, 5, 6, 3\)",
        ),
        (lambda: I.random_brightness(mx.nd.ones((5, 6, 4)), 1, 1), r"\(5, 6, 4\) must have 1 or 3 channels"),
        (lambda: I.random_hue(mx.nd.ones((5, 6)), 1, 1), "one image"),
        (lambda: I.random_contrast(X, -1, 1), "'min_factor' must be float >= 0, got -1"),
        (lambda: I.random_saturation(X), "needs parameter 'min_factor'"),
        (lambda: I.adjust_lighting(X, (1, 2)), r"alpha must be three numbers.*got \(1.0, 2.0\)"),
        *[
            (lambda args=args: I.random_color_jitter(X, *args), "'(brightness|hue)' must be float >= 0, got (-1.0|nan)")
            for args in ((-1, 0, 0, 0), (0, 0, 0, -1), (float("nan"), 0, 0, 0))
        ],
        (lambda: I.random_color_jitter(X, 0.1), "needs parameter 'contrast'"),
        (lambda: I.to_tensor(X, X), "to_tensor"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(mx.MXNetError, match=words):
        call()


def test_jitter_takes_the_changes_in_random_order(monkeypatch):
    from mxcore.ops.image import augmentation as module

    seen = []
    names = [n for n, _, _ in module._JITTERS]
    monkeypatch.setattr(
        module, "_JITTERS", [(n, lambda xp, x, f, n=n: seen.append(n) or x + 0, a) for n, _, a in module._JITTERS]
    )
    for _ in range(60):
        I.random_color_jitter(X, 0.1, 0.1, 0.1, 0.1)
    orders = {tuple(seen[i : i + 4]) for i in range(0, len(seen), 4)}
    assert len(orders) > 12 and all(sorted(o) == sorted(names) for o in orders)
