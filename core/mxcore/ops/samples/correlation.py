"""Samples of the operators in :mod:`mxcore.ops.correlation`."""

from __future__ import annotations

from typing import Any

from ...testing.sample import Distinct, Sample

__all__ = ["SAMPLES"]


def _samples() -> list[Any]:
    rows: list[tuple[tuple[int, ...], dict[str, Any]]] = [
        ((2, 3, 4, 5), {}),
        ((1, 2, 6, 7), dict(kernel_size=3, max_displacement=2, pad_size=3)),
        ((2, 1, 8, 7), dict(kernel_size=3, max_displacement=4, stride1=2, stride2=3, pad_size=5, is_multiply=False)),
        ((1, 2, 5, 4), dict(max_displacement=0, stride1=2, is_multiply=False)),
        ((1, 4, 5, 6), dict(max_displacement=2, stride1=3, stride2=2, pad_size=2)),
        ((0, 2, 4, 5), {}),
    ]
    return [Sample(Distinct(s, -2.0, 2.0), Distinct(s, -1.9, 2.3), params=q) for s, q in rows]


SAMPLES = {
    "Correlation": _samples(),
    "_backward_Correlation": [
        Sample((1, 9, 4, 5), (1, 2, 4, 5), (1, 2, 4, 5), params={"pad_size": 1}, grad=False, mxnet="internal")
    ],
}
