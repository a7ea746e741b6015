"""Samples of the operators in :mod:`mxcore.ops.resize`."""

from __future__ import annotations

from typing import Any

from ...testing.sample import Sample

__all__ = ["SAMPLES"]

_MODES = "like odd_scale size to_even_down to_even_up to_odd_down to_odd_up"


def _resize_samples() -> list[Sample]:
    uses: list[tuple[list[tuple[int, ...]], dict[str, Any]]] = [
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
}
