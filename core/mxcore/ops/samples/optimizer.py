"""Samples of the operators in :mod:`mxcore.ops.optimizer`."""

from __future__ import annotations

import math

import numpy as np

from ...testing.sample import Sample, Values
from ..optimizer import UPDATES

__all__ = ["SAMPLES"]

_F32 = np.dtype("float32")


_ROWS = "for row_sparse gradients only"


#: Values of states in samples; those of `n` keep a root in rmspropalex real.
_STATE = {"n": (5.0, 7.0), "var": (0.2, 2.0), "v": (0.2, 2.0), "d": (0.2, 2.0), "history": (0.2, 2.0)}


def _inputs(names, shape, mixed=False):
    """The inputs of an update; `mixed` if the last is the master copy of the first."""
    kind = {"weight": "float16", "grad": "float16"} if mixed else {}
    made = [Values(shape, *_STATE.get(n, (-2.0, 2.0)), dtype=kind.get(n, "float32" if mixed else None)) for n in names]
    if mixed:  # a weight and its master copy are alike
        weight = (np.arange(math.prod(shape)).reshape(shape) % 7 - 3) / np.float32(4)
        for n, t in (("weight", "float16"), ("weight32", "float32")):
            if n in names:
                made[names.index(n)] = weight.astype(t)
    return made


#: Values of parameters that are exact in every dtype.
_EXACT = {
    "lr": 0.25,
    "momentum": 0.5,
    "wd": 0.125,
    "rescale_grad": 0.5,
    "beta1": 0.5,
    "beta2": 0.75,
    "gamma1": 0.75,
    "gamma2": 0.5,
    "t": 3,
    "epsilon": 0.0625,
    "lamda1": 0.25,
    "beta": 0.5,
    "wd_lh": 0.125,
    "clip_gradient": 0.75,
    "clip_grad": 0.75,
    "eta": 0.5,
}


_PLAIN = {"wd": 0.0, "clip_gradient": -1.0, "clip_grad": -1.0, "momentum": 0.0, "wd_lh": 0.0, "lazy_update": False}


_ODD_GRAD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.0])


def _uses(op, choices=({},), mixed=False, mxnet=True):
    """Samples of an update: all parameters away from their defaults, none, as strings; clips; shapes; what is not
    finite.
    """
    names, params = op.input_names, op.params
    given = {n: _EXACT.get(n, s.default) for n, s in params.items()}
    plain = {**given, **{n: v for n, v in _PLAIN.items() if n in params}}
    clip = next((n for n in params if n.startswith("clip_grad")), None)
    dtypes = {"dtypes": "float32"} if mixed else {}

    def use(shape, values, **more):
        return Sample(*_inputs(names, shape, mixed), params=values, grad=False, **{"mxnet": mxnet, **dtypes, **more})

    yield from (use((3, 4), {**given, **c}) for c in choices)
    yield use(
        (5,), _needed(params), dtypes="float32"
    )  # MXNet keeps parameters in float32 even where the weight is float64
    yield use((2, 1, 3), plain)
    yield use((1,), {n: str(v) for n, v in given.items()})
    if clip is not None:
        yield use((7,), {**given, clip: 0.0})
        yield use((7, 1), {**plain, clip: 1.0, "rescale_grad": 4.0})
    if not mixed:
        yield use((3, 5), given, dtypes="float16", tol=4)
        weight, _, *states = _inputs(names, (6,))
        yield Sample(weight, _ODD_GRAD, *states, params=given, grad=False, mxnet=mxnet)
    yield use((0, 4), _needed(params))


def _needed(params):
    return {n: 3 if n == "t" else 0.25 for n, s in params.items() if s.required}


_CHOICES = {
    **dict.fromkeys(
        ("sgd_update", "sgd_mom_update", "adam_update"), [{}, {"clip_gradient": -1.0}, {"lazy_update": False}]
    ),
    **dict.fromkeys(("rmsprop_update", "rmspropalex_update"), [{}, {"clip_weights": 0.75}, {"clip_weights": 0.0}]),
}


SAMPLES = {
    "_contrib_group_adagrad_update": [
        Sample(
            (3, 4),
            (3, 4),
            Values((3, 1), 0.2, 2.0),
            params={"lr": 0.25, "epsilon": 0.0625, **more},
            grad=False,
            mxnet=_ROWS,
        )
        for more in ({}, {"rescale_grad": 0.75, "clip_gradient": 0.5})
    ],
    **{
        op.name: [
            *_uses(
                op,
                _CHOICES.get(op.name.removeprefix("mp_"), [{}]),
                mixed=op.name.startswith("mp_"),
                mxnet=_ROWS if op.name == "_sparse_adagrad_update" else True,
            )
        ]
        for op in UPDATES
    },
}
