"""Samples of the operators of :mod:`mxcore.ops.vision`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Distinct, Sample

__all__ = ["SAMPLES"]


_AFFINE = {"transform_type": "affine", "sampler_type": "bilinear"}

_ROIS = [
    [0, 0, 0, 3, 4],
    [1, 2, 1, 6, 5],
    [0, 4.5, 2.5, 4.5, 3.5],
    [1, 5, 5, 2, 2],
    [0, -3, -2, 2, 1],
    [1, 9, 9, 12, 12],
]


def _correlation_uses() -> list[Any]:
    rows: list[tuple[tuple[int, ...], dict[str, Any]]] = [
        ((2, 3, 4, 5), {}),
        ((1, 2, 6, 7), dict(kernel_size=3, max_displacement=2, pad_size=3)),
        ((2, 1, 8, 7), dict(kernel_size=3, max_displacement=4, stride1=2, stride2=3, pad_size=5, is_multiply=False)),
        ((1, 2, 5, 4), dict(max_displacement=0, stride1=2, is_multiply=False)),
        ((1, 4, 5, 6), dict(max_displacement=2, stride1=3, stride2=2, pad_size=2)),
        ((0, 2, 4, 5), {}),
    ]
    return [Sample(Distinct(s, -2.0, 2.0), Distinct(s, -1.9, 2.3), params=q) for s, q in rows]


_MODES = "like odd_scale size to_even_down to_even_up to_odd_down to_odd_up"


def _resize_samples() -> list[Sample]:
    uses: list[tuple[list[Any], dict[str, Any]]] = [
        ([(2, 3, 4, 5)], {"height": 7, "width": 3}),
        ([(1, 2, 3, 4)], {"height": 5, "width": 6, "align_corners": False}),
        ([(1, 2, 7, 6)], {"height": 3, "width": 2, "align_corners": False}),
        ([(1, 1, 3, 4)], {}),
        ([(1, 2, 3, 4)], {"height": 3, "width": 4}),
        ([(2, 1, 1, 1)], {"height": 2, "width": 3}),
        ([(1, 2, 4, 6)], {"scale_height": 1.5, "scale_width": 0.7}),
        ([(1, 2, 5, 4)], {"scale_height": 1.5, "scale_width": 2.5, "mode": "odd_scale"}),
        ([(2, 2, 3, 4), (1, 1, 5, 2)], {"mode": "like"}),
        ([(2, 1, 3, 4), (3, 2, 2, 7)], {"mode": "like", "align_corners": False}),
        *[([(1, 2, 5, 4)], {"mode": m}) for m in _MODES.split()[3:]],
    ]
    # MXNet keeps the ratio of lengths in single precision, also for float64: hence the tolerance.
    return [
        *(
            Sample(
                *ins, params=q, tol=10, mxnet="MXNet writes beyond a smaller batch" if ins[-1][0] < ins[0][0] else True
            )
            for ins, q in uses
        ),
        Sample((0, 2, 4, 4), params={"height": 2, "width": 2}),
        Sample((1, 2, 3, 4), params={"height": 5, "width": 3}, dtypes="float16", grad=False),
    ]


SAMPLES = {
    "GridGenerator": [
        Sample((2, 6), params={"transform_type": "affine", "target_shape": (3, 4)}),
        Sample((3, 6), params={"transform_type": "affine", "target_shape": (5, 2)}, domain=(-1.0, 1.0)),
        Sample((2, 2, 3, 5), params={"transform_type": "warp"}),
        Sample((1, 2, 2, 4), params={"transform_type": "warp", "target_shape": (7, 7)}, domain=(-5.0, 5.0)),
        Sample((0, 6), params={"transform_type": "affine", "target_shape": (3, 4)}),
    ],
    "_backward_GridGenerator": [
        Sample((2, 2, 3, 4), params={"transform_type": "affine", "target_shape": (3, 4)}, mxnet="internal"),
        Sample((2, 2, 3, 4), params={"transform_type": "warp"}, mxnet="internal"),
    ],
    "BilinearSampler": [
        Sample((2, 3, 4, 5), (2, 2, 3, 4), domain=(-0.9, 0.9)),
        Sample(
            (1, 2, 5, 4), (1, 2, 4, 6), domain=(-1.7, 1.7), params={"cudnn_off": True}, dtypes="float16 float32 float64"
        ),
        Sample((2, 1, 3, 3), (2, 2, 1, 2), domain=(-3.0, 3.0)),
        Sample((1, 2, 1, 4), (1, 2, 2, 3), domain=(-0.9, 0.9)),
        Sample((1, 1, 3, 3), [[[[-1.0, 1.0, 0.0, 3.0]], [[-1.0, 1.0, 0.0, 0.0]]]], grad=False),
        Sample((0, 2, 3, 3), (0, 2, 2, 2)),
    ],
    "_backward_BilinearSampler": [
        Sample((2, 3, 3, 4), (2, 3, 4, 5), (2, 2, 3, 4), domain=(-1.2, 1.2), grad=False, mxnet="internal")
    ],
    "SpatialTransformer": [
        Sample((2, 3, 4, 5), (2, 6), domain=(-0.6, 0.6), params={**_AFFINE, "target_shape": (3, 4)}),
        Sample(
            (1, 2, 5, 3),
            (1, 6),
            params={**_AFFINE, "target_shape": (4, 7), "cudnn_off": True},
            dtypes="float16 float32 float64",
        ),
        Sample((3, 1, 3, 7), (3, 6), domain=(-2.0, 2.0), params={**_AFFINE, "target_shape": "(5, 2)"}),
        Sample((1, 3, 2, 6), (1, 6), domain=(-0.8, 0.8), params={**_AFFINE, "target_shape": (2, 9)}),
        Sample(
            (2, 2, 4, 4),
            [[0.9, 0.1, 0.05, -0.2, -1.1, 0.3], [0.3, 0.7, -0.2, 0.4, 0.2, 0.1]],
            params={**_AFFINE, "target_shape": (3, 3)},
            grad=False,
        ),
        Sample((0, 2, 4, 4), (0, 6), params={**_AFFINE, "target_shape": (3, 3)}),
        Sample(
            (1, 1, 4, 4),
            [[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]],
            params={**_AFFINE, "target_shape": (4, 4)},
            grad=False,
            mxnet="forward only: at a place of the image, rounding decides for one of two slopes",
        ),
    ],
    "ROIPooling": [
        Sample(Distinct((2, 3, 6, 7)), _ROIS, params={"pooled_size": (2, 2), "spatial_scale": 1.0}, grad=(1, 0)),
        Sample(Distinct((2, 1, 8, 5)), _ROIS, params={"pooled_size": (4, 2), "spatial_scale": 0.5}, grad=(1, 0)),
        Sample(
            Distinct((2, 2, 5, 6)),
            [[1, 0, 0, 20, 20], [0, 8, 4, 23, 19]],
            params={"pooled_size": (1, 3), "spatial_scale": 0.25},
            grad=(1, 0),
        ),
        Sample(
            Distinct((1, 1, 4, 4)),
            [[-1, 0, 0, 3, 3]],
            params={"pooled_size": (2, 2), "spatial_scale": 1.0},
            grad=(1, 0),
        ),
        Sample(
            Distinct((1, 1, 4, 4)),
            np.zeros((0, 5), np.float32),
            params={"pooled_size": (2, 2), "spatial_scale": 1.0},
            dtypes="float32",
            grad=False,
        ),
    ],
    "_backward_ROIPooling": [
        Sample(
            (2, 2, 2, 2),
            (3, 2, 4, 4),
            np.array([[[[1, 2], [-1, 15]]] * 2] * 2),
            [[2, 0, 0, 1, 1], [0, 0, 0, 1, 1]],
            grad=False,
            mxnet="internal",
        )
    ],
    "Correlation": _correlation_uses(),
    "_backward_Correlation": [
        Sample((1, 9, 4, 5), (1, 2, 4, 5), (1, 2, 4, 5), params={"pad_size": 1}, grad=False, mxnet="internal")
    ],
    "_contrib_AdaptiveAvgPooling2D": [
        Sample((2, 3, 5, 7), params={"output_size": (2, 3)}),
        Sample((1, 2, 4, 4)),
        Sample((2, 1, 6, 5), params={"output_size": (4,)}, dtypes="float16 float32 float64"),
        Sample((1, 2, 3, 2), params={"output_size": (5, 3)}),
        Sample((1, 1, 4, 6), params={"output_size": 2}),
        Sample((0, 2, 4, 4), params={"output_size": (2, 2)}),
    ],
    "_backward_AdaptiveAvgPooling2D": [Sample((2, 1, 2, 3), (2, 1, 5, 4), mxnet="internal")],
    "_forward_AdaptiveAvgPooling2D": [Sample((2, 1, 5, 4), (2, 1, 2, 3), mxnet="internal")],
    "_contrib_BilinearResize2D": _resize_samples(),
    "_backward_BilinearResize2D": [
        Sample((2, 1, 3, 4), (2, 1, 5, 2), mxnet="internal"),
        Sample((1, 2, 3, 4), (1, 2, 2, 5), params={"align_corners": False}, mxnet="internal"),
    ],
    "UpSampling": [
        Sample((1, 2, 3, 4), params={"scale": 2, "sample_type": "nearest", "num_args": 1}),
        Sample((1, 2, 2, 3), (1, 1, 4, 6), params={"scale": 4, "sample_type": "nearest", "num_args": 2}),
        Sample(
            (1, 2, 2, 3),
            (1, 2, 4, 6),
            params={"scale": 2, "sample_type": "nearest", "num_args": 2, "multi_input_mode": "sum"},
        ),
        Sample(
            (1, 2, 3, 4), (2, 1, 4, 4), params={"scale": 2, "sample_type": "bilinear", "num_filter": 2, "num_args": 2}
        ),
        Sample((2, 1, 2, 3), params={"scale": "3", "sample_type": "nearest", "num_args": "1", "workspace": 128}),
        Sample((1, 2, 2, 1), params={"scale": 1, "sample_type": "nearest", "num_args": 1}),
        Sample((1, 1, 2, 2), (1, 2, 4, 4), (1, 3, 8, 8), params={"scale": 4, "sample_type": "nearest", "num_args": 3}),
        Sample(
            (1, 2, 2, 2),
            (1, 2, 1, 1),
            (1, 2, 4, 4),
            params={"scale": 2, "sample_type": "nearest", "num_args": 3, "multi_input_mode": "sum"},
        ),
        Sample(
            (1, 1, 2, 3), (1, 1, 5, 5), params={"scale": 3, "sample_type": "bilinear", "num_filter": 1, "num_args": 2}
        ),
        Sample(
            (1, 2, 2, 2), (2, 1, 1, 1), params={"scale": 1, "sample_type": "bilinear", "num_filter": "2", "num_args": 2}
        ),
        Sample(
            (1, 1, 2, 2), (1, 1, 8, 8), params={"scale": 4, "sample_type": "bilinear", "num_filter": 1, "num_args": 2}
        ),
        Sample(
            (1, 2, 2, 3), params={"scale": 2, "sample_type": "nearest", "num_args": 1}, dtypes="float16", grad=False
        ),
        Sample((0, 2, 2, 3), params={"scale": 2, "sample_type": "nearest", "num_args": 1}),
    ],
    "_backward_UpSampling": [
        Sample((1, 3, 4, 6), (1, 2, 2, 3), (1, 1, 4, 6), params={"scale": 2, "num_args": 2}, mxnet="internal"),
        Sample(
            (1, 2, 4, 6),
            (1, 2, 2, 3),
            (1, 2, 4, 6),
            params={"scale": 2, "num_args": 2, "multi_input_mode": "sum"},
            mxnet="internal",
        ),
    ],
}
