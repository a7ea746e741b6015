"""Adaptive pooling and bilinear resizing: every mode's lengths, what lies where, gradients of any order, refusals."""

import json

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.gradcheck import check_grads

from .golden.corners import wave

RESIZE, POOL = "_contrib_BilinearResize2D", "_contrib_AdaptiveAvgPooling2D"


@pytest.mark.parametrize("size", [(2, 3), (5, 1), (7, 9), (1, 1), (6, 5)])
def test_averages_of_parts(size):
    x = wave((2, 2, 6, 5), 1)
    y = mx.nd.contrib.AdaptiveAvgPooling2D(mx.nd.array(x), output_size=size).asnumpy()
    for i in range(size[0]):
        for j in range(size[1]):
            part = x[:, :, i * 6 // size[0] : -(-(i + 1) * 6 // size[0]), j * 5 // size[1] : -(-(j + 1) * 5 // size[1])]
            np.testing.assert_allclose(y[:, :, i, j], part.mean((2, 3)), rtol=1e-4, atol=1e-6)
    check_grads(lambda a: mx.nd.contrib.AdaptiveAvgPooling2D(a, output_size=size), [x], order=2)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"height": 3, "width": 5}, [[0, 0.25, 0.5, 0.75, 1], [1, 1.25, 1.5, 1.75, 2], [2, 2.25, 2.5, 2.75, 3]]),
        ({"height": 1, "width": 4, "align_corners": False}, [[1, 1.25, 1.75, 2]]),
        ({"height": 1, "width": 1}, [[0]]),
        ({"height": 1, "width": 1, "align_corners": False}, [[1.5]]),
    ],
)
def test_places(params, expected):
    x = mx.nd.array([[[[0, 1], [2, 3]]]])
    np.testing.assert_allclose(mx.nd.contrib.BilinearResize2D(x, **params).asnumpy()[0, 0], expected, rtol=1e-6)


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("size", [(5, 7), (2, 9), (4, 3), (1, 1)])
def test_gradients(size, align):
    check_grads(
        lambda a: mx.nd.contrib.BilinearResize2D(a, height=size[0], width=size[1], align_corners=align),
        [wave((2, 1, 4, 3), 1)],
        order=2,
    )


@pytest.mark.parametrize(
    ("mode", "scale", "lengths"),
    [
        ("size", 1.5, {3: 4, 4: 6, 5: 7, 10: 15}),
        ("size", 0.7, {3: 2, 7: 4, 10: 7}),
        ("odd_scale", 1.5, {3: 4, 4: 6, 5: 7}),
        ("odd_scale", 0.5, {3: 2, 4: 2, 5: 3, 6: 3}),
        ("odd_scale", 0.7, {7: 5, 9: 6, 10: 7}),
        ("odd_scale", 2.5, {3: 6, 9: 21}),
        ("to_even_down", None, {2: 2, 3: 2, 9: 8}),
        ("to_even_up", None, {1: 2, 2: 2, 9: 10}),
        ("to_odd_down", None, {1: 1, 2: 1, 9: 9}),
        ("to_odd_up", None, {1: 1, 2: 3, 9: 9}),
    ],
)
def test_lengths(shapes, mode, scale, lengths):
    how = {"mode": mode, **({} if scale is None else {"scale_height": scale, "scale_width": scale})}
    for n, m in lengths.items():
        assert shapes(RESIZE, [(2, 3, n, n)], **how) == ([(2, 3, n, n)], [(2, 3, m, m)])
        assert mx.nd.contrib.BilinearResize2D(mx.nd.ones((1, 1, n, n)), **how).shape == (1, 1, m, m)


def test_like(shapes):
    x, like = mx.nd.array(wave((1, 1, 3, 3), 1)), mx.nd.ones((2, 4, 2, 5))
    x.attach_grad()
    like.attach_grad()
    with mx.autograd.record():
        y = mx.nd.contrib.BilinearResize2D(x, like, mode="like")
    y.backward()
    same = mx.nd.contrib.BilinearResize2D(x, height=2, width=5)
    np.testing.assert_array_equal(y.asnumpy(), same.asnumpy())
    np.testing.assert_allclose(x.grad.asnumpy()[0, 0], [[1.5, 2, 1.5], [0, 0, 0], [1.5, 2, 1.5]], rtol=1e-6)
    assert not like.grad.asnumpy().any()
    assert shapes(RESIZE, [(2, 3, 8, 9), None], [(-1, -1, 4, 5)], mode="like") == (
        [(2, 3, 8, 9), (-1, -1, 4, 5)],
        [(2, 3, 4, 5)],
    )
    s = mx.sym.contrib.BilinearResize2D(mx.sym.var("x"), mx.sym.var("z"), mode="like", name="b")
    assert s.list_arguments() == ["x", "z"]


def test_dtypes(dtypes):
    assert dtypes(RESIZE, ["float64", None], mode="like") == (["float64"] * 2, ["float64"])
    assert dtypes(RESIZE, ["float16", "float32"], mode="like") == (["float16", "float32"], ["float16"])
    for name in (RESIZE, POOL):
        with pytest.raises(TypeError, match=f"operator {name}: uint8 numbers are whole"):
            dtypes(name, ["uint8"])


def test_shapes(shapes):
    assert shapes(RESIZE, [None], height=4, width=7) == ([(-1, -1, -1, -1)], [(-1, -1, 4, 7)])
    assert shapes(RESIZE, [(-1, 3, 8, 9)], [(2, -1, -1, -1)], height=4, width=7) == ([(2, 3, 8, 9)], [(2, 3, 4, 7)])
    assert shapes(RESIZE, [(2, 3, -1, 9)], mode="to_even_up")[1] == [(2, 3, -1, 10)]
    assert shapes(POOL, [(-1, 3, 8, 9)], [(2, -1, -1, -1)], output_size=3) == ([(2, 3, 8, 9)], [(2, 3, 3, 3)])
    assert shapes(POOL, [(0, 3, 8, 9)])[1] == [(0, 3, 1, 1)]


@pytest.mark.parametrize(
    ("name", "ins", "params", "says"),
    [
        (RESIZE, [(2, 3, 8)], {}, "different ranks"),
        (RESIZE, [(2, 3, 8, 9)], {"height": 0}, "'height' must be int >= 1, got 0"),
        (
            RESIZE,
            [(2, 3, 8, 9)],
            {"scale_height": 0.5},
            "mode size needs both scale_height and scale_width, or neither",
        ),
        (RESIZE, [(2, 3, 8, 9)], {"mode": "odd_scale"}, "mode odd_scale needs both scale_height and scale_width"),
        (
            RESIZE,
            [(2, 3, 8, 9)],
            {"scale_height": 0.1, "scale_width": 0.1},
            r"leaves nothing of \(8, 9\): the result would be \(0, 0\)",
        ),
        (RESIZE, [(1, 1, 1, 3)], {"mode": "to_even_down"}, "leaves nothing of"),
        (RESIZE, [(1, 1, 0, 3)], {}, "has no places to interpolate between"),
        (RESIZE, [(2, 3, 8, 9)], {"mode": "larger"}, "'mode' must be one of like, odd_scale, size"),
        (
            POOL,
            [(2, 3, 8, 9)],
            {"output_size": (1, 2, 3)},
            r"output_size must be one or two numbers of at least 1, got \(1, 2, 3\)",
        ),
        (POOL, [(2, 3, 8, 9)], {"output_size": 0}, "output_size must be one or two numbers"),
        (POOL, [(2, 3, 8)], {}, "different ranks"),
        (POOL, [(2, 3, 0, 8)], {}, "has no places to average over"),
    ],
)
def test_refusals(shapes, name, ins, params, says):
    with pytest.raises(mx.MXNetError, match=f"operator {name}.*{says}"):
        shapes(name, ins, **params)


def test_files_are_mxnets():
    s = mx.sym.contrib.AdaptiveAvgPooling2D(mx.sym.var("x"), output_size=(3,), name="a")
    node = json.loads(s.tojson())["nodes"][1]
    assert (node["op"], node["attrs"], s.list_outputs()) == (POOL, {"output_size": "(3,)"}, ["a_output"])
