"""Samples of the operators of :mod:`mxcore.ops.attention`."""

from __future__ import annotations

from ...testing.sample import Sample

__all__ = ["SAMPLES"]


SAMPLES = {
    "_contrib_div_sqrt_dim": [
        Sample((2, 3), dtypes="float16 float32 float64"),
        Sample((5,)),
        Sample((2, 1)),
        Sample((1, 2, 4)),
        Sample((0, 3)),
    ],
    "_attention_scores": [
        Sample((3, 2, 8), (4, 2, 24), params={"heads": 2, "b_slot": (1, 3)}, mxnet="internal"),
        Sample(
            (3, 2, 6),
            (4, 2, 6),
            params={"heads": 1, "a_slot": (1, 2), "b_slot": (0, 2), "scaled": False},
            mxnet="internal",
        ),
    ],
    "_attention_sum": [
        Sample((4, 3, 5), (5, 2, 24), params={"heads": 2, "slot": (2, 3)}, mxnet="internal"),
        Sample(
            (4, 5, 3),
            (5, 2, 6),
            params={"heads": 2, "out_slot": (1, 2), "transpose": True, "scaled": True},
            mxnet="internal",
        ),
    ],
    "_contrib_interleaved_matmul_selfatt_qk": [
        Sample((3, 2, 24), params={"heads": 2}, dtypes="float32"),
        Sample((5, 1, 9), params={"heads": 3}, dtypes="float32"),
        Sample((1, 3, 30), params={"heads": 1}, dtypes="float32"),
        Sample((3, 2, 24), params={"heads": 2}),
        Sample((0, 2, 6), params={"heads": 1}),
        Sample((7, 3, 36), params={"heads": "4"}, dtypes="float32", domain=(-9, 9)),
        Sample((2, 1, 3), params={"heads": 1}, dtypes="float32"),
        Sample((3, 0, 12), params={"heads": 2}, dtypes="float32"),
    ],
    "_backward_interleaved_matmul_selfatt_qk": [Sample((4, 3, 3), (3, 2, 24), params={"heads": 2}, mxnet="internal")],
    "_contrib_interleaved_matmul_selfatt_valatt": [
        Sample((3, 2, 24), (4, 3, 3), params={"heads": 2}, dtypes="float32"),
        Sample((4, 1, 9), (3, 4, 4), params={"heads": 3}, dtypes="float32"),
        Sample((3, 2, 24), (4, 3, 3), params={"heads": 2}),
        Sample((7, 3, 36), (12, 7, 7), params={"heads": "4"}, dtypes="float32", domain=(-9, 9)),
        Sample((1, 1, 3), (1, 1, 1), params={"heads": 1}, dtypes="float32"),
        Sample((3, 0, 12), (0, 3, 3), params={"heads": 2}, dtypes="float32"),
    ],
    "_contrib_interleaved_matmul_encdec_qk": [
        Sample((5, 2, 8), (3, 2, 16), params={"heads": 2}, dtypes="float32"),
        Sample((1, 3, 5), (4, 3, 10), params={"heads": 1}, dtypes="float32"),
        Sample((5, 2, 8), (3, 2, 16), params={"heads": 2}),
        Sample((2, 3, 12), (7, 3, 24), params={"heads": "4"}, dtypes="float32", domain=(-9, 9)),
        Sample((1, 1, 1), (1, 1, 2), params={"heads": 1}, dtypes="float32"),
        Sample((3, 0, 4), (2, 0, 8), params={"heads": 2}, dtypes="float32"),
    ],
    "_contrib_interleaved_matmul_encdec_valatt": [
        Sample((3, 2, 16), (4, 5, 3), params={"heads": 2}, dtypes="float32"),
        Sample((4, 3, 10), (3, 1, 4), params={"heads": 1}, dtypes="float32"),
        Sample((3, 2, 16), (4, 5, 3), params={"heads": 2}),
        Sample((7, 3, 24), (12, 2, 7), params={"heads": "4"}, dtypes="float32", domain=(-9, 9)),
        Sample((1, 1, 2), (1, 1, 1), params={"heads": 1}, dtypes="float32"),
        Sample((2, 0, 8), (0, 3, 2), params={"heads": 2}, dtypes="float32"),
    ],
}
