"""Samples of the operators in :mod:`mxcore.ops.patches`."""

from __future__ import annotations

from ...testing.sample import Sample

__all__ = ["SAMPLES"]

_P = {"kernel": (2, 3), "stride": (2, 1), "pad": (1, 1)}


SAMPLES = {
    "im2col": [
        Sample((2, 3, 4, 5), params=_P, dtypes="float16 float32 float64"),
        Sample((2, 2, 4, 3), params={"kernel": (2, 2)}, dtypes="int32 uint8"),
    ]
    + [
        Sample(s, params=params)
        for s, params in (
            ((1, 1, 5, 5), {"kernel": (2, 2), "dilate": (2, 2)}),
            ((1, 2, 3, 3), {"kernel": (1, 1)}),
            ((1, 2, 3, 4), {"kernel": (3, 4)}),
            ((1, 1, 2, 3), {"kernel": (2, 2), "pad": (2, 1)}),
            ((1, 1, 5, 4), {"kernel": (3, 2), "stride": (3, 3)}),
            ((1, 2, 6, 5), {"kernel": (3, 2), "stride": (2, 1), "dilate": (2, 3), "pad": (1, 2)}),
            ((2, 1, 4, 4), {"kernel": "(2, 2)", "stride": "(2, 2)"}),
            ((0, 2, 4, 3), {"kernel": (2, 2)}),
        )
    ]
    + [
        Sample((1, 2, 5), params={"kernel": (2,), "stride": (2,), "pad": (1,)}),
        Sample((1, 1, 3, 2, 3), params={"kernel": (2, 1, 2), "dilate": (2, 1, 1)}),
    ],
    "_col2im_like": [Sample((1, 4, 9), (1, 1, 4, 4), params={"kernel": (2, 2)}, mxnet="internal")],
    "col2im": [Sample((1, 4, 9), params={"output_size": (4, 4), "kernel": (2, 2)}, dtypes="float16 float32 float64")]
    + [
        Sample(s, params=params)
        for s, params in (
            ((2, 6, 15), {"output_size": (4, 5), **_P}),
            ((1, 8, 9), {"output_size": (5, 5), "kernel": (2, 2), "dilate": (2, 2)}),
            ((1, 2, 6), {"output_size": (2, 3), "kernel": (1, 1)}),
            ((1, 12, 2), {"output_size": (3, 5), "kernel": (3, 4)}),
            ((1, 6, 1), {"output_size": (5, 4), "kernel": (3, 2), "stride": (3, 3)}),
            ((1, 12, 12), {"output_size": (6, 5), "kernel": (3, 2), "stride": (2, 1), "dilate": (2, 3), "pad": (1, 2)}),
            ((1, 4, 4), {"output_size": "(4, 4)", "kernel": "(2, 2)", "stride": "(2, 2)"}),
            ((0, 4, 9), {"output_size": (4, 4), "kernel": (2, 2)}),
        )
    ]
    + [
        Sample((1, 4, 4), params={"output_size": (4, 4), "kernel": (2, 2), "stride": (2, 2)}, dtypes="int32 uint8"),
        Sample((1, 4, 3), params={"output_size": (5,), "kernel": (2,), "stride": (2,), "pad": (1,)}),
    ],
}
