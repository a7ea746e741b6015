"""Samples of the operators in :mod:`mxcore.ops.norm`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Sample, Values
from ..norm import _MODES

__all__ = ["SAMPLES"]


_LAYER = [
    Sample((3, 5), (5,), (5,)),
    Sample((2, 4, 3), (4,), (4,), params={"axis": 1, "eps": 1e-3}),
    Sample((0, 3), (3,), (3,)),
    Sample((4, 2, 3), (4,), (4,), params={"axis": 0}),
    Sample((2, 3, 2), (3,), (3,), params={"axis": "-2", "eps": "0.01"}),
    Sample((5,), (5,), (5,)),
    # gradients that come in for mean and deviation are ignored
    *(
        Sample((2, 3, 2), (n,), (n,), params={"output_mean_var": True, **q}, grad=False)
        for n, q in ((2, {}), (3, {"axis": 1}))
    ),
    Sample((2, 1, 1, 7), (7,), (7,)),
    Sample((3, 1), (1,), (1,)),
    Sample([[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]], (3,), (3,), grad=(0, 0, 1)),
    Sample(Values((2, 4), 1000.0, 1010.0), (4,), (4,), tol=4),
    Sample((3, 5), (5,), (5,), dtypes="float16", grad=False),
]
_GROUP = [
    Sample((2, 4, 3), (2,), (2,), params={"num_groups": 2}),
    Sample((3, 3, 2, 2), (1,), (1,)),
    Sample((2, 3, 4), (3,), (3,), params={"num_groups": 3}),
    Sample((2, 6), (3,), (3,), params={"num_groups": "3", "eps": "0.01"}),
    Sample((2, 4, 1, 3, 2), (2,), (2,), params={"num_groups": 2, "eps": 1e-3}),
    Sample((2, 4, 3), (2,), (2,), params={"num_groups": 2, "output_mean_var": True}, grad=False),
    Sample((1, 1, 5), (1,), (1,)),
    Sample((2, 4, 3), (2,), (2,), params={"num_groups": 2}, dtypes="float16", grad=False),
    Sample((0, 4, 3), (2,), (2,), params={"num_groups": 2}),
]
_INSTANCE = [
    Sample((2, 3, 4), (3,), (3,)),
    Sample((2, 2, 3, 4), (2,), (2,), params={"eps": 1e-2}),
    Sample((1, 1, 5), (1,), (1,), params={"eps": "1e-5"}),
    Sample((1, 2, 2, 1, 3), (2,), (2,)),
    Sample((2, 2, 1), (2,), (2,), grad=(0, 1, 1)),
    Sample((2, 3, 4), (3,), (3,), dtypes="float16", grad=False),
    Sample((0, 3, 4), (3,), (3,)),
]


def _backward_uses(first: Sample, stats: tuple[int, ...]) -> list[Sample]:
    """A use of the backward for one of an operator; `stats` is the shape of its mean."""
    data, gamma, _ = first.inputs
    return [Sample(data, data, gamma, stats, np.ones(stats), params=first.params, grad=False, mxnet="internal")]


SAMPLES = {
    "L2Normalization": [Sample((2, 3, 4), params={"mode": m}) for m in _MODES]
    + [Sample((2, 3))]
    + [
        Sample(s, params={"mode": m, "eps": e})
        for s, m, e in (
            ((2, 5), "channel", 0.1),
            ((3, 1), "instance", 1.0),
            ((1, 2, 3, 2), "spatial", "0.5"),
            ((2, 1, 2, 2), "instance", 1e-3),
            ((2, 3, 2, 1), "channel", 1e-3),
        )
    ]
    + [
        Sample([[[0.0, 0.0], [3.0, 4.0]]], params={"mode": "spatial"}, grad=False),
        Sample((2, 3), dtypes="float16", grad=False),
        Sample((0, 3)),
    ],
    "LRN": [
        Sample((2, 5, 3, 2), params={"nsize": 3, "alpha": 0.5}),
        Sample((1, 3, 2, 2), params={"nsize": 5, "beta": 0.5, "knorm": 1.0}),
        Sample((2, 4, 1, 3), params={"nsize": "1", "alpha": "0.1"}),
        Sample((1, 2, 2, 3), params={"nsize": 7, "alpha": 1.0, "beta": 1.0}),
        Sample((1, 6, 2, 1), params={"nsize": 3, "alpha": 0.2, "knorm": 0.5}, domain=(0.5, 2.0)),
        Sample((2, 5, 3), params={"nsize": 3, "alpha": 0.5}),
        Sample((2, 5), params={"nsize": 3, "alpha": 0.5}),
        Sample((1, 5, 2, 2), params={"nsize": 3, "alpha": 0.5}, dtypes="float16", grad=False),
        Sample((0, 5, 2, 2), params={"nsize": 3}),
    ],
    "_backward_LRN": [
        Sample((2, 5, 3, 2), (2, 5, 3, 2), params={"nsize": 3, "alpha": 0.5}, grad=False, mxnet="internal")
    ],
    "LayerNorm": _LAYER,
    "GroupNorm": _GROUP,
    "InstanceNorm": _INSTANCE,
    "_backward_LayerNorm": _backward_uses(_LAYER[0], (3, 1)),
    "_backward_GroupNorm": _backward_uses(_GROUP[0], (2, 2)),
    "_backward_InstanceNorm": _backward_uses(_INSTANCE[0], (2, 3)),
}
