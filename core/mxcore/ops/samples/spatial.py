"""Samples of the operators in :mod:`mxcore.ops.spatial`."""

from __future__ import annotations

from ...testing.sample import Sample

__all__ = ["SAMPLES"]

_AFFINE = {"transform_type": "affine", "sampler_type": "bilinear"}


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
}
