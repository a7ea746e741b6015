"""Convolution and its transpose: against the definition, as adjoints, in pieces, layouts, shapes and refusals."""

from itertools import product

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.frontend import eager
from mxcore.ops.convolution import windows
from mxcore.testing.gradcheck import check_grads

from .golden.corners import wave

GEOMETRIES = [
    ((2, 4, 7), (6, 2, 3), dict(kernel=(3,), stride=(2,), pad=(1,), num_group=2)),
    ((2, 3, 6, 5), (4, 3, 3, 2), dict(kernel=(3, 2), dilate=(2, 1), pad=(1, 2))),
    ((1, 2, 4, 5, 4), (3, 2, 2, 3, 1), dict(kernel=(2, 3, 1), stride=(1, 2, 3))),
    ((2, 3, 4, 4), (3, 1, 1, 1), dict(kernel=(1, 1), num_group=3)),
]


def convolve(x, w, kernel, stride=(), dilate=(), pad=(), num_group=1):
    """The definition, one output at a time."""
    n = len(kernel)
    stride, dilate, pad = stride or (1,) * n, dilate or (1,) * n, pad or (0,) * n
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((q, q) for q in pad)])
    out = [(m - d * (k - 1) - 1) // s + 1 for m, k, s, d in zip(x.shape[2:], kernel, stride, dilate)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    each_in, each_out = w.shape[1], w.shape[0] // num_group
    for f in range(w.shape[0]):
        c = f // each_out * each_in
        for at in product(*map(range, out)):
            see = tuple(slice(i * s, i * s + d * (k - 1) + 1, d) for i, s, d, k in zip(at, stride, dilate, kernel))
            y[(slice(None), f, *at)] = (x[(slice(None), slice(c, c + each_in), *see)] * w[f]).sum(
                tuple(range(1, x.ndim))
            )
    return y


@pytest.mark.parametrize(("shape", "weight", "params"), GEOMETRIES)
def test_definition(shape, weight, params):
    x, w, b = wave(shape, 1), wave(weight, 2), wave(weight[:1], 3)
    y = mx.nd.Convolution(mx.nd.array(x), mx.nd.array(w), mx.nd.array(b), num_filter=weight[0], **params).asnumpy()
    expected = convolve(x, w, **params) + b.reshape(-1, *(1,) * (len(shape) - 2))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("shape", "weight", "params"), GEOMETRIES)
def test_adjoints(shape, weight, params):
    """<conv(x, w), y> is what the gradients say when x or w is exchanged."""
    x, w = mx.nd.array(wave(shape, 1)), mx.nd.array(wave(weight, 2))
    kw = dict(params, num_filter=weight[0], no_bias=True)
    y = mx.nd.array(wave(mx.nd.Convolution(x, w, **kw).shape, 3))
    dx, dw = eager._backward_Convolution(y, x, w, **kw)
    other_x, other_w = mx.nd.array(wave(shape, 4)), mx.nd.array(wave(weight, 5))
    for a, b in (
        ((dx * other_x), mx.nd.Convolution(other_x, w, **kw) * y),
        ((dw * other_w), mx.nd.Convolution(x, other_w, **kw) * y),
    ):
        assert a.sum().asscalar() == pytest.approx(b.sum().asscalar(), rel=1e-4, abs=1e-4)


def test_deconvolution_is_the_gradient_of_convolution():
    w = mx.nd.array(wave((4, 3, 3, 2), 2))
    kw = dict(kernel=(3, 2), stride=(2, 1), pad=(1, 0), no_bias=True)
    x = mx.nd.array(wave((2, 4, 3, 5), 1))
    y = mx.nd.Deconvolution(x, w, num_filter=3, **kw)
    like = mx.nd.zeros(y.shape)
    assert y.shape == (2, 3, 5, 6)
    same = eager._backward_Convolution(x, like, w, num_filter=4, wanted=(True, False), **kw)[0]
    np.testing.assert_allclose(y.asnumpy(), same.asnumpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["Convolution", "Deconvolution"])
def test_channels_last(name):
    weight = (4, 3, 3, 2) if name == "Convolution" else (3, 4, 3, 2)
    x, w, b = wave((2, 3, 6, 5), 1), wave(weight, 2), wave((4,), 3)
    kw = dict(kernel=(3, 2), stride=(2, 1), num_filter=4, no_bias=False)

    def run(layout, *arrays):
        arrays = [mx.nd.array(a) for a in arrays]
        for a in arrays:
            a.attach_grad()
        with mx.autograd.record():
            y = getattr(mx.nd, name)(*arrays, layout=layout, **kw)
            z = (y * y).sum()
        z.backward()
        return [y.asnumpy(), *(a.grad.asnumpy() for a in arrays)]

    first = run("NCHW", x, w, b)
    last = run("NHWC", x.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1), b)
    for i, (a, c) in enumerate(zip(first, last)):
        np.testing.assert_allclose(a, c if i == 3 else c.transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-5)


def test_pieces_of_the_batch(monkeypatch):
    x, w = wave((5, 2, 6, 6), 1), wave((3, 2, 3, 3), 2)
    g = windows.geometry((3, 3), (), (), (1, 1))
    dy = wave((5, 3, 6, 6), 3)
    whole = (
        windows.conv_forward(np, x, w, g),
        windows.conv_data(np, dy, w, g, (6, 6)),
        windows.conv_weight(np, x, dy, g),
    )
    monkeypatch.setattr(windows, "PIECE", 2 * 2 * 9 * 36)
    parts = (
        windows.conv_forward(np, x, w, g),
        windows.conv_data(np, dy, w, g, (6, 6)),
        windows.conv_weight(np, x, dy, g),
    )
    for a, b in zip(whole, parts):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_second_order():
    kw = dict(kernel=(3,), num_filter=2, pad=(1,))
    check_grads(
        lambda x, w, b: mx.nd.tanh(mx.nd.Convolution(x, w, b, **kw)),
        [wave((2, 3, 5), 1), wave((2, 3, 3), 2), wave((2,), 3)],
        order=2,
    )
    check_grads(
        lambda x, w: mx.nd.tanh(mx.nd.Deconvolution(x, w, stride=(2,), **kw)),
        [wave((2, 3, 3), 1), wave((3, 2, 3), 2)],
        order=2,
    )


def test_empty_batch():
    x, w = mx.nd.empty((0, 2, 5, 5)), mx.nd.ones((3, 2, 3, 3))
    w.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Convolution(x, w, kernel=(3, 3), num_filter=3, no_bias=True)
    y.backward()
    assert y.shape == (0, 3, 3, 3) and not w.grad.asnumpy().any()


def test_shapes_forward(shapes):
    kw = dict(kernel=(3, 3), num_filter=8)
    assert shapes("Convolution", [(2, 4, 9, -1), None, None], stride=(2, 1), num_group=2, **kw) == (
        [(2, 4, 9, -1), (8, 2, 3, 3), (8,)],
        [(2, 8, 4, -1)],
    )
    assert shapes("Convolution", [(2, 9, 8, 4), None, None], layout="NHWC", **kw) == (
        [(2, 9, 8, 4), (8, 3, 3, 4), (8,)],
        [(2, 7, 6, 8)],
    )
    assert shapes("Deconvolution", [(2, 4, 3, 3), None], stride=(2, 2), adj=(1, 0), num_group=2, **kw) == (
        [(2, 4, 3, 3), (4, 4, 3, 3)],
        [(2, 8, 8, 7)],
    )
    assert shapes("Deconvolution", [(2, 4, 3, 3), None], stride=(2, 2), target_shape=(6, 5), **kw)[1] == [(2, 8, 6, 5)]


def test_shapes_from_the_output(shapes):
    found = shapes(
        "Convolution",
        [(-1, 4, -1, -1), None, None],
        [(2, 8, 5, 5)],
        kernel=(3, 3),
        pad=(1, 0),
        stride=(1, 2),
        num_filter=8,
    )
    assert found[0][0] == (2, 4, 5, -1)


@pytest.mark.parametrize(
    ("name", "data", "params", "say"),
    [
        (
            "Convolution",
            (2, 3, 7, 7),
            dict(kernel=(9, 9)),
            "covers 9 in spatial dimension 0, the padded data has only 7",
        ),
        ("Convolution", (2, 3, 7, 7), dict(kernel=(3,)), r"data has 4 dimensions; kernel \(3,\) needs 3"),
        (
            "Convolution",
            (2, 3, 7),
            dict(kernel=(3,), stride=(1, 1)),
            r"stride \(1, 1\) must be 1 numbers of at least 1",
        ),
        ("Convolution", (2, 3, 7), dict(kernel=(3,), stride=(0,)), r"stride \(0,\)"),
        (
            "Convolution",
            (2, 3, 7),
            dict(kernel=(3,), num_group=2),
            "number of channels 3 is no multiple of num_group=2",
        ),
        ("Convolution", (2, 4, 7), dict(kernel=(3,), num_group=4), "num_filter 6 is no multiple of num_group=4"),
        ("Convolution", (2, 3, 7), dict(kernel=(3,), layout="NHWC"), "layout NHWC does not fit kernel"),
        ("Convolution", (2, 3, 7, 7, 7, 7), dict(kernel=(3, 3, 3, 3)), "must have 1, 2 or 3 dimensions"),
        (
            "Deconvolution",
            (1, 2, 3),
            dict(kernel=(3,), stride=(2,), adj=(2,)),
            r"adj \(2,\) must be 1 numbers, each below stride",
        ),
        (
            "Deconvolution",
            (1, 2, 3),
            dict(kernel=(3,), target_shape=(9,)),
            r"target_shape \(9,\) is larger than \(5,\)",
        ),
        ("Deconvolution", (1, 2, 3), dict(kernel=(3,), target_shape=(4,)), r"target_shape \(4,\) leaves an odd rest"),
        ("Deconvolution", (1, 2, 3), dict(kernel=(3,), pad=(4,)), "leaves nothing"),
    ],
)
def test_refusals(shapes, name, data, params, say):
    with pytest.raises(ValueError, match=f"operator {name}: .*{say}"):
        shapes(name, [data, None, None] if name == "Convolution" else [data, None], num_filter=6, **params)
