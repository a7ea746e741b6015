"""Samples of the operators of :mod:`mxcore.ops.loss`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Ints, Sample, Values

__all__ = ["SAMPLES"]


#: A gradient check against finite differences has no meaning where the gradient is not that of the output.
_FAKE = False


def _softmax_samples() -> list[Sample]:
    """What may come together: ignored labels, scales and smoothing, in each of the three forms of data."""
    forms: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "plain": ((4, 3), [0, 2, 1, 1], {}),
        "many": ((2, 3, 2, 2), [[0, 2, 1, 1], [1, 1, 0, 2]], {"multi_output": True}),
        "shaped": ((2, 2, 3), [[0, 2], [1, 1]], {"preserve_shape": "True"}),
    }
    rows: list[tuple[str, dict[str, Any]]] = [
        *(
            (f, {"normalization": n, "grad_scale": 0.5, **more})
            for f in forms
            for n, more in (("batch", {}), ("valid", {"use_ignore": True, "ignore_label": 1}))
        ),
        ("plain", {"normalization": "valid", "ignore_label": "2.0"}),
        ("many", {"use_ignore": True, "ignore_label": 0, "normalization": "batch"}),
        ("plain", {"use_ignore": True, "ignore_label": 2.0}),
        ("plain", {"smooth_alpha": 0.1, "grad_scale": "3"}),
        ("plain", {"smooth_alpha": 0.3, "use_ignore": True, "ignore_label": 1, "normalization": "valid"}),
        ("many", {"smooth_alpha": 0.2}),
        ("shaped", {"smooth_alpha": 0.2}),
    ]
    alike: dict[str, Any] = {"grad": _FAKE}
    return [Sample(forms[f][0], forms[f][1], params={**forms[f][2], **q}, **alike) for f, q in rows] + [
        Sample((3, 2, 2), Ints((3, 2), 0, 2), params={"multi_output": True, "normalization": "valid"}, **alike),
        Sample((2, 3, 2, 2), Ints((2, 2, 2), 0, 3), params={"multi_output": True}, **alike),
        Sample((3, 2), [-1, 0, 1], params={"use_ignore": True}, **alike),
        Sample((3, 2), [1, 1, 1], params={"use_ignore": True, "ignore_label": 1, "normalization": "valid"}, **alike),
        Sample((4, 3), (4, 3), params={"grad_scale": 2.0, "normalization": "batch"}, domain=(0.0, 1.0), **alike),
        Sample((2, 3, 2), (2, 3, 2), params={"multi_output": True}, domain=(0.0, 1.0), **alike),
        Sample((2, 2, 3), (2, 2, 3), params={"preserve_shape": True}, domain=(0.0, 1.0), **alike),
        Sample((2, 1), [0, 0], **alike),
        Sample([[1e4, -1e4, 0.0], [700.0, 701.0, 700.0]], [0, 1], **alike),
        Sample(
            (4, 3),
            [0, 2, 1, 1],
            params={"out_grad": True},
            mxnet="forward only: MXNet multiplies by the output",
            **alike,
        ),
        Sample((4, 3), [0, 2, 1, 1], dtypes="float16", **alike),
        Sample((0, 3), (0,), **alike),
    ]


_REGRESSIONS = [
    *(
        Sample(s, t, params=q, grad=_FAKE)
        for s, t, q in (
            ((4, 3), (4, 3), {}),
            ((4, 1), (4,), {"grad_scale": 2.0}),
            ((5,), (5,), {"grad_scale": "0.5"}),
            ((2, 3, 2), (2, 3, 2), {}),
            ((2, 3, 2), (2, 6), {}),
            ((3,), (3, 1), {}),
            ((2, 1, 3), (2, 3), {"grad_scale": -1.0}),
            ((0, 3), (0, 3), {}),
        )
    ),
    Sample([[0.5, -1.0], [30.0, -800.0]], [[0.5, 1.0], [0.0, 1.0]], grad=_FAKE),
    Sample((4, 3), (4, 3), dtypes="float16", grad=_FAKE),
]


def _without(shape: tuple[int, ...], *places: Any, value: float = -np.inf) -> Any:
    """Logits of which some are minus infinity, or another value."""
    x = np.random.RandomState(7).uniform(-2.0, 2.0, shape)
    for place in places:
        x[place] = value
    return x


_ALL = slice(None)
_SAMPLE: tuple[list[Any], dict[str, Any]] = ([(5, 2, 4), [[1, 2, 0], [3, 3, 1]]], {})


SAMPLES = {
    "_pick_log_softmax": [
        Sample((4, 5), np.array([0, 4, 2, 2]), grad=(True, False), mxnet="internal"),
        Sample(
            *((2, 3, 4), Ints((2, 3, 1), -2, 6, dtype="int32")),
            params={"keepdims": True, "scalar": -1.0},
            grad=(True, False),
            mxnet="internal",
        ),
        Sample((3, 4), Ints((3, 1), 0, 4, dtype="int64"), params={"scalar": 2.5}, grad=(True, False), mxnet="internal"),
        Sample((3, 4), [0.9, 1.7, -0.6], dtypes="float16 float32 float64", grad=(True, False), mxnet="internal"),
        Sample([[-np.inf, 0.0, 1.0], [1e4, -1e4, 0.0], [np.nan, 1.0, 2.0]], [1, 0, 2], grad=False, mxnet="internal"),
        Sample((0, 4), Ints((0,), 0, 4), grad=False, mxnet="internal"),
        Sample((3, 1), Ints((3,), 0, 4), grad=(True, False), mxnet="internal"),
    ],
    "_backward_pick_log_softmax": [
        Sample((4,), (4, 5), np.array([0, 4, 2, 9]), (4,), (4,), grad=False, mxnet="internal"),
        Sample(
            (2, 3, 1),
            (2, 3, 4),
            Ints((2, 3), 0, 4, dtype="int32"),
            (2, 3),
            (2, 3),
            params={"keepdims": True, "scalar": -0.5},
            grad=False,
            mxnet="internal",
        ),
        Sample((0,), (0, 4), Ints((0,), 0, 4), (0,), (0,), grad=False, mxnet="internal"),
    ],
    "SoftmaxOutput": [
        Sample((4, 3), [0, 2, 1, 1], grad=_FAKE),
        Sample((2, 3, 4), Ints((2, 4), 0, 3), params={"multi_output": True}, grad=_FAKE),
        Sample((2, 3, 4), Ints((2, 3), 0, 4), params={"preserve_shape": True}, grad=_FAKE),
        Sample((4, 3), (4, 3), grad=_FAKE, domain=(0.0, 1.0)),
        *_softmax_samples(),
    ],
    "_backward_SoftmaxOutput": [
        Sample((4, 3), [0, 2, 1, 1], *more, params=q, grad=_FAKE, mxnet="internal")
        for q, *more in (
            ({},),
            ({"out_grad": True}, (4, 3)),
            ({"use_ignore": True, "ignore_label": 1, "normalization": "valid"},),
            ({"smooth_alpha": 0.1},),
        )
    ],
    "SVMOutput": [
        Sample((4, 3), [0, 2, 1, 1], params=q, grad=_FAKE)
        for q in (
            {},
            {"use_linear": True},
            {"margin": 0.5},
            {"margin": "0.25", "use_linear": "1"},
            {"regularization_coefficient": 0.1},
            {"regularization_coefficient": "2", "use_linear": True, "margin": 2.0},
        )
    ]
    + [
        Sample((3, 1), [0, 0, 0], grad=_FAKE),
        Sample((2, 3), [5, -1], grad=_FAKE),
        Sample((0, 3), Ints((0,), 0, 3), grad=_FAKE),
        Sample((4, 3), [0, 2, 1, 1], dtypes="float16", grad=_FAKE),
    ],
    "_backward_SVMOutput": [
        Sample((4, 3), [0, 2, 1, 1], params={"use_linear": u}, grad=_FAKE, mxnet="internal") for u in (True, False)
    ],
    "IdentityAttachKLSparseReg": [
        Sample(Values((4, 3), 0.1, 0.9), [0.1, 0.2, 0.3], train=True, grad=_FAKE),
        Sample(
            Values((5, 2), 0.1, 0.9),
            [0.5, 0.1],
            params={"sparseness_target": 0.3, "penalty": 0.1, "momentum": 0.5},
            train=True,
            grad=_FAKE,
        ),
        Sample(Values((3, 4), 0.1, 0.9), [0.0] * 4, grad=_FAKE),
        Sample(
            Values((4, 2), 0.1, 0.9),
            [0.5, 0.1],
            params={"sparseness_target": "0.9", "penalty": "1", "momentum": "0.0"},
            train=True,
            grad=_FAKE,
        ),
        Sample(
            Values((1, 3), 0.1, 0.9), [0.1, 0.2, 0.3], params={"momentum": 1.0, "penalty": 0.0}, train=True, grad=_FAKE
        ),
        Sample(Values((2, 3, 2), 0.1, 0.9), [0.1, 0.2, 0.3], train=True, grad=_FAKE),
        Sample((0, 3), [0.1, 0.2, 0.3], grad=_FAKE),
    ],
    "_backward_IdentityAttachKLSparseReg": [
        Sample((4, 3), Values((4, 3), 0.1, 0.9), [0.1, 0.2, 0.3], grad=False, mxnet="internal")
    ],
    "MakeLoss": [
        Sample((4, 3), params={"normalization": t, "grad_scale": 2.0}, grad=_FAKE) for t in ("null", "batch", "valid")
    ]
    + [
        Sample(s, params=q, grad=_FAKE)
        for s, q in (
            ((5,), {}),
            ((2, 3, 2), {"normalization": "valid", "valid_thresh": 0.5}),
            ((2, 3), {"normalization": "valid", "valid_thresh": "9"}),
            ((2, 3), {"grad_scale": "-0.5", "valid_thresh": 1.0}),
            ((3, 1, 2), {"normalization": "batch"}),
            ((0, 3), {"normalization": "batch"}),
        )
    ]
    + [Sample((4, 3), params={"normalization": "batch"}, dtypes="float16", grad=_FAKE)],
    "_backward_MakeLoss": [Sample((4, 3), params={"normalization": "valid"}, grad=_FAKE, mxnet="internal")],
    "softmax_cross_entropy": [
        Sample((4, 3), [0, 2, 1, 1], grad=(True, False)),
        Sample((1, 5), [4], grad=(True, False)),
        Sample((3, 1), [0, 0, 0], grad=(True, False)),
        Sample([[1e3, -1e3, 0.0], [80.0, 81.0, 80.0]], Ints((2,), 0, 3), grad=False),
        Sample((4, 3), Ints((4,), 0, 3), dtypes="float16", grad=False),
        Sample((2, 3), [3, -1], grad=False, mxnet="MXNet reads beyond the row"),
        Sample((0, 3), Ints((0,), 0, 3), grad=False),
    ],
    "_backward_softmax_cross_entropy": [Sample((1,), (4, 3), [0, 2, 1, 1], grad=_FAKE, mxnet="internal")],
    **{f"{name}RegressionOutput": _REGRESSIONS for name in ("Linear", "Logistic", "MAE")},
    **{
        f"_backward_{name}RegressionOutput": [Sample((4, 3), (4, 3), grad=_FAKE, mxnet="internal")]
        for name in ("Linear", "Logistic", "MAE")
    },
    "CTCLoss": [
        Sample((7, 2, 4), [[1, 2, 0], [3, 3, 1]], grad=(True, False)),
        Sample((6, 2, 4), [[1, 2, -1], [0, 0, 1]], params={"blank_label": "last"}, grad=(True, False)),
        Sample(
            (7, 2, 4),
            [[1, 2, 1], [3, 3, 1]],
            [5, 7],
            [2, 3],
            params={"use_data_lengths": True, "use_label_lengths": True},
            grad=(True, False, False, False),
        ),
        Sample((6, 2, 4), [[1, 2, 3], [3, 3, 1]], [4, 6], params={"use_data_lengths": True}, grad=(True, False, False)),
        Sample(
            (6, 2, 4),
            [[1, 2, 3], [0, 0, 1]],
            [2, 3],
            params={"use_label_lengths": True, "blank_label": "last"},
            grad=(True, False, False),
        ),
        Sample(
            (6, 3, 4),
            [[1, 2], [-1, -1], [2, -1]],
            [5, 6, 3],
            params={"use_data_lengths": "True", "blank_label": "last"},
            grad=(True, False, False),
        ),
        # No label, one, one that needs a blank between.
        Sample((5, 3, 4), [[0, 0], [1, 0], [2, 2]], grad=(True, False)),
        Sample((3, 1, 2), [[1, 1, 0]], grad=(True, False)),
        Sample((1, 2, 3), [[1], [2]], grad=(True, False)),
        Sample(
            (4, 1, 3),
            [[1, 2]],
            np.array([3], np.int32),
            np.array([1], np.int32),
            grad=(True, False, False, False),
            params={"use_data_lengths": True, "use_label_lengths": True},
        ),
        Sample(Values((5, 2, 4), -60.0, 60.0), [[1, 2, 0], [3, 3, 1]], grad=(True, False)),
        Sample((6, 2, 4), np.array([[1, 2, 0], [3, 3, 1]], np.int32), grad=(True, False)),
        # Logits of classes that cannot be: some of a path's, of the blank, a label's (one of two) at all times; numbers
        # beyond reason.
        *(
            Sample(_without(*q), [[2, 1], [1, 3]], grad=False, dtypes="float32")
            for q in (
                ((3, 2, 4), (0, 0, 2), (slice(1, 3), 1, 0)),
                ((4, 2, 4), (slice(1, 3), _ALL, 0)),
                ((4, 2, 4), (_ALL, _ALL, 2)),
            )
        ),
        Sample(
            _without((5, 2, 4), (1, 0, 3), (2, 0, 0), (2, 1, 3)),
            [[2, 1], [0, 1]],
            params={"blank_label": "last"},
            grad=False,
        ),
        Sample(_without((3, 1, 4), (_ALL, 0, 2), value=-1e31), [[2, 1]], grad=False, dtypes="float32"),
        *(
            Sample(
                *ins,
                params=q,
                grad=False,
                mxnet="forward only: MXNet leaves the gradient of labels that do not fit unset",
            )
            for ins, q in (
                (((3, 3, 4), [[1, 1, 0], [1, 2, 1], [2, 2, 2]]), {}),
                (((3, 2, 3), [[1, 2], [2, 1]], [1, 0]), {"use_data_lengths": True}),
            )
        ),
        Sample((5, 0, 4), (0, 3), grad=False),
    ],
    "_backward_ctc_loss": [Sample((2,), *_SAMPLE[0], params=_SAMPLE[1], grad=False, mxnet="internal")],
}
