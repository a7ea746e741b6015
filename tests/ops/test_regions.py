"""Pooling over regions, between the pixels: against loops over places, adjoints, what lies beyond, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import nd

from . import boxes as loops

contrib = nd.contrib
#: Operator -> what it is called with, beside data and regions.
WAYS = {
    "ROIAlign": {"pooled_size": (2, 2), "spatial_scale": 1.0},
    "RROIAlign": {"pooled_size": (2, 2), "spatial_scale": 1.0},
    "PSROIPooling": {"spatial_scale": 1.0, "output_dim": 2, "pooled_size": 2},
    "DeformablePSROIPooling": {
        "spatial_scale": 1.0,
        "output_dim": 2,
        "pooled_size": 2,
        "group_size": 2,
        "no_trans": True,
    },
}


def pool(op, data, rois, grad=False, **params):
    x, r = nd.array(data, dtype="float64"), nd.array(rois, dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        y = getattr(contrib, op)(x, r, **{**WAYS[op], **params})
    if grad:
        y.backward(y)
    return (y.asnumpy(), x.grad.asnumpy()) if grad else y.asnumpy()


def regions(op, rows):
    """Regions of any operator from (image, left, top, right, bottom)."""
    rows = np.asarray(rows, float).reshape(-1, 5)
    if op != "RROIAlign":
        return rows
    with np.errstate(invalid="ignore"):
        centre, size = (rows[:, 1:3] + rows[:, 3:]) / 2, rows[:, 3:] - rows[:, 1:3]
    return np.concatenate([rows[:, :1], centre, size, rows[:, :1] * 0 + 30], 1)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    ratio=st.sampled_from([-1, 1, 2]),
    scale=st.sampled_from([1.0, 0.3, 1.7]),
    aligned=st.booleans(),
    sensitive=st.booleans(),
)
def test_align_against_loops(seed, size, ratio, scale, aligned, sensitive):
    rs = np.random.RandomState(seed)
    data = rs.randn(2, 2 * (size[0] * size[1] if sensitive else 1), *rs.randint(1, 7, 2))
    corner = rs.uniform(-4, 6, (3, 2))
    rois = np.concatenate([rs.randint(0, 2, (3, 1)), corner, corner + rs.uniform(0.1, 9, (3, 2))], 1)
    params = {"pooled_size": size, "spatial_scale": scale, "sample_ratio": ratio, "aligned": aligned}
    y, dx = pool("ROIAlign", data, rois, True, position_sensitive=sensitive, **params)
    np.testing.assert_allclose(y, loops.align(data, rois, size, scale, ratio, aligned, sensitive), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose((dx * data).sum(), (y * y).sum(), rtol=1e-9)  # it is the adjoint


def test_without_an_angle_a_rotated_region_is_one():
    rs = np.random.RandomState(0)
    data, rois = rs.randn(2, 3, 7, 8), [[0, 1, 1, 5, 6], [1, 0.5, 2, 7.2, 4]]
    found = regions("RROIAlign", rois)
    found[:, 5] = 0
    np.testing.assert_allclose(pool("RROIAlign", data, found), pool("ROIAlign", data, rois), rtol=1e-9, atol=1e-12)
    found[:, 5] = 360
    np.testing.assert_allclose(pool("RROIAlign", data, found), pool("ROIAlign", data, rois), rtol=1e-6, atol=1e-9)


def test_groups_of_channels():
    """Each bin of the position-sensitive operators sees the channels of its group."""
    data = np.arange(8.0).reshape(1, 8, 1, 1) * np.ones((1, 8, 6, 6))
    for op in ("PSROIPooling", "DeformablePSROIPooling"):
        assert pool(op, data, [[0, 0, 0, 5, 5]])[0].round(9).tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    found = pool("PSROIPooling", data, [[0, 0, 0, 5, 5]], pooled_size=4, group_size=2)
    assert found[0, 0].round(9).tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]
    sensitive = pool("ROIAlign", data, [[0, 0, 0, 5, 5]], position_sensitive=True)
    assert sensitive[0].round(9).tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_moved_bins_see_elsewhere():
    data = np.arange(64.0).reshape(1, 1, 8, 8)  # grows by one to the right, by eight down
    trans = np.zeros((1, 2, 1, 1))
    params = {"output_dim": 1, "group_size": 1, "pooled_size": 1, "part_size": 1, "trans_std": 0.5, "spatial_scale": 1}

    def at(*move):
        trans[0, :, 0, 0] = move
        ins = [nd.array(v, dtype="float64") for v in (data, [[0, 2, 2, 3, 3]], trans)]
        return contrib.DeformablePSROIPooling(*ins, **params).asscalar()

    # The region is two pixels wide: a whole move is one of them.
    assert (at(0.5, 0) - at(0, 0), at(0, 0.5) - at(0, 0)) == (0.5, 4.0)


@pytest.mark.parametrize("op", WAYS)
def test_what_is_beyond_is_zero(op):
    data = np.ones((2, 8, 5, 5))
    nan, inf = float("nan"), float("inf")
    rows = [[-1, 0, 0, 3, 3], [2, 0, 0, 3, 3], [nan, 0, 0, 3, 3], [0, 90, 90, 99, 99], [0, nan, nan, nan, nan]]
    y, dx = pool(op, data, regions(op, rows), True)
    assert not y.any() and not dx.any()
    # What is infinitely large or NaN in part is read nowhere; it ends.
    assert np.isfinite(
        pool(op, data, regions(op, [[0, -inf, 0, inf, 3], [0, 0, nan, 3, 3], [1, 0, 0, 1e30, 1e30]]))
    ).all()
    y, dx = pool(op, data, np.zeros((0, 6 if op == "RROIAlign" else 5)), True)
    assert y.shape[0] == 0 and not dx.any()
    assert not pool(op, np.zeros((0, 8, 5, 5)), regions(op, [[0, 0, 0, 3, 3]])).any()


def test_regions_that_are_inside_out():
    data = np.ones((1, 1, 5, 5))
    assert not pool("ROIAlign", data, [[0, 3, 3, 1, 1]], aligned=True).any()
    assert pool("ROIAlign", data, [[0, 3, 3, 1, 1]]).all()  # one pixel, as in MXNet
    assert not pool("ROIAlign", data, [[0, 3, 3, 1, 1]], aligned=True, sample_ratio=2).any()


@pytest.mark.parametrize(
    "op, shapes, params, says",
    [
        ("ROIAlign", [(1, 8, 4, 4), (2, 4)], {}, "differ in dimension 1"),
        ("ROIAlign", [(1, 8, 4), (2, 5)], {}, "different ranks"),
        ("ROIAlign", [(1, 8, 4, 4), (2, 5)], {"pooled_size": (2,)}, "pooled_size must be a height and a width"),
        ("ROIAlign", [(1, 7, 4, 4), (2, 5)], {"position_sensitive": True}, "7 channels, which is no multiple of the 4"),
        ("RROIAlign", [(1, 8, 4, 4), (2, 5)], {}, "differ in dimension 1"),
        ("PSROIPooling", [(1, 7, 4, 4), (2, 5)], {}, "7 channels; output_dim 2 of 2 x 2 groups want 8"),
        ("DeformablePSROIPooling", [(1, 7, 4, 4), (2, 5)], {}, "7 channels; output_dim 2 of 2 x 2 groups want 8"),
        (
            "DeformablePSROIPooling",
            [(1, 8, 4, 4), (2, 5), (2, 3, 2, 2)],
            {"no_trans": False},
            "trans has 3 channels; wanted are two for each class",
        ),
        ("DeformablePSROIPooling", [(1, 8, 4, 4), (2, 5), (2, 2, 3, 2)], {"no_trans": False}, "differ in dimension 2"),
    ],
)
def test_refusals(op, shapes, params, says):
    with pytest.raises(mx.MXNetError, match=f"operator _contrib_{op}.*{says}"):
        getattr(contrib, op)(*map(nd.zeros, shapes), **{**WAYS[op], **params})
