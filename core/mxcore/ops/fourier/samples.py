"""Samples of the operators of :mod:`mxcore.ops.fourier`."""

from __future__ import annotations

from ...testing.sample import Ints, Sample

__all__ = ["SAMPLES"]


_GPU = "on the GPU only"


SAMPLES = {
    "_contrib_fft": [
        Sample((2, 4), mxnet=_GPU),
        Sample((3, 7), params={"compute_size": 2}, mxnet=_GPU),
        Sample((2, 1, 3, 5), mxnet=_GPU),
    ],
    "_contrib_ifft": [
        Sample((2, 8), mxnet=_GPU),
        Sample((3, 14), params={"compute_size": 2}, mxnet=_GPU),
        Sample((2, 1, 3, 10), mxnet=_GPU),
    ],
    "_contrib_count_sketch": [
        Sample((2, 3), [[0, 3, 4]], [[1, -1, 1]], params={"out_dim": 5}, grad=(True, False, False), mxnet=_GPU),
        Sample(
            (3, 6),
            Ints((6,), 0, 4),
            [1, -1, -1, 1, 1, -1],
            params={"out_dim": 4, "processing_batch_size": 2},
            grad=(True, False, False),
            mxnet=_GPU,
        ),
    ],
    "_backward_count_sketch": [
        Sample((2, 5), [[0, 3, 4]], [[1, -1, 1]], params={"out_dim": 5}, grad=(True, False, False), mxnet="internal")
    ],
    **{
        f"_npi_{name}": [
            Sample(params=q, grad=False)
            for q in ({"M": 6}, {"M": "5", "dtype": "float64"}, {"M": 1, "dtype": "float16"}, {"M": 0}, {"M": -2})
        ]
        for name in ("blackman", "hamming", "hanning")
    },
}
