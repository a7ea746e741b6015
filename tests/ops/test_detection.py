"""Boxes, suppression, matching, anchors, proposals: against loops over boxes, ties, bad input, refusals."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import nd
from mxcore.ops.detection import suppression
from mxcore.testing.ways import reference_bodies

from . import boxes as loops

NAN, INF = float("nan"), float("inf")
contrib = nd.contrib


def some_boxes(rs, n, steps=None):
    """Boxes by corners; on few places, so that they are often alike, if `steps` are told."""
    corner, size = rs.uniform(-0.1, 0.8, (n, 2)), rs.uniform(0.05, 0.5, (n, 2))
    found = np.concatenate([corner, corner + size], 1)
    return found if steps is None else np.round(found * steps) / steps


def call(op, *arrays, **params):
    found = getattr(contrib, op)(*[nd.array(a, dtype="float64") for a in arrays], **params)
    return [x.asnumpy() for x in found] if isinstance(found, list) else found.asnumpy()


# -- against loops --------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    batch=st.integers(1, 3),
    steps=st.sampled_from([None, 8]),
    overlap=st.sampled_from([0.1, 0.3, 0.5, 0.9]),
    topk=st.sampled_from([-1, 1, 5, 100]),
    form=st.sampled_from(["corner", "center"]),
    ids=st.booleans(),
    force=st.booleans(),
    background=st.sampled_from([-1, 1]),
)
def test_box_nms(seed, n, batch, steps, overlap, topk, form, ids, force, background):
    rs = np.random.RandomState(seed)
    score = rs.randint(0, 8, (batch, n, 1)) / 8 if steps else rs.rand(batch, n, 1)
    places = np.stack([some_boxes(rs, n, steps) for _ in range(batch)])
    if form == "center":
        places[..., 2:] = abs(places[..., 2:])
    rows = np.concatenate([rs.randint(-1, 3, (batch, n, 1)), score, places], -1)
    params = {"overlap_thresh": overlap, "valid_thresh": 0.2, "topk": topk, "force_suppress": force}
    params |= {"in_format": form, "out_format": form, "background_id": background, "id_index": 0 if ids else -1}
    x = nd.array(rows, dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        y = contrib.box_nms(x, **params)
    y.backward(y.ones_like() * 2)
    expected, slopes = np.full(rows.shape, -1.0), np.zeros(rows.shape)
    for b in range(batch):
        kept = loops.nms(rows[b], overlap, 0.2, topk, ids, background, force, form)
        expected[b, : len(kept)] = rows[b, kept]
        slopes[b, kept] = 2
    np.testing.assert_array_equal(y.asnumpy(), expected)
    np.testing.assert_array_equal(x.grad.asnumpy(), slopes)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 8),
    m=st.integers(1, 8),
    steps=st.sampled_from([3, 1000]),
    ascend=st.booleans(),
)
def test_bipartite_matching(seed, n, m, steps, ascend):
    score = np.random.RandomState(seed).randint(0, steps, (n, m)) / steps
    rows, columns = call("bipartite_matching", score, threshold=0.5, is_ascend=ascend)
    pairs = loops.matches(-score if ascend else score, -0.5 if ascend else 0.5)
    assert rows.tolist() == [pairs.get(i, -1) for i in range(n)]
    back = {j: i for i, j in pairs.items()}
    assert columns.tolist() == [back.get(j, -1) for j in range(m)]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    a=st.integers(1, 30),
    m=st.integers(0, 5),
    steps=st.sampled_from([None, 6]),
    threshold=st.sampled_from([0.2, 0.5, 0.8]),
)
def test_multibox_target(seed, a, m, steps, threshold):
    rs = np.random.RandomState(seed)
    anchors, classes = some_boxes(rs, a, steps), rs.choice([-1, 0, 1, 2], (2, m, 1), p=[0.1, 0.3, 0.3, 0.3])
    label = np.concatenate([classes, np.stack([some_boxes(rs, m, steps) for _ in range(2)])], -1)
    # Boxes without an area are matched with nobody, and divide by nothing.
    anchors[:, 2:] = np.maximum(anchors[:, 2:], anchors[:, :2] + 0.05)
    place, mask, found = call(
        "MultiBoxTarget", anchors[None], label, np.zeros((2, 4, a)), overlap_threshold=threshold, variances=(1, 1, 1, 1)
    )
    for b in range(2):
        wanted, count = loops.targets(anchors, label[b], threshold)
        classes = [-1.0 if not count else 0.0 if w is None else label[b, w, 0] + 1 for w in wanted]
        assert found[b].tolist() == classes
        assert mask[b].reshape(a, 4).tolist() == [[float(w is not None)] * 4 for w in wanted]
        for i, w in enumerate(wanted):
            offset = place[b].reshape(a, 4)[i]
            if w is None:
                assert not offset.any()
            else:  # what was encoded is decoded to the box
                decoded = call("box_decode", offset[None, None], anchors[None, None, i], format="corner")
                np.testing.assert_allclose(decoded[0, 0], label[b, w, 1:5], rtol=1e-9, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), a=st.integers(1, 25), clip=st.booleans(), force=st.booleans())
def test_multibox_detection(seed, a, clip, force):
    rs = np.random.RandomState(seed)
    anchors, prob, offset = some_boxes(rs, a), rs.rand(1, 4, a), rs.randn(1, a, 4)
    found = call(
        "MultiBoxDetection", prob, offset.reshape(1, -1), anchors[None], clip=clip, force_suppress=force, threshold=0.6
    )[0]
    where = call("box_decode", offset, anchors[None], format="corner", std0=0.1, std1=0.1, std2=0.2, std3=0.2)[0]
    where = where.clip(0, 1) if clip else where
    best, score = prob[0, 1:].argmax(0), prob[0, 1:].max(0)
    order = sorted(np.flatnonzero(score >= 0.6), key=lambda i: -score[i])
    kept = []
    for place, i in enumerate(order):
        rivals = [j for j in kept if force or best[j] == best[i]]
        if all(loops.iou(where[i], where[j]) < 0.5 for j in rivals):
            kept.append(i)
        np.testing.assert_allclose(found[place, 1:], [score[i], *where[i]], rtol=1e-9, atol=1e-12)
        assert found[place, 0] == (best[i] if kept[-1:] == [i] else -1)
    assert (found[len(order) :] == -1).all()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), h=st.integers(1, 4), w=st.integers(1, 4), post=st.integers(1, 20))
def test_proposals(seed, h, w, post):
    """Each comes from an anchor, lies on the image, and overlaps little with better ones."""
    rs = np.random.RandomState(seed)
    prob, delta = rs.rand(2, 4, h, w), rs.randn(2, 8, h, w) * 0.1
    params = {"scales": (1, 2), "ratios": (1,), "feature_stride": 8, "rpn_min_size": 0, "threshold": 0.4}
    info = np.array([[8 * h, 8 * w, 1], [8 * h, 8 * w, 1]])
    rois, score = call("MultiProposal", prob, delta, info, rpn_post_nms_top_n=post, output_score=True, **params)
    assert rois[:, 0].tolist() == [0] * post + [1] * post
    for image in (0, 1):
        mine, own = rois[rois[:, 0] == image, 1:], score[rois[:, 0] == image, 0]
        assert (mine >= 0).all() and (mine[:, 2] <= 8 * w - 1).all() and (mine[:, 3] <= 8 * h - 1).all()
        n = len({tuple(r) for r in mine})
        assert (np.diff(own[:n]) <= 0).all() and (mine == mine[np.arange(post) % n]).all()
        for i in range(n):
            assert all(loops.iou(mine[i], mine[j], 1.0) <= 0.4 for j in range(i))
    alone = call("Proposal", prob[:1], delta[:1], info[:1], rpn_post_nms_top_n=post, **params)
    np.testing.assert_array_equal(alone, rois[:post])


@settings(max_examples=20, deadline=None)
@example(seed=2330, n=3, m=5, form="corner")  # a box that ends left of the origin is none the less one
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(0, 6), m=st.integers(0, 6), form=st.sampled_from(["corner", "center"])
)
def test_box_iou(seed, n, m, form):
    rs = np.random.RandomState(seed)
    a, b = some_boxes(rs, n), some_boxes(rs, m)
    expected = [[loops.iou(loops.corners(x, form), loops.corners(y, form)) for y in b] for x in a]
    inside_out = (b[:, 2:] < (b[:, :2] if form == "corner" else 0)).any(1)
    found = call("box_iou", a, b, format=form)
    expected = np.where(inside_out, 0, np.reshape(expected, (n, m)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", ["corner", "center"])
@pytest.mark.parametrize("at", range(4))
def test_boxes_that_are_no_numbers_overlap_with_nothing(form, at):
    a, b = np.array([[0.4, 0.4, 0.6, 0.7]]), np.array([[0.5, 0.5, 0.6, 0.6]])
    assert call("box_iou", a, b, format=form) > 0
    b[0, at] = np.nan
    for one, other in ((a, b), (b, a)):
        assert call("box_iou", one, other, format=form) == 0


# -- order, ties, corners -------------------------------------------------------------------------------------------


def test_of_equal_scores_the_first_stays():
    rows = np.array([[0, 0.5, 0, 0, 1, 1], [0, 0.5, 0, 0, 1, 1.01], [0, 0.5, 3, 3, 4, 4]])
    assert call("box_nms", rows)[:, 2:].tolist() == [[0, 0, 1, 1], [3, 3, 4, 4], [-1] * 4]
    assert call("bipartite_matching", np.full((2, 2), 0.5), threshold=0.1)[0].tolist() == [0, 1]


@pytest.mark.parametrize("topk, pairs", [(-1, 5), (0, 5), (1, 2), (2, 3), (9, 5)])
def test_topk_of_a_matching_is_one_more(topk, pairs):
    score = np.random.RandomState(0).rand(5, 6)
    assert (call("bipartite_matching", score, threshold=0.0, topk=topk)[0] >= 0).sum() == pairs


def test_formats_of_results():
    rows = np.array([[0, 0.5, -1.0, 0, 1, 2]])
    assert call("box_nms", rows, out_format="center")[0, 2:].tolist() == [0, 1, 2, 2]
    assert call("box_nms", rows, in_format="center")[0, 2:].tolist() == [-1.5, -1, -0.5, 1]


def test_hard_negatives_are_those_least_like_background():
    anchors = np.array([[[0, 0, 0.5, 0.5], [0.6, 0.6, 1, 1], [0.6, 0, 1, 0.3], [0, 0.6, 0.3, 1]]])
    label = [[[1, 0, 0, 0.5, 0.5]]]
    scores = np.array([[[0, 3.0, 1.0, 2.0], [0, 0, 0, 0]]])
    mined = call("MultiBoxTarget", anchors, label, scores, negative_mining_ratio=2, ignore_label=-9)[2]
    assert mined[0].tolist() == [2, -9, 0, 0]
    scores[0, 0, 2] = NAN  # comes after all others
    mined = call("MultiBoxTarget", anchors, label, scores, negative_mining_ratio=2, ignore_label=-9)[2]
    assert mined[0].tolist() == [2, 0, -9, 0]
    assert call("MultiBoxTarget", anchors, label, scores, negative_mining_ratio=50)[2][0].tolist() == [2, 0, 0, 0]


def test_names_of_numpy():
    with mx.util.np_array(True), mx.util.np_shape(True):
        x = mx.np.zeros((1, 3, 2, 2))
        anchors = mx.npx.multibox_prior(x, sizes=(0.5,))
        assert isinstance(anchors, mx.np.ndarray) and anchors.shape == (1, 4, 4)
        found = mx.npx.multibox_target(anchors, mx.np.array([[[0, 0, 0, 0.5, 0.5]]]), mx.np.zeros((1, 2, 4)))
        assert found[2].tolist() == [[1, 0, 0, 0]]
        prob = mx.npx.softmax(mx.np.array([[[0.0] * 4, [5.0, -5, -5, -5]]]), axis=1)
        seen = mx.npx.multibox_detection(prob, mx.np.zeros((1, 16)), anchors, threshold=0.5)
        assert (seen[0, :, 0] >= 0).sum() == 1
    for name in ("prior", "target", "detection"):
        assert mx._core.tables.ops.find(f"_npx_multibox_{name}").name == f"_contrib_MultiBox{name.title()}"


def test_many_boxes_at_once():
    rs = np.random.RandomState(0)
    corner = rs.uniform(0, 1, (10_000, 2))
    rows = np.concatenate([rs.rand(10_000, 1), corner, corner + rs.uniform(0.2, 0.4, (10_000, 2))], 1)
    found = call("box_nms", rows, coord_start=1, score_index=0, overlap_thresh=0.1)
    kept = found[found[:, 0] >= 0]
    assert 1 < len(kept) < 200 and (np.diff(kept[:, 0]) < 0).all()
    overlap = call("box_iou", kept[:, 1:], kept[:, 1:])
    assert (overlap[np.triu_indices(len(kept), 1)] <= 0.1).all()


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([1, 40, 200]),
    pairs=st.sampled_from([1, 5000, 1 << 21]),
    ids=st.booleans(),
    topk=st.sampled_from([-1, 30]),
    dtype=st.sampled_from(["float16", "float32"]),
)
def test_suppression_over_any_array_library(seed, n, pairs, ids, topk, dtype):
    """Bodies take some boxes at a time, kernels one: the same boxes stay."""
    rs = np.random.RandomState(seed)
    rows = np.stack([some_boxes(rs, n, 12) for _ in range(3)])
    rows = nd.array(np.concatenate([rs.randint(0, 2, (3, n, 1)), rs.rand(3, n, 1) - 0.1, rows], -1), dtype=dtype)
    prob, offset = nd.random.uniform(0, 1, (2, 3, n), dtype=dtype), nd.zeros((2, 4 * n), dtype=dtype)
    maps = nd.random.uniform(0, 1, (1, 4, 5, 7), dtype=dtype), nd.zeros((1, 8, 5, 7), dtype=dtype)
    info = nd.array([[80, 112, 1]], dtype=dtype)

    def results():
        yield contrib.box_nms(rows, id_index=0 if ids else -1, topk=topk, overlap_thresh=0.3)
        yield contrib.MultiBoxDetection(prob, offset, rows[:1, :, 2:], force_suppress=not ids, nms_topk=topk)
        yield contrib.Proposal(*maps, info, scales=(2, 4), ratios=(1,), rpn_post_nms_top_n=20, threshold=0.3)

    want = [y.asnumpy() for y in results()]
    with pytest.MonkeyPatch.context() as patch, reference_bodies():
        patch.setattr(suppression, "_PAIRS", pairs)
        for y, w in zip(results(), want, strict=True):
            assert y.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(y.asnumpy(), w)


def test_many_boxes_in_few_steps(monkeypatch):
    """A device without kernels waits some hundred times for 10,000 boxes of which most stay, not for each of them."""
    steps, met = [], suppression.Meeting.met
    monkeypatch.setattr(suppression.Meeting, "met", lambda *args: steps.append(1) or met(*args))
    rs = np.random.RandomState(0)
    corner = rs.uniform(0, 1, (10_000, 2))
    rows = nd.array(np.concatenate([rs.rand(10_000, 2), corner, corner + 0.004], 1))
    with reference_bodies():
        found = contrib.box_nms(rows).asnumpy()
    assert (found[:, 1] > 0).sum() > 9000 and 1 < len(steps) < 100


# -- bad input ------------------------------------------------------------------------------------------------------

BAD = [[NAN, 0, 1, 1], [0, 0, NAN, 1], [1, 1, 0, 0], [0, 1, 1, 0], [NAN] * 4]


@pytest.mark.parametrize("box", BAD)
def test_boxes_that_are_none_overlap_with_nothing(box):
    good = [0, 0, 1, 1]
    assert call("box_iou", [box, good], [good, box]).tolist() == [[0, 0], [1, 0]]
    rows = np.array([[0.9, *box], [0.8, *good], [0.7, *box], [0.6, *good], [NAN, *good]])
    found = call("box_nms", rows, coord_start=1, score_index=0)
    assert found[:, 0].tolist() == [0.9, 0.8, 0.7, -1, -1]
    _, mask, classes = call("MultiBoxTarget", [[good, [0, 0, 0.5, 0.5]]], [[[0, *box]]], np.zeros((1, 2, 2)))
    assert not mask.any() and not classes.any()


def test_probabilities_that_are_none_detect_nothing():
    prob, anchor = np.array([[[0.1, 0.1], [NAN, 0.9], [NAN, 0.2]]]), [[[0, 0, 1, 1]] * 2]
    assert call("MultiBoxDetection", prob, np.zeros((1, 8)), anchor)[0].tolist() == [[0, 0.9, 0, 0, 1, 1], [-1] * 6]
    lost = call("MultiBoxDetection", prob, np.full((1, 8), NAN), anchor)[0]
    assert lost[0, :2].tolist() == [0, 0.9] and (lost[1] == -1).all()
    prob = np.array([[[0.5], [NAN]]])
    rois, score = call(
        "Proposal",
        prob.reshape(1, 2, 1, 1),
        np.zeros((1, 4, 1, 1)),
        [[20, 20, 1]],
        scales=(1,),
        ratios=(1,),
        rpn_min_size=0,
        output_score=True,
        rpn_post_nms_top_n=2,
    )
    assert score.tolist() == [[-1], [-1]] and rois.tolist() == [[0, 0, 0, 15, 15]] * 2


def test_matches_with_boxes_that_there_are_not():
    anchors, refs = [[[0, 0, 1, 1]] * 3], [[[0, 0, 2, 2]]]
    targets, masks = call("box_encode", [[1, 1, 1]], [[0, 1, -1]], anchors, refs, np.zeros(4), np.ones(4))
    assert masks[0].tolist() == [[1] * 4, [0] * 4, [0] * 4] and not targets[0, 1:].any()


@pytest.mark.parametrize(
    "op, shapes, params, says",
    [
        ("box_iou", [(2, 3), (2, 4)], {}, r"lhs has shape \(2, 3\); boxes have a last axis of 4 numbers"),
        ("box_iou", [(2, 4), (4,)], {}, r"rhs has shape \(4,\)"),
        ("box_iou", [(2, 4), (2, 4)], {"format": "middle"}, "'format' must be one of"),
        ("box_nms", [(6,)], {}, "wanted are rows of numbers"),
        ("box_nms", [(3, 5)], {}, "coord_start=2 wants at least 6 numbers for each box; the data has 5"),
        ("box_nms", [(3, 6)], {"score_index": 6}, "score_index=6 wants at least 7 numbers"),
        ("box_nms", [(3, 6)], {"id_index": 9}, "id_index=9 wants at least 10 numbers"),
        ("bipartite_matching", [(3,)], {"threshold": 0}, "wanted are scores of pairs"),
        ("bipartite_matching", [(3, 3)], {}, "threshold"),
        ("box_encode", [(1, 2), (1, 2), (1, 3, 4), (1, 2, 4), (4,), (4,)], {}, "differ in dimension 1"),
        ("box_encode", [(1, 2), (1, 2), (1, 2, 5), (1, 2, 4), (4,), (4,)], {}, "anchors has shape"),
        ("box_decode", [(2, 3, 4), (2, 3, 4)], {}, "differ in dimension 0"),
        ("box_decode", [(2, 12), (1, 3, 4)], {}, r"data has shape \(2, 12\)"),
        ("MultiBoxPrior", [(1, 2, 3, 4)], {"sizes": ()}, "sizes must be at least one number"),
        ("MultiBoxPrior", [(1, 2, 3, 4)], {"ratios": (1, -1)}, "ratios must be above zero"),
        ("MultiBoxPrior", [(1, 2, 3, 4)], {"steps": (0.5, -1)}, "steps must both be above zero, or none"),
        ("MultiBoxPrior", [(1, 2, 3, 4)], {"offsets": (0.5,)}, "offsets must be two numbers"),
        ("MultiBoxTarget", [(1, 3, 4), (2, 1, 4), (2, 2, 3)], {}, r"label has shape \(2, 1, 4\); wanted is"),
        ("MultiBoxTarget", [(1, 3, 4), (2, 5), (2, 2, 3)], {}, r"label has shape \(2, 5\)"),
        ("MultiBoxTarget", [(2, 3, 4), (2, 1, 5), (2, 2, 3)], {}, "all images share one set"),
        ("MultiBoxTarget", [(1, 3, 4), (2, 1, 5), (2, 2, 4)], {}, "differ in dimension 1"),
        ("MultiBoxTarget", [(1, 3, 4), (2, 1, 5), (2, 0, 3)], {}, "at least one class, background"),
        (
            "MultiBoxTarget",
            [(1, 3, 4), (2, 1, 5), (2, 2, 3)],
            {"variances": (1, 1, 1)},
            "variances must be four numbers",
        ),
        ("MultiBoxDetection", [(2, 2, 3), (2, 11), (1, 3, 4)], {}, "differ in dimension 1"),
        ("MultiBoxDetection", [(2, 2, 3), (2, 12), (1, 3, 4)], {"variances": (1, 1, 0, 1)}, "variances must be four"),
        ("Proposal", [(2, 24, 3, 4), (2, 48, 3, 4), (2, 3)], {}, "differ in dimension 0"),
        ("Proposal", [(1, 20, 3, 4), (1, 48, 3, 4), (1, 3)], {}, "differ in dimension 1"),
        ("MultiProposal", [(1, 24, 0, 4), (1, 48, 0, 4), (1, 3)], {}, "no place to propose boxes at"),
        ("MultiProposal", [(1, 24, 3, 4), (1, 48, 3, 4), (1, 4)], {}, "differ in dimension 1"),
        ("MultiProposal", [(1, 24, 3, 4), (1, 48, 3, 4), (1, 3)], {"ratios": ()}, "scales and ratios must be numbers"),
        ("MultiProposal", [(1, 24, 3, 4), (1, 48, 3, 4), (1, 3)], {"rpn_post_nms_top_n": 0}, "rpn_post_nms_top_n"),
    ],
)
def test_refusals(op, shapes, params, says):
    with pytest.raises(mx.MXNetError, match=f"operator _contrib_{op}.*{says}"):
        getattr(contrib, op)(*[nd.array(np.zeros(s)) for s in shapes], **params)


def test_whole_numbers_are_refused():
    for op, shapes, params in (
        ("box_iou", [(1, 4), (1, 4)], {}),
        ("box_nms", [(1, 6)], {}),
        ("bipartite_matching", [(1, 1)], {"threshold": 0}),
    ):
        with pytest.raises(TypeError, match=f"operator _contrib_{op}: int32 numbers are whole"):
            getattr(contrib, op)(*[nd.zeros(s, dtype="int32") for s in shapes], **params)


def test_nothing_at_all(shapes):
    assert call("box_nms", np.zeros((2, 0, 6))).shape == (2, 0, 6)
    assert call("box_nms", np.zeros((0, 3, 6))).shape == (0, 3, 6)
    assert call("box_iou", np.zeros((0, 4)), np.zeros((3, 4))).shape == (0, 3)
    rows, columns = call("bipartite_matching", np.zeros((2, 3, 0)), threshold=0)
    assert (rows == -1).all() and rows.shape == (2, 3) and columns.shape == (2, 0)
    place, mask, found = call("MultiBoxTarget", np.zeros((1, 2, 4)), np.zeros((3, 0, 5)), np.zeros((3, 2, 2)))
    assert (place.shape, mask.any(), found.tolist()) == ((3, 8), False, [[-1, -1]] * 3)
    assert (call("MultiBoxDetection", np.zeros((1, 1, 2)), np.zeros((1, 8)), np.zeros((1, 2, 4))) == -1).all()
    assert call("MultiBoxPrior", np.zeros((1, 1, 0, 3))).shape == (1, 0, 4)
    assert shapes("_contrib_MultiBoxTarget", [None, (2, 3, 5), (2, 4, 7)])[0][0] == (1, 7, 4)
    assert shapes("_contrib_MultiBoxDetection", [(2, 4, 7), None, None])[0] == [(2, 4, 7), (2, 28), (1, 7, 4)]
    known = shapes("_contrib_Proposal", [(1, 24, 5, 6), None, None])
    assert known == ([(1, 24, 5, 6), (1, 48, 5, 6), (1, 3)], [(300, 5), (300, 1)])
