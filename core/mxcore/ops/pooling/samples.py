"""Samples of the operators of :mod:`mxcore.ops.pooling`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Distinct, Sample

__all__ = ["SAMPLES"]


def _samples() -> list[Sample]:
    d, n = Distinct, None
    rows: list[tuple[tuple[int, ...], dict[str, Any], Any]] = [
        ((2, 3, 7), dict(kernel=(3,), stride=(2,)), n),
        ((2, 2, 5, 6), dict(kernel=(3, 2), stride=(2, 2), pad=(1, 1), pooling_convention="full"), n),
        ((2, 2, 5, 6), dict(kernel=(2, 3), pool_type="avg", pad=(1, 1), stride=(2, 1)), n),
        (
            (2, 2, 5, 6),
            dict(
                kernel=(2, 3),
                pool_type="avg",
                pad=(1, 1),
                stride=(2, 2),
                count_include_pad=False,
                pooling_convention="full",
            ),
            n,
        ),
        ((1, 2, 4, 3, 5), dict(kernel=(2, 2, 2), pool_type="sum"), n),
        ((2, 3, 4, 4), dict(global_pool=True, pool_type="avg"), n),
        ((2, 3, 4, 4), dict(global_pool=True), n),
        ((2, 2, 5), dict(kernel=(2,), pool_type="lp", p_value=2, stride=(2,)), n),
        ((2, 5, 4, 3), dict(kernel=(2, 2), layout="NHWC"), n),
        ((0, 2, 4, 4), dict(kernel=(2, 2)), n),
        # every kind in every number of dimensions, with padding, overlap and rests
        ((1, 2, 7), dict(kernel="(3,)", stride="(2,)", pad="[1]", pool_type="avg", layout="NCW"), n),
        ((1, 2, 7), dict(kernel=3, stride=2, pad=1, pool_type="max", pooling_convention="full", cudnn_off=True), n),
        ((1, 2, 8), dict(kernel=(3,), stride=(3,), pad=(1,), pool_type="avg", pooling_convention="full"), n),
        ((1, 2, 8), dict(kernel=(3,), stride=(3,), pool_type="sum", pooling_convention="full"), n),
        ((1, 2, 6), dict(kernel=(4,), stride=(1,), pad=(2,), pool_type="avg", count_include_pad=False), n),
        ((2, 1, 5), dict(kernel=(2,), stride=(3,)), n),
        ((2, 2, 5, 4), dict(kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max", layout="NCHW"), n),
        ((1, 2, 5, 6), dict(kernel=(3, 2), stride=(2, 2), pad=(1, 1), pool_type="sum"), n),
        (
            (1, 2, 6, 5),
            dict(kernel=(3, 3), stride=(2, 2), pool_type="avg", pooling_convention="full", count_include_pad=True),
            n,
        ),
        ((1, 2, 5, 5), dict(kernel=(2, 2), stride=(2, 2), pool_type="sum", pooling_convention="full"), n),
        ((1, 2, 4, 5), dict(kernel=(2, 2), stride=(1, 2), pool_type="lp", p_value=1), n),
        ((1, 2, 4, 5), dict(kernel=(3, 2), stride=(1, 2), pad=(1, 1), pool_type="lp", p_value="2"), n),
        ((1, 2, 4, 5), dict(kernel=(2, 2), stride=(2, 2), pool_type="lp", p_value=3, pooling_convention="full"), n),
        ((1, 1, 3, 4), dict(kernel=(3, 4), pool_type="avg"), n),
        ((1, 2, 4, 3, 5), dict(kernel=(2, 3, 2), stride=(2, 1, 2), pad=(1, 1, 0), pool_type="max", layout="NCDHW"), n),
        (
            (1, 2, 4, 3, 5),
            dict(kernel=(2, 3, 2), stride=(2, 1, 2), pad=(1, 1, 0), pool_type="avg", pooling_convention="full"),
            n,
        ),
        (
            (1, 2, 4, 3, 5),
            dict(kernel=(2, 2, 2), stride=(2, 2, 2), pad=(1, 0, 1), pool_type="avg", count_include_pad=False),
            n,
        ),
        ((1, 1, 3, 4, 3), dict(kernel=(2, 2, 2), stride=(1, 2, 1), pool_type="lp", p_value=2), n),
        ((1, 1, 3, 4, 3), dict(kernel=(2, 3, 2), stride=(2, 2, 2), pool_type="max", pooling_convention="full"), n),
        # over everything: kernel, stride and pad do not count
        *(
            ((1, 2, *s), dict(global_pool=True, pool_type=t, **more), n)
            for s, t, more in (
                ((5,), "max", {}),
                ((5,), "avg", {"kernel": (2,), "stride": (2,), "pad": (1,)}),
                ((3, 4), "sum", {"kernel": (2, 2), "pad": (1, 1)}),
                ((3, 4), "lp", {"p_value": 2}),
                ((2, 3, 2), "avg", {"pooling_convention": "full"}),
                ((2, 3, 2), "max", {"layout": "NCDHW"}),
            )
        ),
        # windows as many as strides
        *(
            (
                s,
                dict(kernel=k, stride=(2,) * len(k), pooling_convention="same", pool_type=t),
                "MXNet refuses convention same",
            )
            for s, k, t in (((1, 2, 5), (2,), "max"), ((1, 2, 5), (3,), "avg"), ((1, 2, 5, 4), (2, 3), "sum"))
        ),
        # channels last
        ((2, 5, 2), dict(kernel=(2,), stride=(2,), pool_type="avg", layout="NWC"), n),
        (
            (1, 4, 5, 2),
            dict(kernel=(3, 2), stride=(2, 2), pad=(1, 0), pool_type="avg", layout="NHWC", count_include_pad=False),
            n,
        ),
        ((1, 3, 4, 3, 2), dict(kernel=(2, 2, 2), pool_type="sum", layout="NDHWC"), n),
        ((1, 3, 4, 2), dict(global_pool=True, pool_type="avg", layout="NHWC"), n),
    ]
    return [Sample(d(shape, 0.1, 3.0), params=q, mxnet=why or True) for shape, q, why in rows] + [
        # Maxima below the padding.
        Sample(d((1, 2, 4, 5), -3.0, -0.1), params=dict(kernel=(2, 2), pad=(1, 1), stride=(2, 2))),
        *(Sample(d((1, 2, 5), -3.0, 3.0), params=dict(kernel=(3,), pool_type="lp", p_value=q)) for q in (1, 2, 3)),
        # Ties: the first takes all.
        Sample([[[1.0, 1.0, 2.0, 2.0, 2.0, 0.0]]], params=dict(kernel=(3,), stride=(1,)), grad=False),
        Sample([[[1.0, np.nan, 2.0, -np.inf, np.inf, 0.0]]], params=dict(kernel=(2,), stride=(2,)), grad=False),
        # oneDNN, which computes in float32, divides by the kernel in backward
        Sample(
            d((1, 2, 8), 0.1, 3.0),
            params=dict(kernel=(3,), stride=(3,), pool_type="avg", pooling_convention="full"),
            dtypes="float64",
        ),
        *(
            Sample(
                d((1, 2, 4, 4), 0.1, 3.0),
                params=dict(kernel=(2, 2), stride=(2, 2), pool_type=t),
                dtypes="float16",
                grad=False,
            )
            for t in ("max", "avg")
        ),
    ]


SAMPLES = {
    "Pooling": _samples(),
    "_backward_Pooling": [
        Sample(
            (2, 2, 3),
            Distinct((2, 2, 5)),
            (2, 2, 3),
            params=dict(kernel=(3,), pool_type="avg"),
            grad=False,
            mxnet="internal",
        )
    ],
    "_max_pooling_at": [
        Sample((2, 2, 3, 4), (2, 2, 3, 4), (2, 2, 2, 3), params=dict(kernel=(2, 2)), grad=False, mxnet="internal")
    ],
}
