"""Samples of the operators of :mod:`mxcore.ops.normalization`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Sample, Values
from .local_response import L2_MODES

__all__ = ["SAMPLES", "plain_gradients", "plain_samples"]


#: Moving statistics of samples.
_MEANS, _VARS = [0.1, -0.2, 0.3, 0.0], [1.0, 0.5, 2.0, 0.25]


def plain_samples(**kw: Any) -> list[Any]:
    """Uses of a normalization over the batch: (shape, parameters, training) and what `kw` says of all."""
    mean, var, flags = [0.1, -0.2, 0.3], [1.0, 0.5, 2.0], (1, 1, 1, 0, 0)
    return [
        Sample(
            (*s[:1], 3, *s[1:]),
            (3,),
            (3,),
            mean,
            var,
            params={**q, **kw},
            train=train,
            grad=flags if train and "output_mean_var" not in q else False,
        )
        for s, q, train in (
            ((4, 2, 2), {"fix_gamma": False}, True),
            ((2, 3, 1), {}, True),
            ((3, 1, 4), {"fix_gamma": False, "use_global_stats": True}, True),
            ((2, 2, 2), {"fix_gamma": False, "eps": 1e-2, "momentum": 0.5, "output_mean_var": True}, True),
            ((4,), {"fix_gamma": False}, True),
            ((2, 2, 2), {"fix_gamma": False}, False),
            ((0, 2), {"fix_gamma": False}, False),
        )
    ]


def plain_gradients(**kw: Any) -> list[Any]:
    """A use of the backward of such a normalization."""
    return [
        Sample(
            (4, 3, 2),
            (4, 3, 2),
            (3,),
            (3,),
            [1.0, 2.0, 0.5],
            [0.0, 0.0, 1.0],
            [1.0, 1.0, 1.0],
            train=True,
            grad=False,
            mxnet="internal",
            params={"fix_gamma": False, **kw},
        )
    ]


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


def _backward_uses(first: Sample, stats: tuple[int, ...], eps: float) -> list[Sample]:
    """A use of the backward for one of an operator; `stats` is the shape of its mean.

    The statistics are those of the data: of half precision, whose are rounded, they are computed again.
    """
    shape, gamma, _ = first.inputs
    data = np.random.RandomState(0).uniform(-2, 2, shape)
    rows = data.reshape(int(np.prod(stats)), -1)
    mean, std = rows.mean(1).reshape(stats), np.sqrt(rows.var(1) + eps).reshape(stats)
    return [Sample(shape, data, gamma, mean, std, params=first.params, grad=False, mxnet="internal")]


SAMPLES = {
    "BatchNorm": [
        Sample(
            (4, 3, 2),
            (3,),
            (3,),
            [0.1, -0.2, 0.3],
            [1.0, 0.5, 2.0],
            params={"fix_gamma": False},
            train=True,
            grad=(1, 1, 1, 0, 0),
        ),
        Sample((3, 2, 4, 5), (2,), (2,), [0.1, -0.2], [1.0, 0.5], params={}, train=True, grad=(1, 0, 1, 0, 0)),
        Sample(
            (5, 3),
            (3,),
            (3,),
            [0.1, -0.2, 0.3],
            [1.0, 0.5, 2.0],
            params={"fix_gamma": False, "use_global_stats": True},
            train=True,
            grad=(1, 1, 1, 0, 0),
        ),
        Sample(
            (4, 2, 3),
            (3,),
            (3,),
            [0.1, -0.2, 0.3],
            [1.0, 0.5, 2.0],
            params={"fix_gamma": False, "axis": -1, "eps": 1e-2},
            train=True,
            grad=(1, 1, 1, 0, 0),
        ),
        Sample((4, 3), (3,), (3,), [0.1, -0.2, 0.3], [1.0, 0.5, 2.0], params={"fix_gamma": False}, grad=False),
        *(
            Sample(
                s,
                (c,),
                (c,),
                _MEANS[:c],
                _VARS[:c],
                params={**q},
                train=train,
                grad=(1, not fixed, 1, 0, 0) if flows else False,
            )
            for s, c, q, train, fixed, flows in (
                ((3, 2, 2), 3, {"axis": 0, "momentum": 0.5, "fix_gamma": False}, True, False, True),
                ((2, 2, 3), 2, {"axis": -2, "cudnn_off": True, "eps": "0.01", "fix_gamma": "False"}, True, False, True),
                (
                    (1, 2, 2, 1, 2),
                    2,
                    {"momentum": 0.0, "min_calib_range": -1.0, "max_calib_range": 1.0},
                    True,
                    True,
                    True,
                ),
                ((3, 2, 2), 2, {"output_mean_var": True, "fix_gamma": False, "eps": 1e-2}, True, False, False),
                ((3, 2, 2), 2, {"output_mean_var": True, "eps": 1e-2}, False, True, False),
                ((2, 2, 3), 3, {"output_mean_var": True, "use_global_stats": True, "axis": 2}, True, True, False),
                ((4, 3), 3, {"use_global_stats": True}, False, True, False),
                ((4, 3), 3, {}, False, True, False),
                ((1, 3), 3, {"fix_gamma": False, "momentum": 1.0}, True, False, False),
                ((2, 1), 1, {"fix_gamma": False}, True, False, True),
            )
        ),
        Sample(
            (2, 2, 3),
            *[np.array(v, np.float32) for v in ([0.5, 1.5], [0.1, -0.1], [0.1, -0.2], [1.0, 0.5])],
            params={"fix_gamma": False},
            dtypes="float16",
            train=True,
            grad=False,
        ),
        Sample((0, 2, 3), (2,), (2,), [0.1, -0.2], [1.0, 0.5], train=True),
    ],
    "_backward_BatchNorm": [
        Sample(
            (4, 3, 2),
            (4, 3, 2),
            (3,),
            (3,),
            [1.0, 2.0, 0.5],
            [0.0, 0.0, 1.0],
            [1.0, 1.0, 1.0],
            params={"fix_gamma": False},
            train=True,
            grad=False,
            mxnet="internal",
        )
    ],
    "_backward_contrib_BatchNormWithReLU": [
        Sample(
            (4, 3, 2),
            Values((4, 3, 2), -1, 1),
            (4, 3, 2),
            (3,),
            [0.1, -0.2, 0.3],
            [1.0, 2.0, 0.5],
            [0.0, 0.0, 1.0],
            [1.0, 1.0, 1.0],
            params={"fix_gamma": False},
            train=True,
            grad=False,
            mxnet="internal",
        ),
        Sample(
            (3, 4, 2),
            Values((3, 4, 2), -1, 1),
            (3, 4, 2),
            (2,),
            [0.1, -0.2],
            [1.0, 2.0],
            [0.0, 1.0],
            [1.0, 1.0],
            params={"axis": 2},
            train=True,
            grad=False,
            mxnet="internal",
        ),
    ],
    "_contrib_BatchNormWithReLU": [
        Sample(
            (4, 3, 2, 2),
            (3,),
            (3,),
            [0.1, -0.2, 0.3],
            [1.0, 0.5, 2.0],
            params={"fix_gamma": False},
            train=True,
            grad=(1, 1, 1, 0, 0),
        ),
        Sample(
            (3, 2, 4, 5),
            (2,),
            (2,),
            [0.1, -0.2],
            [1.0, 0.5],
            params={"output_mean_var": True, "eps": 1e-2},
            train=True,
            grad=False,
        ),
        Sample(
            (5, 3, 1, 2),
            (3,),
            (3,),
            [0.1, -0.2, 0.3],
            [1.0, 0.5, 2.0],
            params={"fix_gamma": False, "use_global_stats": True},
            train=True,
            grad=(1, 1, 1, 0, 0),
        ),
        Sample(
            (4, 2, 3),
            (3,),
            (3,),
            [0.1, -0.2, 0.3],
            [1.0, 0.5, 2.0],
            params={"fix_gamma": False, "axis": -1},
            train=True,
            grad=(1, 1, 1, 0, 0),
        ),
        Sample((4, 3, 2, 2), (3,), (3,), [0.1, -0.2, 0.3], [1.0, 0.5, 2.0], params={"fix_gamma": False}, grad=False),
        Sample((0, 3, 2, 2), (3,), (3,), [0.1, -0.2, 0.3], [1.0, 0.5, 2.0], params={"fix_gamma": False}, grad=False),
    ],
    "_contrib_SyncBatchNorm": plain_samples(key="sample"),
    "_backward_SyncBatchNorm": plain_gradients(key="sample"),
    "L2Normalization": [Sample((2, 3, 4), params={"mode": m}) for m in L2_MODES]
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
    "_backward_LayerNorm": _backward_uses(_LAYER[0], (3, 1), 1e-5),
    "_backward_GroupNorm": _backward_uses(_GROUP[0], (2, 2), 1e-5),
    "_backward_InstanceNorm": _backward_uses(_INSTANCE[0], (2, 3), 1e-3),
}
