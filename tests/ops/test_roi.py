"""ROIPooling: bins, rounding, what lies outside, ties, shapes, refusals."""

import numpy as np
import pytest

import mxcore as mx

from .golden.corners import wave


def pool(data, rois, size=(2, 2), scale=1.0, grad=False):
    """Outputs, and gradients of the images for a head gradient of ones."""
    x, r = mx.nd.array(data), mx.nd.array(np.reshape(rois, (-1, 5)))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.ROIPooling(x, r, pooled_size=size, spatial_scale=scale)
    y.backward()
    return (y.asnumpy(), x.grad.asnumpy()) if grad else y.asnumpy()


IMAGE = np.arange(36).reshape(1, 1, 6, 6)


@pytest.mark.parametrize(
    ("roi", "expected"),
    [
        ((0, 0, 0, 3, 3), [7, 9, 19, 21]),
        ((0, 4, 4, 2, 2), [28] * 4),
        ((0, 7, 7, 9, 9), [0] * 4),
        ((0, 0.5, 1.5, 2.5, 3.5), [20, 21, 26, 27]),
        ((0, -3, -3, 1, 1), [0, 0, 0, 7]),
        ((-1, 0, 0, 3, 3), [0] * 4),
        ((1, 0, 0, 3, 3), [0] * 4),
    ],
)
def test_regions(roi, expected):
    y, dx = pool(IMAGE, roi, grad=True)
    assert y.ravel().tolist() == expected
    assert dx.sum() == sum(v > 0 for v in expected)


def test_against_loops():
    """Bins as the paper defines them, element by element."""
    x, scale, (ph, pw) = wave((2, 3, 9, 7), 1), 0.5, (3, 2)
    rs = np.random.RandomState(3)
    rois = np.concatenate([rs.randint(0, 2, (8, 1)), rs.uniform(-2, 18, (8, 4))], 1).astype(np.float32)
    y, dx = pool(x, rois, (ph, pw), scale, grad=True)
    expected, d_expected = np.zeros_like(y), np.zeros_like(x)
    for r, (image, *corners) in enumerate(rois):
        x0, y0, x1, y1 = (int(np.floor(abs(v) * scale + 0.5) * np.sign(v)) for v in corners)
        h, w = max(y1 - y0 + 1, 1), max(x1 - x0 + 1, 1)
        for i in range(ph):
            for j in range(pw):
                rows = [a for a in range(i * h // ph + y0, -(-(i + 1) * h // ph) + y0) if 0 <= a < 9]
                columns = [b for b in range(j * w // pw + x0, -(-(j + 1) * w // pw) + x0) if 0 <= b < 7]
                for c in range(3) if rows and columns else ():
                    seen = x[int(image), c][np.ix_(rows, columns)]
                    expected[r, c, i, j] = seen.max()
                    a, b = np.unravel_index(seen.argmax(), seen.shape)
                    d_expected[int(image), c, rows[a], columns[b]] += 1
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(dx, d_expected)


def test_the_first_of_equals():
    _, dx = pool(np.ones((1, 1, 4, 4)), (0, 0, 0, 3, 3), grad=True)
    assert dx[0, 0].tolist() == [[1, 0, 1, 0], [0] * 4, [1, 0, 1, 0], [0] * 4]
    image = np.array([[[[1, 2, 5], [5, 1, 1], [1, 5, 1]]]])  # a later column, but an earlier row
    assert pool(image, (0, 0, 0, 2, 2), (1, 1), grad=True)[1][0, 0].tolist() == [[0, 0, 1], [0] * 3, [0] * 3]


def test_no_regions():
    y, dx = pool(IMAGE, np.zeros((0, 5)), grad=True)
    assert y.shape == (0, 1, 2, 2) and not dx.any()


def test_shapes_and_dtypes(shapes, dtypes):
    kw = {"pooled_size": (2, 3), "spatial_scale": 0.5}
    out = (4, 3, 2, 3)
    assert shapes("ROIPooling", [(2, 3, 5, 6), (4, 5)], **kw) == ([(2, 3, 5, 6), (4, 5)], [out, out])
    assert shapes("ROIPooling", [(2, 3, 5, 6), None], [out, None], **kw)[0] == [(2, 3, 5, 6), (4, 5)]
    assert shapes("ROIPooling", [None, (4, 5)], **kw)[1][0] == (4, -1, 2, 3)
    assert dtypes("ROIPooling", ["float64", None], **kw) == (["float64", "float64"], ["float64", "int64"])
    s = mx.sym.ROIPooling(mx.sym.var("x"), name="r", **kw)
    assert (s.list_arguments(), s.list_outputs()) == (["x", "r_rois"], ["r_output"])


@pytest.mark.parametrize(
    ("ins", "params", "says"),
    [
        ([(2, 3, 5, 6), (4, 4)], {}, "differ in dimension 1"),
        ([(2, 3, 5), (4, 5)], {}, "different ranks"),
        (
            [(2, 3, 5, 6), (4, 5)],
            {"pooled_size": (2,)},
            r"pooled_size must be a height and a width of at least 1, got \(2,\)",
        ),
        ([(2, 3, 5, 6), (4, 5)], {"pooled_size": (0, 2)}, "pooled_size must be a height and a width"),
        ([(2, 3, 5, 6), (4, 5)], {"spatial_scale": 1.5}, "'spatial_scale' must be float between 0 and 1, got 1.5"),
        ([(2, 3, 5, 6), (4, 5)], {"spatial_scale": -1}, "'spatial_scale' must be float between 0 and 1"),
        ([(2, 3, 5, 6), (4, 5)], {"pooled_size": "wide"}, "'pooled_size' must be a tuple of ints"),
    ],
)
def test_refusals(shapes, ins, params, says):
    with pytest.raises(mx.MXNetError, match=f"operator ROIPooling.*{says}"):
        shapes("ROIPooling", ins, **{"pooled_size": (2, 2), "spatial_scale": 1.0, **params})


def test_whole_numbers_are_refused(dtypes):
    with pytest.raises(TypeError, match="operator ROIPooling: int32 numbers are whole"):
        dtypes("ROIPooling", ["int32", None], pooled_size=(2, 2), spatial_scale=1.0)


@pytest.mark.both_ways
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_regions_that_are_not_finite_are_zero(dtype):
    x = mx.nd.array(np.arange(1, 17).reshape(1, 1, 4, 4), dtype=dtype)
    whole = [0, 0, 0, 3, 3]
    for place in range(5):
        for bad in (np.inf, -np.inf, np.nan, *((1e30, 2.0**63) if place == 0 else ())):
            roi = [*whole]
            roi[place] = bad
            y = mx.nd.ROIPooling(x, mx.nd.array([roi], dtype=dtype), pooled_size=(2, 2), spatial_scale=1.0)
            assert y.asnumpy().ravel().tolist() == [0] * 4, (place, bad)
    y = mx.nd.ROIPooling(x, mx.nd.array([whole], dtype=dtype), pooled_size=(2, 2), spatial_scale=1.0)
    assert y.asnumpy().ravel().tolist() == [6, 8, 14, 16]
