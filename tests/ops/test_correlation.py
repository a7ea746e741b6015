"""Correlation: against loops over the definition, what equal elements do, shapes, refusals."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.gradcheck import check_grads

from .golden.corners import wave


def by_loops(a, b, kernel_size=1, max_displacement=1, stride1=1, stride2=1, pad_size=0, is_multiply=True):
    """The layer as its paper defines it."""
    pad = ((0, 0), (0, 0), (pad_size,) * 2, (pad_size,) * 2)
    a, b = np.pad(a, pad), np.pad(b, pad)
    n, c, h, w = a.shape
    radius = max_displacement // stride2
    moves = [(i * stride2, j * stride2) for i in range(-radius, radius + 1) for j in range(-radius, radius + 1)]
    border = max_displacement + kernel_size // 2
    rows, columns = (range(max_displacement, m - border - kernel_size // 2, stride1) for m in (h, w))
    out = np.zeros((n, len(moves), len(rows), len(columns)))
    for m, (dy, dx) in enumerate(moves):
        for i, y in enumerate(rows):
            for j, x in enumerate(columns):
                p = a[:, :, y : y + kernel_size, x : x + kernel_size]
                q = b[:, :, y + dy : y + dy + kernel_size, x + dx : x + dx + kernel_size]
                out[:, m, i, j] = (p * q if is_multiply else abs(p - q)).mean((1, 2, 3))
    return out


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"kernel_size": 3, "pad_size": 2},
        {"max_displacement": 4, "stride2": 3, "pad_size": 3, "stride1": 2},
        {"max_displacement": 0},
        {"kernel_size": 3, "max_displacement": 2, "stride1": 3, "pad_size": 1, "is_multiply": False},
        {"stride2": 3},
    ],
)
def test_the_definition(params):
    a, b = wave((2, 3, 7, 8), 1), wave((2, 3, 7, 8), 2)
    y = mx.nd.Correlation(mx.nd.array(a), mx.nd.array(b), **params)
    np.testing.assert_allclose(y.asnumpy(), by_loops(a, b, **params), rtol=1e-4, atol=1e-6)
    check_grads(lambda a, b: mx.nd.Correlation(a, b, **params), [a, b])


def test_equal_elements():
    a, b = mx.nd.array([[[[1, 2]]]]), mx.nd.array([[[[1, 3]]]])
    for x in (a, b):
        x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Correlation(a, b, max_displacement=0, is_multiply=False)
    y.backward(mx.nd.array([[[[1, 2]]]]))
    assert (y.asnumpy().tolist(), a.grad.asnumpy().tolist(), b.grad.asnumpy().tolist()) == (
        [[[[0, 1]]]],
        [[[[1, -2]]]],
        [[[[-1, 2]]]],
    )


def test_shapes(shapes):
    kw = {"kernel_size": 3, "max_displacement": 2, "stride1": 2, "pad_size": 3}
    data, out = (2, 3, 8, 9), (2, 25, 4, 5)
    assert shapes("Correlation", [data, None], **kw) == ([data, data], [out])
    assert shapes("Correlation", [None, (-1, 3, 8, -1)], [out], **kw) == ([(2, 3, 8, -1)] * 2, [out])
    assert shapes("Correlation", [(0, 2, 4, 4)] * 2)[1] == [(0, 9, 2, 2)]
    s = mx.sym.Correlation(mx.sym.var("x"), name="c")
    assert (s.list_arguments(), s.list_outputs()) == (["x", "c_data2"], ["c_output"])


@pytest.mark.parametrize(
    ("ins", "params", "says"),
    [
        ([(2, 3, 8, 9), (2, 3, 8, 7)], {}, "differ in dimension 3"),
        ([(3, 8, 9)] * 2, {}, "different ranks"),
        ([(1, 2, 6, 7)] * 2, {"kernel_size": 2}, "kernel_size must be odd, got 2"),
        (
            [(1, 2, 6, 7)] * 2,
            {"max_displacement": 4},
            "kernel_size 1 and max_displacement 4 need 9 places, the padded data has only 6",
        ),
        ([(1, 2, 6, 7)] * 2, {"stride1": 0}, "'stride1' must be int >= 1, got 0"),
        ([(1, 2, 6, 7)] * 2, {"pad_size": -1}, "'pad_size' must be int >= 0"),
        ([(1, 2, 6, 7)] * 2, {"is_multiply": "maybe"}, "'is_multiply' must be True or False"),
    ],
)
def test_refusals(shapes, ins, params, says):
    with pytest.raises(mx.MXNetError, match=f"operator Correlation.*{says}"):
        shapes("Correlation", ins, **params)


def test_whole_numbers_are_refused(dtypes):
    with pytest.raises(TypeError, match="operator Correlation: int32 numbers are whole"):
        dtypes("Correlation", ["int32", None])
