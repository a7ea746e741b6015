"""Samples of the operators of :mod:`mxcore.ops.fully_connected`."""

from __future__ import annotations

from ...testing.sample import Sample

__all__ = ["SAMPLES"]


SAMPLES = {
    "_bias_like": [
        Sample((3,), (2, 3, 4), mxnet="internal"),
        Sample((4,), (2, 3, 4), params={"axis": -1}, mxnet="internal"),
        Sample((1,), (5,), mxnet="internal"),
    ],
    "_bias_sum": [
        Sample((2, 3, 4), (3,), mxnet="internal"),
        Sample((2, 3, 4), (4,), params={"axis": -1}, mxnet="internal"),
        Sample((5,), (1,), mxnet="internal"),
    ],
    "FullyConnected": [
        Sample((3, 5), (4, 5), (4,), params={"num_hidden": 4}),
        Sample((2, 3, 5), (4, 15), params={"num_hidden": 4, "no_bias": True}),
        Sample((2, 3, 5), (4, 5), (4,), params={"num_hidden": 4, "flatten": False}),
        Sample((0, 5), (4, 5), (4,), params={"num_hidden": 4}),
        Sample((1, 2, 1, 3), (1, 6), (1,), params={"num_hidden": "1", "no_bias": "0"}),
        Sample((2, 1, 3, 2), (3, 2), params={"num_hidden": 3, "no_bias": True, "flatten": "False"}),
        Sample((4,), (2, 1), (2,), params={"num_hidden": 2}),
        Sample((4,), (3, 4), (3,), params={"num_hidden": 3, "flatten": False}),
        Sample((2, 0, 5), (4, 5), params={"num_hidden": 4, "flatten": False, "no_bias": True}),
        Sample((3, 0), (4, 0), (4,), params={"num_hidden": 4}),
        Sample((3, 5), (4, 5), (4,), params={"num_hidden": 4}, dtypes="float16", grad=False),
    ],
    "_backward_FullyConnected": [
        Sample((3, 4), (3, 5), (4, 5), params={"num_hidden": 4}, mxnet="internal"),
        Sample((2, 3, 4), (2, 3, 5), (4, 5), params={"num_hidden": 4, "flatten": False}, mxnet="internal"),
        Sample((2, 4), (2, 3, 5), (4, 15), params={"num_hidden": 4, "no_bias": True}, mxnet="internal"),
    ],
}
