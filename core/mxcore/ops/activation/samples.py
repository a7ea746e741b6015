"""Samples of the operators of :mod:`mxcore.ops.activation`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Sample
from .operators import ACTIVATIONS, LEAKY_EXPRESSIONS

__all__ = ["SAMPLES"]


_HALVES = "float16 float32 float64"
_INF, _NAN = float("inf"), float("nan")
#: Poles, edges and kinks of one function or another, and what lies outside of their domains.
_SPECIAL = [-_INF, -9.0, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.5, 8.0, _INF, _NAN]
_ANY = (0.3, 0.9)


def _check_rrelu(inputs: Any, outputs: Any) -> None:
    (x,), (y, mask) = inputs, outputs
    assert mask.min() >= 0.1 and mask.max() <= 0.3 and mask.std() > 0
    np.testing.assert_allclose(y, np.where(x > 0, x, x * mask), rtol=1e-6)


_KINKED = [[-2.6, -1.2, -0.3, 0.4, 1.5]]


def _check_dropout(inputs: Any, outputs: Any) -> None:
    x, y = inputs[0], outputs[0]
    kept = y != 0
    np.testing.assert_allclose(y[kept], 2 * x[kept], rtol=1e-6)
    assert 0.3 < kept.mean() < 0.7


_ENDLESS = [[np.inf, 1.0, 2.0], [np.inf, -np.inf, np.inf], [-np.inf, -np.inf, -np.inf], [-np.inf, 1.0, 2.0]]


def _soft_samples() -> list[Sample]:
    """Uses that softmax, softmin and log_softmax share."""
    whole = [[1, 2, 0], [3, 3, 1]]
    return [
        Sample((4,)),
        Sample((3, 2), params={"axis": "0", "temperature": "0.5"}),
        Sample((2, 3, 4), params={"axis": -2}),
        Sample((2, 1, 3, 2), params={"axis": -4, "temperature": None}),
        Sample((3, 1)),
        Sample((2, 3, 1), params={"axis": 1, "temperature": 1.0}),
        Sample((2, 3), params={"dtype": "float32"}, grad=False),
        Sample((2, 3), params={"dtype": "None", "use_length": False}),
        Sample((2, 3), params={"dtype": "float16"}, dtypes="float32", grad=False, tol=50),
        *(
            Sample(whole, params={"dtype": t, "axis": 0}, dtypes="uint8 int8 int32", grad=False)
            for t in ("float32", "float64")
        ),
        Sample([[1e4, 1e4 - 1, -1e4], [-700.0, 700.0, 0.0]], grad=False),
        Sample([[-np.inf, 0.0, 1.0]], grad=False),
        Sample((3, 0)),
        Sample((3, 5), params={"axis": 0}, dtypes="float16", grad=False),
        # oneDNN, which has the last axis in float32, gives something else where there is infinity.
        Sample(_ENDLESS, dtypes="float64", grad=False),
        Sample(np.transpose(_ENDLESS), params={"axis": 0}, grad=False),
    ]


SAMPLES = {
    "_npx_relu": [Sample((3, 4), domain=_ANY, dtypes=_HALVES), Sample(()), Sample((2, 0))],
    "_npx_sigmoid": [Sample((3, 4), dtypes=_HALVES), Sample(()), Sample((2, 0))],
    "_npx_constraint_check": [Sample(np.array([True, True])), Sample(np.ones((), bool), params={"msg": "no"})],
    "Activation": [Sample((3, 4), params={"act_type": t}, domain=_ANY, dtypes=_HALVES) for t in ACTIVATIONS]
    + [Sample([_SPECIAL], params={"act_type": t}, grad=False) for t in ("sigmoid", "tanh", "softrelu")]
    # MXNet's relu in float32 turns NaNs into 0; its gradient of softsign at infinity is 0, though its value is NaN.
    + [
        Sample([_SPECIAL], params={"act_type": "relu"}, grad=False, dtypes="float64"),
        Sample([_SPECIAL[1:-2]], params={"act_type": "softsign"}, grad=False),
    ]
    + [
        Sample((2, 3, 2, 3), params={"act_type": "tanh"}),
        Sample((7, 40), params={"act_type": "softsign"}, domain=_ANY),
        Sample((2, 0), params={"act_type": "relu"}),
    ],
    "_backward_Activation": [
        Sample((3, 4), (3, 4), params={"act_type": t}, domain=_ANY, mxnet="internal") for t in ACTIVATIONS
    ],
    "hard_sigmoid": [
        Sample((3, 4), domain=_ANY, dtypes=_HALVES),
        Sample([_SPECIAL], grad=False),
        Sample((3, 4), params={"alpha": 0.7, "beta": 0.4}),
        Sample((3, 4), params={"alpha": -0.3, "beta": "0"}, domain=(-5.0, 4.0)),
        Sample((0, 2), params={"alpha": 1}),
    ],
    "LeakyReLU": [
        *(
            Sample(
                _KINKED,
                params={"act_type": t},
                mxnet="forward only: MXNet's gradient of selu scales twice" if t == "selu" else True,
            )
            for t in LEAKY_EXPRESSIONS
        ),
        Sample(_KINKED, params={"act_type": "leaky", "slope": 0.1}),
        Sample((2, 3, 4), (3,), params={"act_type": "prelu"}, domain=(0.2, 0.9)),
        Sample((2, 3, 4), [0.3], params={"act_type": "prelu"}, domain=(-0.9, -0.2)),
        Sample(
            _KINKED,
            params={"act_type": "rrelu", "lower_bound": 0.1, "upper_bound": 0.3},
            train=True,
            check=_check_rrelu,
            grad=False,
            mxnet="MXNet 1.9.1 crashes",
        ),
        Sample(
            _KINKED,
            params={"act_type": "rrelu", "lower_bound": 0.1, "upper_bound": 0.3},
            grad=False,
            mxnet="MXNet leaves the slopes unset",
        ),
        Sample((0, 3)),
        Sample(
            _KINKED,
            params={"slope": "-0.5"},
            mxnet="forward only: MXNet's gradient in float64 goes by the sign of the output",
        ),
        Sample(_KINKED, params={"slope": 1.5}),
        Sample(_KINKED, params={"slope": 0}),
        Sample(_KINKED, params={"act_type": "elu", "slope": 2.0}),
        Sample((3,), [0.1, 0.2, 0.3], params={"act_type": "prelu"}, domain=(-0.9, -0.2)),
        Sample((2, 3), (3,), params={"act_type": "prelu"}, domain=(-0.9, -0.2)),
        Sample((4,), [0.1], params={"act_type": "prelu"}, domain=(-0.9, -0.2)),
        Sample((1, 2, 2, 1, 2), [0.5, -1.5], params={"act_type": "prelu"}, domain=(-0.9, -0.2)),
        *(
            Sample([0.0, -0.0, np.inf, -np.inf, 1e4, -1e4], params={"act_type": t}, grad=False)
            for t in ("leaky", "elu")
        ),
        *(Sample(_KINKED, params={"act_type": t}, dtypes="float16", grad=False) for t in ("leaky", "elu", "gelu")),
    ],
    "_backward_LeakyReLU": [
        Sample([[1.0, -2.0, 0.5, 0.3, 1.0]], _KINKED, params={"act_type": t}, mxnet="internal")
        for t in LEAKY_EXPRESSIONS
    ],
    "_backward_rrelu": [
        Sample([[1.0, -2.0, 0.5]], [[-1.0, 0.5, -2.0]], [[0.2, 0.1, 0.3]], mxnet="internal", grad=(1, 0, 0))
    ],
    "_backward_prelu": [
        Sample((2, 3, 2), (2, 3, 2), (3,), domain=(-0.9, -0.2), mxnet="internal"),
        Sample((2, 3), (2, 3), [0.3], domain=(0.2, 0.9), mxnet="internal"),
    ],
    "Dropout": [
        Sample((3, 4), dtypes="float16 float32 float64"),
        Sample((40, 30), train=True, check=_check_dropout, grad=False, domain=(1.0, 2.0)),
        Sample((1200, 2), params={"mode": "always", "axes": (1,)}, check=_check_dropout, grad=False, domain=(1.0, 2.0)),
        Sample((3, 4), params={"p": 0.0}, train=True, dtypes="float16 float32 float64"),
        Sample((0, 4), train=True),
        Sample((3, 4), params={"p": "0.0", "mode": "always", "cudnn_off": None, "axes": None}),
        Sample((2, 3), params={"axes": (0,), "p": 0.9}),
        Sample((1200, 2), params={"mode": "always"}, check=_check_dropout, grad=False, domain=(1.0, 2.0)),
        Sample((40, 3, 30), params={"axes": "(1,)"}, train=True, check=_check_dropout, grad=False, domain=(1.0, 2.0)),
        Sample((2, 3), params={"p": 1.0}, train=True, grad=False, mxnet="MXNet gives NaN"),
    ],
    "softmax": [
        Sample((3, 5)),
        Sample((2, 3, 4), params={"axis": 1, "temperature": 2.5}),
        Sample((3, 4), params={"dtype": "float64"}, grad=False),
        Sample(
            (2, 4, 3),
            np.array([[1, 2, 4], [3, 0, 1]], np.int32),
            params={"axis": 1, "use_length": True},
            grad=(True, False),
        ),
        Sample((0, 3)),
        *_soft_samples(),
        Sample(
            (3, 4), np.array([4, 1, 2], np.int64), params={"use_length": "True", "temperature": 0.5}, grad=(True, False)
        ),
        Sample((3, 2), np.array([3, 1], np.int32), params={"axis": 0, "use_length": True}, grad=(True, False)),
        Sample(
            (2, 3, 2),
            np.array([[1, 2, 2], [2, 0, 1]], np.int32),
            params={"axis": -1, "use_length": True, "dtype": "float64"},
            grad=False,
        ),
        Sample(
            [[-np.inf, -np.inf, 5.0], [1.0, -np.inf, 2.0], [-np.inf, 0.0, np.inf], [-np.inf, -np.inf, -np.inf]],
            np.array([2, 3, 2, 0], np.int32),
            params={"use_length": True},
            grad=False,
            mxnet="forward only: the gradient of a row that is NaN is NaN behind its length, too",
        ),
        Sample(
            (2, 3),
            np.array([5, 2], np.int32),
            params={"use_length": True},
            grad=(True, False),
            mxnet="MXNet reads beyond the row",
        ),
    ],
    "softmin": [Sample((3, 5)), Sample((2, 3, 4), params={"axis": 1, "temperature": 2.5}), *_soft_samples()],
    "log_softmax": [
        Sample((3, 5)),
        Sample((2, 3, 4), params={"axis": 1, "temperature": 2.5}),
        Sample((0, 3)),
        *_soft_samples(),
    ],
    "_backward_softmax": [Sample((3, 4), (3, 4), params={"temperature": 2.0}, mxnet="internal")],
    "_backward_log_softmax": [Sample((3, 4), (3, 4), params={"temperature": 2.0}, mxnet="internal")],
    "SoftmaxActivation": [
        Sample((3, 5)),
        Sample((2, 3, 4), params={"mode": "channel"}),
        Sample((2, 3), params={"mode": "channel"}),
        Sample((4, 1)),
        Sample((1, 3, 2, 2), params={"mode": "channel"}),
        Sample((2, 3, 4), mxnet="forward only: MXNet's backward flattens, its forward does not"),
        Sample([[1e4, 1e4 - 1, -1e4]], grad=False),
        Sample((3, 5), dtypes="float16", grad=False),
        Sample((0, 5)),
    ],
}
