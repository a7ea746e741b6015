"""Samples of the operators of :mod:`mxcore.ops.detection`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Sample

__all__ = ["SAMPLES"]

_ALL = "float16 float32 float64"


def _boxes(n: int, seed: int, batch: tuple[int, ...] = (), side: float = 1.0) -> np.ndarray[Any, Any]:
    """Boxes by corners, on [0, side]."""
    rs = np.random.RandomState(seed)
    corner, size = rs.uniform(0, 0.6, (*batch, n, 2)), rs.uniform(0.1, 0.4, (*batch, n, 2))
    return np.concatenate([corner, corner + size], -1) * side


def _detections(n: int, seed: int, batch: tuple[int, ...] = (), classes: int = 3) -> np.ndarray[Any, Any]:
    """Rows of class, score, box; no two scores are alike."""
    rs = np.random.RandomState(seed)
    score = rs.permutation(np.linspace(-0.2, 0.9, n * int(np.prod(batch)))).reshape(*batch, n, 1)
    return np.concatenate([rs.randint(-1, classes, (*batch, n, 1)), score, _boxes(n, seed + 1, batch)], -1)


_TIES = [
    [0, 0.9, 0.1, 0.1, 0.4, 0.4],
    [1, 0.8, 0.1, 0.1, 0.4, 0.4],
    [0, 0.9, 0.12, 0.1, 0.4, 0.4],
    [1, 0.8, 0.5, 0.5, 0.9, 0.9],
    [0, 0.0, 0.0, 0.0, 1.0, 1.0],
    [0, 0.8, 0.6, 0.5, 0.9, 0.9],
]
_LABELS = [
    [[0, 0.1, 0.1, 0.4, 0.4], [1, 0.5, 0.5, 0.9, 0.9], [-1, -1, -1, -1, -1]],
    [[2, 0.2, 0.0, 0.9, 0.6], [-1, 0.5, 0.5, 0.9, 0.9], [1, 0.1, 0.1, 0.3, 0.3]],
]
#: Well-formed, as MXNet wants it: nothing behind a class of -1; two boxes that overlap alike with anchors.
_TARGETS = [
    [[0, 0.1, 0.1, 0.4, 0.4], [1, 0.5, 0.5, 0.9, 0.9], [2, 0.1, 0.1, 0.4, 0.4]],
    [[2, 0.2, 0.0, 0.9, 0.6], [-1, -1, -1, -1, -1], [-1, -1, -1, -1, -1]],
]
_NO_BOX = [[[-1.0] * 5], [[-1.0] * 5]]
_WIDER = "forward only: MXNet's operator is there for float32 only"


def _even() -> tuple[Any, Any]:
    """Anchors on even places, each beside its equals, and labels that overlap with several of them alike.

    Boxes lie between two anchors, or on one, or on one another; the labels are wider than what is looked at.
    """
    at = np.stack(np.meshgrid([0.0, 0.25, 0.5], [0.0, 0.25, 0.5]), -1).reshape(-1, 2)
    anchors = np.concatenate([np.concatenate([at, at + side], 1) for side in (0.5, 0.25, 0.5)])
    boxes = [[0.125, 0, 0.625, 0.5], [0.25, 0.25, 0.75, 0.75], [0.25, 0.25, 0.75, 0.75], [0, 0.375, 0.25, 0.625]]
    labels = np.full((3, 5, 7), -1.0)
    for i, kinds in enumerate(([2, 0, 1, 0], [1], [0, 2, 2])):
        labels[i, : len(kinds), 0], labels[i, : len(kinds), 1:5] = kinds, boxes[: len(kinds)]
    return anchors[None], labels


def _target_samples() -> list[Any]:
    anchors, uses = _boxes(12, 3, (1,)), []
    mined = {"negative_mining_ratio": 3.0, "negative_mining_thresh": 0.5}
    for boxes, labels, params in (
        (anchors, _TARGETS, {}),
        (anchors, _TARGETS, {"negative_mining_ratio": 1.5, "negative_mining_thresh": 0.4, "ignore_label": -7}),
        (
            anchors,
            _TARGETS,
            {"overlap_threshold": 0.2, "variances": (1.0, 0.5, 0.3, 2.0), "minimum_negative_samples": 2},
        ),
        (anchors, _TARGETS, {"overlap_threshold": -1}),
        (anchors, _NO_BOX, mined),
        (*_even(), {"overlap_threshold": 0.3}),
        (*_even(), {**mined, "minimum_negative_samples": 9, "overlap_threshold": 0.6}),
    ):
        n, count = len(labels), boxes.shape[1]
        uses.append(Sample(boxes, labels, (n, 4, count), params=params, dtypes="float32", grad=False))
    uses += [
        Sample(anchors, _LABELS, (2, 4, 12), dtypes=_ALL, grad=False, mxnet="it refuses boxes behind the end"),
        Sample(anchors, np.zeros((2, 0, 5)), (2, 4, 12), dtypes="float32", grad=False, mxnet="without labels it fails"),
    ]
    return uses


def _detection_samples() -> list[Any]:
    anchors = _boxes(14, 5, (1,))
    return [
        Sample((2, 4, 14), (2, 56), anchors, domain=(0.0, 1.0), params=p, dtypes="float32", grad=False)
        for p in (
            {},
            {"nms_threshold": 0.1, "force_suppress": True, "clip": False},
            {"threshold": 0.7, "nms_topk": 3, "nms_threshold": 0.3},
            {"nms_threshold": 0.0, "variances": (0.5, 0.4, 0.3, 0.2)},
            {"threshold": 2.0},
        )
    ] + [Sample((1, 3, 14), (1, 56), anchors, domain=(0.0, 1.0), dtypes="float16 float64", grad=False, mxnet=_WIDER)]


def _nms_samples() -> list[Any]:
    rows = [
        # Classes are whole numbers: next to them there is nothing to compare a gradient with.
        Sample(_detections(9, 1, (2,)), params=p, grad="id_index" not in p)
        for p in (
            {"topk": 7},
            {"id_index": 0, "overlap_thresh": 0.3, "topk": 6},
            {"id_index": 0, "background_id": 1, "force_suppress": True, "valid_thresh": 0.2, "overlap_thresh": 0.1},
            {"topk": 0},
        )
    ]
    rows += [
        Sample(_detections(8, 2, (1, 2)), params={"id_index": 0, "overlap_thresh": 0.2, **p}, grad=False)
        for p in ({"in_format": "center"}, {"in_format": "center", "out_format": "center"}, {"out_format": "center"})
    ]
    rows.append(Sample(_TIES, params={"overlap_thresh": 0.8}, grad=False))
    rows.append(
        Sample(_detections(7, 4)[:, 1:], params={"coord_start": 1, "score_index": 0}, dtypes="float16", grad=False)
    )
    rows.append(Sample((2, 0, 6), grad=False, mxnet="without boxes it fails"))
    return rows


_PROPOSED: list[dict[str, Any]] = [
    {"rpn_post_nms_top_n": 6, "output_score": True, "scales": (1, 2), "ratios": (0.5, 1, 2)},
    {"rpn_post_nms_top_n": 30, "rpn_pre_nms_top_n": 20, "threshold": 0.3, "scales": (2, 4, 1), "ratios": (1, 3)},
    {
        "rpn_post_nms_top_n": 9,
        "output_score": True,
        "iou_loss": True,
        "feature_stride": 8,
        "rpn_min_size": 20,
        "scales": (2.5, 4, 8),
        "ratios": (0.7, 1.4),
    },
]


def _proposal_samples(n: int) -> list[Any]:
    info = np.array([[40.0, 60.0, 1.0], [64.0, 37.0, 0.5]][:n])
    return [
        Sample(
            np.random.RandomState(i).permutation(np.linspace(0.01, 0.99, n * 240)).reshape(n, 12, 4, 5),
            np.random.RandomState(9).randn(n, 24, 4, 5) * (3.0 if p.get("iou_loss") else 0.2),
            # At most as large as the feature map.
            info * [*[p.get("feature_stride", 16) / 16] * 2, 1.0],
            params=p,
            dtypes="float32",
            grad=False,
            tol=4.0,  # differences of numbers that are some 30 times as large
        )
        for i, p in enumerate(_PROPOSED)
    ]


_REGIONS = [[0, 0.3, 0.2, 3.1, 4.2], [1, 2.1, 0.7, 6.3, 5.4], [1, 4.5, 2.5, 4.6, 2.7], [0, -3.2, -2.1, 2.2, 9.3]]
_ELSEWHERE = [[0, 1.3, 0.2, 3.1, 4.2], [-1, 0.3, 0.2, 3.1, 4.2], [2, 0.3, 0.2, 3.1, 4.2], [1, 20.0, 20.0, 30.0, 30.0]]
_BEYOND = "MXNet reads beyond its memory for images that there are not"


def _align_samples() -> list[Any]:
    return [
        Sample((2, c, 6, 7), _REGIONS, params={"pooled_size": size, "spatial_scale": scale, **p}, grad=(1, 0), dtypes=t)
        for c, size, scale, p, t in (
            (3, (2, 3), 1.0, {}, "float32 float64"),
            (2, (3, 2), 0.7, {"sample_ratio": 2}, _ALL),
            (2, (1, 1), 0.75, {"aligned": True}, "float32 float64"),
            (8, (2, 2), 1.0, {"position_sensitive": True, "sample_ratio": 3, "aligned": True}, "float32 float64"),
        )
    ] + [
        Sample(
            (2, 1, 6, 7), _ELSEWHERE, params={"pooled_size": (2, 2), "spatial_scale": 1.0}, grad=(1, 0), mxnet=_BEYOND
        ),
        Sample(
            (1, 2, 4, 4),
            np.zeros((0, 5)),
            params={"pooled_size": (2, 2), "spatial_scale": 1.0},
            grad=False,
            mxnet="without regions it fails",
        ),
    ]


_ROTATED = [[0, 3.1, 2.2, 4.3, 2.1, 30.0], [1, 2.4, 3.3, 5.2, 0.4, -70.0], [1, 6.0, 6.0, 8.0, 5.0, 135.0]]
_GROUPED: dict[str, Any] = {"spatial_scale": 0.5, "output_dim": 2, "pooled_size": 2}
_PIXELS = [[0, 0, 1, 6, 9], [1, 3, 2, 11, 8], [1, 5, 5, 5, 5], [0, -4, -4, 3, 3]]
_PLACES = [*_PIXELS[:3], [0, -6, -3, 4, 6]]
_MOVED: dict[str, Any] = {
    "spatial_scale": 0.5,
    "output_dim": 2,
    "group_size": 2,
    "pooled_size": 3,
    "part_size": 2,
    "sample_per_part": 2,
    "trans_std": 0.1,
}

SAMPLES = {
    "_contrib_box_iou": [
        Sample(_boxes(3, 1), _boxes(4, 2), grad=False, dtypes=_ALL),
        Sample(_boxes(2, 3, (2,)), _boxes(3, 4), params={"format": "center"}, grad=False),
        Sample([[0.2, 0.2, 0.2, 0.2], [1, 1, 0, 0]], [[0, 0, 1, 1], [0.2, 0.2, 0.2, 0.2], [1, 1, 0, 0]], grad=False),
    ],
    "_contrib_box_encode": [
        Sample(
            [[1, 0, -1, 1], [0.6, 1, 1, 0.4]],
            [[0, 1, 2, 2], [1, 1, 0, 0]],
            _boxes(4, 1, (2,)),
            _boxes(3, 2, (2,)),
            [0.0, 0.1, 0.2, 0.0],
            [0.1, 0.1, 0.2, 0.3],
            grad=False,
        ),
        Sample(
            [[1, 1]],
            [[7, -1]],
            _boxes(2, 1, (1,)),
            _boxes(3, 2, (1,)),
            np.zeros(4),
            np.ones(4),
            grad=False,
            mxnet="MXNet reads beyond its memory for boxes that there are not",
        ),
    ],
    "_contrib_box_decode": [
        Sample((2, 3, 4), _boxes(3, 1, (1,)), grad=False),
        Sample(
            (1, 3, 4),
            _boxes(3, 2, (1,)),
            params={"std0": 0.1, "std1": 0.2, "std2": 0.3, "std3": 0.4, "clip": 0.2, "format": "corner"},
            grad=False,
        ),
    ],
    "_contrib_box_nms": _nms_samples(),
    "_backward_box_nms": [Sample((2, 3, 4), np.array([[2, 0, -1], [1, -1, -1]]), mxnet="internal")],
    "_forward_box_nms": [Sample((2, 3, 4), np.array([[2, 0, -1], [1, -1, -1]]), mxnet="internal")],
    "_contrib_bipartite_matching": [
        Sample(np.random.RandomState(1).rand(2, 4, 5), params={"threshold": 0.3}, grad=False),
        Sample(np.random.RandomState(2).rand(6, 3), params={"threshold": 0.6, "is_ascend": True}, grad=False),
        Sample(np.random.RandomState(3).rand(5, 6), params={"threshold": 1e-12, "topk": 2}, grad=False),
        Sample([[0.5, 0.5, 0.25], [0.5, 0.75, 0.75]], params={"threshold": 0.1}, grad=False, dtypes=_ALL),
    ],
    "_contrib_MultiBoxPrior": [
        Sample((2, 3, 2, 3), params={"sizes": (0.5, 0.25, 0.9), "ratios": (1, 2, 0.5)}, dtypes="float32", grad=False),
        Sample((1, 1, 3, 1), params={"sizes": "(1.5,)", "ratios": "[2, 3]", "clip": 1}, dtypes="float32", grad=False),
        Sample(
            (1, 2, 2, 2),
            params={"sizes": (0.4,), "steps": (0.3, 0.2), "offsets": (0.1, 0.9)},
            dtypes="float32",
            grad=False,
        ),
        Sample((1, 2, 2, 2), dtypes="float16 float64", grad=False, mxnet=_WIDER),
        Sample((1, 2, 0, 2), dtypes="float32", grad=False, mxnet="without places it fails"),
    ],
    "_contrib_MultiBoxTarget": _target_samples(),
    "_contrib_MultiBoxDetection": _detection_samples(),
    "_contrib_Proposal": _proposal_samples(1),
    "_contrib_MultiProposal": _proposal_samples(2),
    "_contrib_ROIAlign": _align_samples(),
    "_backward_ROIAlign": [
        Sample(
            (4, 2, 2, 3),
            (2, 2, 6, 7),
            _REGIONS,
            params={"pooled_size": (2, 3), "spatial_scale": 1.0},
            grad=(1, 0, 0),
            mxnet="internal",
        )
    ],
    "_contrib_RROIAlign": [
        Sample(
            (2, 2, 6, 7),
            _ROTATED,
            params={"pooled_size": (2, 3), "spatial_scale": 1.0},
            grad=(1, 0),
            mxnet="forward only: it has no gradient",
        ),
        Sample(
            (2, 1, 6, 7),
            _ROTATED,
            params={"pooled_size": (3, 1), "spatial_scale": 0.6, "sampling_ratio": 2},
            grad=(1, 0),
            mxnet="forward only: it has no gradient",
        ),
    ],
    "_backward_RROIAlign": [
        Sample(
            (3, 2, 2, 3),
            (2, 2, 6, 7),
            _ROTATED,
            params={"pooled_size": (2, 3), "spatial_scale": 1.0},
            grad=(1, 0, 0),
            mxnet="internal",
        )
    ],
    "_contrib_PSROIPooling": [
        Sample((2, 8, 6, 7), _PIXELS, params=_GROUPED, grad=(1, 0), dtypes=_ALL),
        Sample((2, 18, 5, 6), _PIXELS, params={**_GROUPED, "group_size": 3, "pooled_size": 5}, grad=(1, 0)),
        Sample((2, 8, 6, 7), _ELSEWHERE, params=_GROUPED, grad=(1, 0), mxnet=_BEYOND),
    ],
    "_backward_PSROIPooling": [
        Sample((4, 2, 2, 2), (2, 8, 6, 7), _PIXELS, params=_GROUPED, grad=(1, 0, 0), mxnet="internal")
    ],
    "_contrib_DeformablePSROIPooling": [
        Sample((2, 8, 6, 7), _PIXELS[:2], (2, 4, 2, 2), params=_MOVED, grad=(1, 0, 1)),
        Sample((2, 8, 6, 7), _PLACES, (4, 2, 2, 2), params={**_MOVED, "trans_std": 0.5}, grad=(1, 0, 0), dtypes=_ALL),
        Sample((2, 8, 6, 7), _PLACES, params={**_MOVED, "part_size": 0, "no_trans": True}, grad=(1, 0)),
        Sample((2, 8, 6, 7), _ELSEWHERE, (4, 4, 2, 2), params=_MOVED, grad=False, mxnet=_BEYOND),
    ],
    "_backward_DeformablePSROIPooling": [
        Sample((2, 2, 3, 3), (2, 8, 6, 7), _PIXELS[:2], (2, 4, 2, 2), params=_MOVED, grad=False, mxnet="internal")
    ],
}
