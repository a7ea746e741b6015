"""Samples of the operators in :mod:`mxcore.ops.upsample`."""

from __future__ import annotations

from ...testing.sample import Sample

__all__ = ["SAMPLES"]


SAMPLES = {
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
