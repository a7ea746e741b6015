"""Samples of the operators of :mod:`mxcore.ops.legacy`."""

from __future__ import annotations

from typing import Any

from ...testing.sample import Distinct, Sample
from ..normalization.samples import plain_gradients, plain_samples

__all__ = ["SAMPLES"]


def _pool_samples() -> list[Any]:
    rows: list[tuple[tuple[int, ...], dict[str, Any], Any]] = [
        ((2, 3, 5, 6), dict(kernel=(3, 2), stride=(2, 2)), True),
        ((2, 2, 5, 6), dict(kernel=(3, 3), stride=(2, 2), pad=(1, 1)), True),
        ((2, 2, 5, 6), dict(kernel=(3, 2), stride=(2, 3), pooling_convention="full"), True),
        ((2, 2, 5, 6), dict(kernel=(2, 3), pool_type="avg", pad=(1, 1), stride=(2, 1)), True),
        (
            (2, 2, 4, 6),
            dict(kernel=(3, 3), pool_type="avg", pad=(1, 1), stride=(2, 2), pooling_convention="full"),
            True,
        ),
        ((1, 2, 4, 6), dict(kernel=(2, 2), pool_type="sum", stride=(3, 2), pooling_convention="full"), True),
        ((2, 3, 4, 4), dict(global_pool=True, pool_type="avg", kernel=(2, 2), pad=(1, 1)), True),
        ((2, 3, 4, 4), dict(global_pool=True), True),
        ((1, 2, 4, 3, 5), dict(kernel=(2, 2, 2), pool_type="avg"), "MXNet has no 3-dimensional one"),
        ((1, 2, 4, 3, 5), dict(kernel=(2, 2, 3), stride=(2, 1, 2), pad=(1, 0, 1)), "MXNet has no 3-dimensional one"),
        ((0, 2, 4, 4), dict(kernel=(2, 2)), True),
    ]
    # A window of `full` may lie beyond the data: its maximum is minus infinity, which has no difference quotient.
    return [
        Sample(Distinct(shape, -3.0, 3.0), params=q, mxnet=why, grad=q.get("stride") != (2, 3))
        for shape, q, why in rows
    ]


SAMPLES = {
    "Convolution_v1": [
        Sample(
            (2, 4, 5, 6),
            (6, 2, 3, 2),
            (6,),
            params=dict(kernel=(3, 2), stride=(2, 1), pad=(1, 1), num_filter=6, num_group=2),
        ),
        Sample((2, 2, 7, 5), (3, 2, 3, 3), params=dict(kernel=(3, 3), dilate=(2, 1), num_filter=3, no_bias=True)),
        Sample(
            (1, 3, 4, 4),
            (2, 3, 1, 1),
            (2,),
            params=dict(kernel=(1, 1), num_filter=2, workspace=256, cudnn_off=True, layout="NCHW"),
        ),
        Sample(
            (1, 2, 3, 4, 3),
            (2, 2, 2, 3, 1),
            (2,),
            params=dict(kernel=(2, 3, 1), pad=(0, 1, 0), num_filter=2),
            mxnet="MXNet runs it on the GPU only",
        ),
        Sample(
            (2, 5, 4, 3),
            (2, 3, 2, 3),
            (2,),
            params=dict(kernel=(3, 2), num_filter=2, layout="NHWC"),
            mxnet="MXNet runs it on the GPU only",
        ),
    ],
    "Pooling_v1": _pool_samples(),
    "_backward_Pooling_v1": [
        Sample(
            (2, 2, 2, 3),
            Distinct((2, 2, 4, 6)),
            (2, 2, 2, 3),
            params=dict(kernel=(2, 2), stride=(2, 2), pool_type="avg"),
            grad=False,
            mxnet="internal",
        )
    ],
    "BatchNorm_v1": plain_samples(),
    "_backward_BatchNorm_v1": plain_gradients(),
}
