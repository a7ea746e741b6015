"""Samples of the operators in :mod:`mxcore.ops.backward_names`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Sample

__all__ = ["SAMPLES"]


SAMPLES = {
    "_contrib_backward_index_copy": [Sample((3, 2), np.array([2, 0], np.int32), mxnet="not callable by itself")],
    "_split_v2_backward": [
        Sample((2, 3), (2, 4), params={"indices": (0, 3)}, mxnet="not callable by itself"),
        Sample((3,), (3,), params={"sections": 2, "axis": 0, "squeeze_axis": True}, mxnet="not callable by itself"),
    ],
}
