"""Kernels of detection in any number of threads: the same as in one, and against plain NumPy; memory in bounds."""

from types import SimpleNamespace

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore.plugin import Spec, find_op
from mxcore_cpu.kernels import boxes, multibox, regions, suppression
from tests.marks import slow

from ..ops import boxes as loops

rng = np.random.default_rng(0)
KERNELS = (
    (boxes, "_encode _decode"),
    (suppression, "_survivors _iou _match"),
    (multibox, "_target _located"),
    (regions, "_align _rotate _whole _bend _gather _scatter _moves"),
)


@pytest.fixture(params=[1, 3], autouse=True)
def workers(request, monkeypatch):
    for module, names in KERNELS:
        for name in names.split():
            monkeypatch.setattr(getattr(module, name), "workers", lambda work: request.param)


def some_boxes(*shape):
    corner = rng.uniform(0, 0.7, (*shape, 2))
    return np.concatenate([corner, corner + rng.uniform(0.05, 0.3, (*shape, 2))], -1)


@pytest.mark.parametrize("inclusive, longer, most", [(False, 0, None), (True, 0, None), (False, 1, 4)])
def test_survivors(inclusive, longer, most):
    boxes = np.moveaxis(some_boxes(5, 40), -1, 0) * (30 if longer else 1)
    area = (boxes[2] - boxes[0] + longer) * (boxes[3] - boxes[1] + longer)
    alive, classes = rng.random((5, 40)) < 0.8, rng.integers(0, 2, (5, 40))
    for kinds in (None, classes):
        found = suppression.survivors(alive, boxes, area, kinds, (0.2, inclusive, longer), most)
        for b in range(5):
            kept = []
            for i in np.flatnonzero(alive[b]):
                w, h = (
                    np.maximum(
                        np.minimum(boxes[k + 2, b, i], boxes[k + 2, b, kept])
                        - np.maximum(boxes[k, b, i], boxes[k, b, kept])
                        + longer,
                        0,
                    )
                    for k in (0, 1)
                )
                part = w * h / (area[b, i] + area[b, kept] - w * h)
                rival = True if kinds is None else kinds[b, kept] == kinds[b, i]
                if not (rival & (part > 0.2)).any():
                    kept.append(i)
            assert np.flatnonzero(found[b]).tolist() == kept[:most]


def test_overlaps_and_matches():
    a, b, out = some_boxes(9), some_boxes(7), np.empty((9, 7))
    suppression.box_iou(a, b, out, centred=False)
    assert out.max() <= 1 and (out > 0).any()
    np.testing.assert_allclose(np.diag(overlaps(a, a)), 1)
    rows, columns = np.empty((1, 9)), np.empty((1, 7))
    suppression.match(out[None], rows, columns, ascend=False, threshold=0.0, topk=-1)
    for i, j in enumerate(rows[0].astype(int)):
        assert j < 0 or columns[0, j] == i
    at = np.unravel_index(out.argmax(), out.shape)
    assert rows[0, at[0]] == at[1]


def overlaps(a, b):
    out = np.empty((len(a), len(b)))
    suppression.box_iou(a, b, out, centred=False)
    return out


@pytest.mark.parametrize("dtype", ["float32", *slow("float64")])
def test_targets(dtype):
    """Classes, masks and offsets by a loop over boxes; background by its probability."""
    anchor = some_boxes(50).astype(dtype)
    label = np.concatenate([rng.integers(0, 3, (6, 4, 1)), some_boxes(6, 4)], -1).astype(dtype)
    label[2, 1:, 0] = label[3, 0, 0] = -1
    label[4, 1] = label[4, 0]  # a box twice, of which the first has the better anchor
    scores, variances = rng.standard_normal((6, 4, 50)).astype(dtype), np.array([1, 2, 0.5, 0.25])
    background = (np.exp(scores) / np.exp(scores).sum(1, keepdims=True))[:, 0]
    how = {"threshold": 0.3, "ignore": -2.0, "limit": 0.25, "variances": tuple(variances)}
    for ratio in (-1.0, 1.5):
        place, mask, found = (np.empty((6, 50, *s), dtype) for s in ((4,), (4,), ()))
        multibox.multibox_target(anchor, label, scores, place, mask, found, ratio=ratio, **how)
        for b in range(6):
            wanted, count = loops.targets(anchor.astype(float), label[b].astype(float), 0.3)
            own = np.array([w is not None for w in wanted])
            assert count == {2: 1, 3: 0}.get(b, 4) and own.sum() >= count
            np.testing.assert_array_equal(mask[b], np.repeat(own[:, None], 4, 1))
            classes = np.array([-2 if w is None else label[b, w, 0] + 1 for w in wanted])
            if count and ratio < 0:
                classes[~own] = 0
            elif count:
                best = overlaps(anchor.astype(float), label[b, :count, 1:].astype(float)).max(1)
                free = np.flatnonzero(~own & (best < 0.25))
                classes[free[background[b, free].argsort()][: int(1.5 * own.sum())]] = 0
            np.testing.assert_array_equal(found[b], classes)
            box = label[b, [w or 0 for w in wanted], 1:]
            size, wide = anchor[:, 2:] - anchor[:, :2], box[:, 2:] - box[:, :2]
            moved = (box[:, :2] + box[:, 2:] - anchor[:, :2] - anchor[:, 2:]) / 2 / size
            offset = np.concatenate([moved, np.log(wide / size)], 1) / variances
            np.testing.assert_allclose(place[b], np.where(own[:, None], offset, 0), rtol=1e-4, atol=1e-5)


def bins_of(kind, dtype, trans=None):
    rois = np.array([[0, 0.3, 0.2, 3.1, 4.2], [1, 2, 0, 6, 5], [1, -3, -3, 9, 9], [7, 0, 0, 3, 3]], dtype)
    size = (2, 6, 7)
    if kind == "aligned":
        return regions.aligned(rois, size, (2, 2), scale=0.9, ratio=-1, shift=0.5, groups=4)
    if kind == "rotated":
        turned = np.concatenate([rois, 40 * rois[:, :1]], 1)
        return regions.rotated(turned, size, (2, 2), scale=1.0, ratio=2, most=9)
    if kind == "whole":
        return regions.whole_pixels(rois, size, 2, scale=1.0, groups=2)
    return regions.Bent(rois, trans, size, 2, scale=1.0, groups=2, parts=2, samples=2, std=0.1)


@pytest.mark.parametrize("dtype", ["float32", *slow("float64")])
@pytest.mark.parametrize("kind", ["aligned", "rotated", "whole", "bent", "bent with moves"])
def test_pooling_and_its_adjoint(kind, dtype, monkeypatch):
    trans = rng.standard_normal((4, 4, 2, 2)).astype(dtype) if kind == "bent with moves" else None
    bins, x = bins_of(kind, dtype, trans), rng.standard_normal((2, 8, 6, 7)).astype(dtype)
    y = np.empty((4, 8 // bins.groups, 2, 2), dtype)
    regions.pooled(x, bins, y)
    assert np.abs(y).max() > 0 and not y[3].any()
    dx = np.empty_like(x)
    regions.pooled_backward(y, bins, dx)
    np.testing.assert_allclose((dx * x).sum(dtype=float), (y * y).sum(dtype=float), rtol=1e-4)
    monkeypatch.setattr(regions, "_MANY", 5)  # in parts
    assert len(list(bins.parts())) > 2
    parts, d = np.empty_like(y), np.empty_like(x)
    regions.pooled(x, bins, parts)
    regions.pooled_backward(y, bins, d)
    np.testing.assert_array_equal(parts, y)
    np.testing.assert_allclose(d, dx, rtol=1e-4, atol=1e-5)
    if trans is not None:
        moves, step = np.empty_like(trans), 1e-3
        bins.moves(y, x, moves)
        if dtype == "float64":
            for at in ((0, 0, 0, 1), (1, 3, 1, 0)):
                near = [trans.copy(), trans.copy()]
                near[0][at] += step
                near[1][at] -= step
                ends = [np.empty_like(y), np.empty_like(y)]
                for t, end in zip(near, ends):
                    regions.pooled(x, bins_of(kind, dtype, t), end)
                slope = ((ends[0] - ends[1]) * y).sum() / (2 * step)
                np.testing.assert_allclose(moves[at], slope, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", *slow("float64")])
def test_detections(dtype):
    """As the body finds them: ties, NaN, all or none below the threshold, so many of the best only."""
    op = find_op("_contrib_MultiBoxDetection")
    k = SimpleNamespace(xp=np)
    for case in range(60):
        n, classes, count = rng.integers(1, 4), rng.integers(2, 5), rng.integers(1, 40)
        prob = rng.integers(0, 6, (n, classes, count)).astype(dtype) / 5
        prob[rng.random(prob.shape) < 0.05] = np.nan
        ins = prob, rng.normal(0, 2, (n, 4 * count)).astype(dtype), some_boxes(1, count).astype(dtype)
        if case % 3 == 0:
            ins[1][rng.random(ins[1].shape) < 0.02] = np.nan
        params = {
            "threshold": float(rng.choice([0, 0.4, 0.8, 2])),
            "nms_threshold": float(rng.choice([0, 0.3, 0.5, 1, 2])),
            "nms_topk": int(rng.choice([-1, 0, 1, 5, 100])),
            "clip": bool(case % 2),
            "force_suppress": bool(case % 4 // 2),
            "variances": (0.1, 0.2, 0.3, 0.4),
        }
        (found,) = found_by_kernel(op, params, ins)
        np.testing.assert_allclose(found, op.body(k, op.parse(params), *ins), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_offsets_and_boxes(dtype):
    """As the bodies compute them: matches with boxes that are not there, NaN, both forms of anchors, bounds."""
    k, masks = SimpleNamespace(xp=np), set()
    for case in range(20):
        n, count, many = rng.integers(1, 4), rng.integers(1, 30), rng.integers(1, 5)
        anchors, refs = some_boxes(n, count).astype(dtype), some_boxes(n, many).astype(dtype)
        matches = rng.integers(-1, many + 1, (n, count)).astype(dtype)
        matches[rng.random(matches.shape) < 0.05] = np.nan
        samples = rng.choice([-1, 0, 0.5, 1], (n, count)).astype(dtype)
        means, stds = rng.normal(0, 1, 4).astype(dtype), rng.uniform(0.1, 2, 4).astype(dtype)
        ins = samples, matches, anchors, refs, means, stds
        op = find_op("_contrib_box_encode")
        found = found_by_kernel(op, {}, ins)
        for a, b in zip(found, op.body(k, op.parse({}), *ins), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
        masks.update(found[1].ravel())
        data = rng.normal(0, 2, (n, count, 4)).astype(dtype)
        data[rng.random(data.shape) < 0.05] = np.nan
        params = {f"std{i}": 0.1 * (i + 1) for i in range(4)}
        params |= {"clip": [-1.0, 0.3][case % 2], "format": ["corner", "center"][case // 2 % 2]}
        op = find_op("_contrib_box_decode")
        ins = data, anchors[:1]
        (found,) = found_by_kernel(op, params, ins)
        np.testing.assert_allclose(found, op.body(k, op.parse(params), *ins), rtol=2e-5, atol=2e-6)
    assert masks == {0, 1}


def found_by_kernel(op, params, ins):
    """The outputs of the compiled kernel, which has to be the one that is chosen."""
    p = op.parse(params)
    kernel, out, owner = tables.kernels.resolve(op, mx.cpu().device, p, [Spec(a.shape, a.dtype) for a in ins])
    assert owner == "cpu_numba"
    if out:
        outs = [np.empty(ins[0].shape, ins[0].dtype)]
        kernel(SimpleNamespace(xp=np), p, outs, *ins)
        return outs
    found = kernel(SimpleNamespace(xp=np), p, *ins)
    return found if isinstance(found, tuple) else (found,)
