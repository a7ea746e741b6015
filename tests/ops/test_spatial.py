"""Grids, bilinear sampling, the spatial transformer: places, edges, shapes in both directions, files, refusals."""

import json

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.gradcheck import check_grads

from .golden.corners import wave

AFFINE = {"transform_type": "affine", "sampler_type": "bilinear"}


def test_the_identity_names_every_place():
    theta = mx.nd.array([[1, 0, 0, 0, 1, 0]])
    grid = mx.nd.GridGenerator(theta, transform_type="affine", target_shape=(3, 5))
    assert grid.asnumpy()[0, 0].tolist() == [[-1, -0.5, 0, 0.5, 1]] * 3
    assert grid.asnumpy()[0, 1].T.tolist() == [[-1, 0, 1]] * 5
    x = mx.nd.array(wave((1, 2, 3, 5), 1))
    np.testing.assert_allclose(mx.nd.BilinearSampler(x, grid).asnumpy(), x.asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(
        mx.nd.SpatialTransformer(x, theta, target_shape=(3, 5), **AFFINE).asnumpy(), x.asnumpy(), rtol=1e-6
    )


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (1, 1)])
def test_one_place_along_an_axis_has_no_coordinate(shape):
    """From -1 to 1 in no step, as in MXNet 1.9.1."""
    grid = mx.nd.GridGenerator(
        mx.nd.array([[0.5, 0.25, 0.1, -0.3, 2, 0.2]]), transform_type="affine", target_shape=shape
    )
    assert grid.shape == (1, 2, *shape) and np.isnan(grid.asnumpy()).all()


def test_a_flow_moves_places():
    x, flow = mx.nd.array(np.arange(12).reshape(1, 1, 3, 4)), np.zeros((1, 2, 3, 4), np.float32)
    flow[:, 0] = 1  # one to the right
    y = mx.nd.BilinearSampler(x, mx.nd.GridGenerator(mx.nd.array(flow), transform_type="warp")).asnumpy()
    np.testing.assert_allclose(y[0, 0], [[1, 2, 3, 0], [5, 6, 7, 0], [9, 10, 11, 0]], atol=1e-5)


def test_half_way_and_outside():
    x = mx.nd.array([[[[1, 3], [5, 7]]]])
    places = np.array([[0, -1, -2, -3, np.nan, np.inf], [0, 0, 0, 0, 0, 0]], np.float32).reshape(1, 2, 1, 6)
    y = mx.nd.BilinearSampler(x, mx.nd.array(places)).asnumpy().ravel()
    assert y[:4].tolist() == [4, 3, 1.5, 0] and np.isnan(y[4:]).all()


def test_infinities_outside_do_not_leak():
    x = mx.nd.array([[[[np.inf, 3, 5]]]])
    y = mx.nd.BilinearSampler(x, mx.nd.array(np.array([[1.5, 4.0], [0, 0]]).reshape(1, 2, 1, 2)))
    assert y.asnumpy().ravel().tolist() == [2.5, 0]


def test_gradients_add_up_where_places_coincide():
    x, grid = mx.nd.array(wave((1, 1, 3, 3), 1)), mx.nd.zeros((1, 2, 2, 2))
    for a in (x, grid):
        a.attach_grad()
    with mx.autograd.record():
        y = mx.nd.BilinearSampler(x, grid)
    y.backward()
    expected = np.zeros((3, 3))
    expected[1, 1] = 4
    np.testing.assert_allclose(x.grad.asnumpy()[0, 0], expected, atol=1e-6)
    # At a place, the slope to the right, times half the length.
    slope = x.asnumpy()[0, 0, 1, 2] - x.asnumpy()[0, 0, 1, 1]
    np.testing.assert_allclose(grid.grad.asnumpy()[0, 0], np.full((2, 2), slope), rtol=1e-5)


def test_gradients_of_the_transformer():
    check_grads(
        lambda x, t: mx.nd.SpatialTransformer(x, t, target_shape=(3, 4), **AFFINE),
        [wave((2, 3, 5, 4), 1), wave((2, 6), 2, 0.35)],
    )


def test_only_one_gradient_is_wanted():
    x, theta = mx.nd.array(wave((1, 1, 3, 3), 1)), mx.nd.array([[0.5, 0.1, 0, 0, 0.6, 0]])
    theta.attach_grad()
    with mx.autograd.record():
        y = mx.nd.SpatialTransformer(x, theta, target_shape=(2, 2), **AFFINE)
    y.backward()
    alone = theta.grad.asnumpy()
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.SpatialTransformer(x, theta, target_shape=(2, 2), **AFFINE)
    y.backward()
    np.testing.assert_allclose(theta.grad.asnumpy(), alone, rtol=1e-6)
    assert np.abs(alone).max() > 0.01 and np.abs(x.grad.asnumpy()).max() > 0.01


def test_second_gradients_of_grids():
    theta = mx.nd.array(wave((1, 6), 1))
    theta.attach_grad()
    with mx.autograd.record():
        y = (mx.nd.GridGenerator(theta, transform_type="affine", target_shape=(2, 3)) ** 2).sum()
        [first] = mx.autograd.grad(y, [theta], create_graph=True)
        z = first.sum()
    z.backward()
    places = np.array([[-1, 0, 1] * 2, [-1] * 3 + [1] * 3, [1] * 6])
    np.testing.assert_allclose(
        theta.grad.asnumpy().reshape(2, 3), np.tile(2 * (places @ places.T).sum(1), (2, 1)), rtol=1e-5
    )


def test_shapes(shapes):
    affine = {"transform_type": "affine", "target_shape": (3, 4)}
    assert shapes("GridGenerator", [(-1, 6)], [(5, 2, 3, 4)], **affine) == ([(5, 6)], [(5, 2, 3, 4)])
    assert shapes("GridGenerator", [None], **affine) == ([(-1, 6)], [(-1, 2, 3, 4)])
    assert shapes("GridGenerator", [None], [(2, 2, 5, 6)], transform_type="warp") == ([(2, 2, 5, 6)], [(2, 2, 5, 6)])
    assert shapes("BilinearSampler", [(2, 3, 5, 6), (-1, 2, 3, 4)]) == ([(2, 3, 5, 6), (2, 2, 3, 4)], [(2, 3, 3, 4)])
    assert shapes("BilinearSampler", [None, None], [(2, 3, 7, 8)]) == ([(2, 3, -1, -1), (2, 2, 7, 8)], [(2, 3, 7, 8)])
    assert shapes("SpatialTransformer", [(2, 3, 5, 6), None], target_shape=(4, 5), **AFFINE) == (
        [(2, 3, 5, 6), (2, 6)],
        [(2, 3, 4, 5)],
    )
    assert shapes("SpatialTransformer", [None, (2, 6)], target_shape=(4, 5), **AFFINE)[1] == [(2, -1, 4, 5)]


@pytest.mark.parametrize(
    ("name", "ins", "params", "says"),
    [
        (
            "GridGenerator",
            [(2, 5)],
            {"transform_type": "affine", "target_shape": (3, 4)},
            r"data is \(2, 5\) where|differ in dimension 1",
        ),
        (
            "GridGenerator",
            [(2, 6)],
            {"transform_type": "affine"},
            r"target_shape must be a height and a width of at least 1, got \(0, 0\)",
        ),
        (
            "GridGenerator",
            [(2, 6)],
            {"transform_type": "affine", "target_shape": (3,)},
            "target_shape must be a height and a width",
        ),
        ("GridGenerator", [(2, 3, 4, 4)], {"transform_type": "warp"}, "differ in dimension 1"),
        (
            "GridGenerator",
            [(2, 6)],
            {"transform_type": "bend"},
            "'transform_type' must be one of affine, warp; got 'bend'",
        ),
        ("GridGenerator", [(2, 6)], {}, "needs parameter 'transform_type'"),
        ("BilinearSampler", [(2, 3, 5, 6), (1, 2, 3, 4)], {}, "differ in dimension 0"),
        ("BilinearSampler", [(2, 3, 5, 6), (2, 3, 3, 4)], {}, "differ in dimension 1"),
        ("BilinearSampler", [(2, 3, 5), (2, 2, 3, 4)], {}, "different ranks"),
        ("SpatialTransformer", [(2, 3, 5, 6), (2, 5)], {"target_shape": (2, 2), **AFFINE}, "differ in dimension 1"),
        ("SpatialTransformer", [(2, 3, 5, 6), (2, 6)], AFFINE, "target_shape must be a height and a width"),
        (
            "SpatialTransformer",
            [(2, 3, 5, 6), (2, 6)],
            {"target_shape": (2, 2), "transform_type": "warp"},
            "'transform_type' must be one of affine",
        ),
    ],
)
def test_refusals(shapes, name, ins, params, says):
    with pytest.raises(mx.MXNetError, match=f"operator {name}.*({says})"):
        shapes(name, ins, **params)


def test_wrong_number_of_inputs_and_dtypes():
    with pytest.raises(mx.MXNetError, match="BilinearSampler needs input 'grid'"):
        mx.nd.BilinearSampler(mx.nd.ones((1, 1, 2, 2)))
    with pytest.raises(TypeError, match="GridGenerator: int32 numbers are whole; the operator works on float16"):
        mx.nd.GridGenerator(mx.nd.ones((1, 6), dtype="int32"), transform_type="affine", target_shape=(2, 2))
    with pytest.raises(TypeError, match="BilinearSampler: grid is float64 where float32 is expected"):
        mx.nd.BilinearSampler(mx.nd.ones((1, 1, 2, 2)), mx.nd.ones((1, 2, 2, 2), dtype="float64"))


def test_files_are_mxnets():
    s = mx.sym.SpatialTransformer(mx.sym.var("x"), name="st", target_shape=(4, 5), **AFFINE)
    assert s.list_arguments() == ["x", "st_loc"] and s.get_internals().list_outputs() == ["x", "st_loc", "st_output"]
    nodes = json.loads(s.tojson())["nodes"]
    attrs = {"sampler_type": "bilinear", "target_shape": "(4, 5)", "transform_type": "affine"}
    assert [(n["op"], n["name"], n.get("attrs"), n["inputs"]) for n in nodes] == [
        ("null", "x", None, []),
        ("null", "st_loc", attrs, []),
        ("SpatialTransformer", "st", attrs, [[0, 0, 0], [1, 0, 0]]),
    ]
