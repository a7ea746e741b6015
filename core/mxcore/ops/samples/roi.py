"""Samples of the operators in :mod:`mxcore.ops.roi`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Distinct, Sample

__all__ = ["SAMPLES"]

_ROIS = [
    [0, 0, 0, 3, 4],
    [1, 2, 1, 6, 5],
    [0, 4.5, 2.5, 4.5, 3.5],
    [1, 5, 5, 2, 2],
    [0, -3, -2, 2, 1],
    [1, 9, 9, 12, 12],
]


SAMPLES = {
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
}
