"""Samples of the operators of :mod:`mxcore.ops.optimizer`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...parameters import Floats, Shape
from ...testing.sample import Ints, Sample, Values
from .layerwise import ADAMW_PARAMS, LAMB
from .many import MANY
from .single import STEPS, UPDATES

__all__ = ["SAMPLES"]


_F32 = np.dtype("float32")
_ROWS = "for row_sparse gradients only"
#: Values of states in samples; those of `n` keep a root in rmspropalex real.
_STATE = {"n": (5.0, 7.0), "var": (0.2, 2.0), "v": (0.2, 2.0), "d": (0.2, 2.0), "history": (0.2, 2.0)}


def _inputs(names: Any, shape: Any, mixed: Any = False) -> Any:
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


def _uses(op: Any, choices: Any = ({},), mixed: Any = False, mxnet: Any = True) -> Iterator[Any]:
    """Samples of an update: all parameters off their defaults, none, as strings; clips; shapes; NaN, infinities."""
    names, params = op.input_names, op.params
    given = {n: _EXACT.get(n, s.default) for n, s in params.items()}
    plain = {**given, **{n: v for n, v in _PLAIN.items() if n in params}}
    clip = next((n for n in params if n.startswith("clip_grad")), None)
    dtypes = {"dtypes": "float32"} if mixed else {}

    def use(shape: Any, values: Any, **more: Any) -> Any:
        return Sample(*_inputs(names, shape, mixed), params=values, grad=False, **{"mxnet": mxnet, **dtypes, **more})

    yield from (use((3, 4), {**given, **c}) for c in choices)
    # MXNet keeps parameters in float32 even where the weight is float64.
    yield use((5,), _needed(params), dtypes="float32")
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


def _needed(params: Any) -> Any:
    return {n: 3 if n == "t" else 0.25 for n, s in params.items() if s.required}


_CHOICES = {
    **dict.fromkeys(
        ("sgd_update", "sgd_mom_update", "adam_update"), [{}, {"clip_gradient": -1.0}, {"lazy_update": False}]
    ),
    **dict.fromkeys(("rmsprop_update", "rmspropalex_update"), [{}, {"clip_weights": 0.75}, {"clip_weights": 0.0}]),
}


def _phase2_uses(mixed: Any) -> Any:
    def use(shape: Any, r1: Any, r2: Any, values: Any) -> Any:
        arrays = [Values(shape, dtype="float16") if mixed else shape, shape, [r1], [r2], *([shape] if mixed else [])]
        return Sample(
            *arrays,
            params=values,
            grad=False,
            dtypes="float32" if mixed else "float32 float64",
            mxnet="outputs only: MXNet leaves weight32 as it was" if mixed else True,
        )

    return [
        *(use((3, 4), 2.0, 4.0, {"lr": 0.25, **c}) for c in ({}, {"lower_bound": 3.0}, {"upper_bound": 1.0})),
        use((5,), 2.0, 4.0, {"lr": "0.25", "lower_bound": "0.5", "upper_bound": "8.0"}),
        use((1,), 0.0, 4.0, {"lr": 0.5}),
        use((2, 1, 3), 2.0, 0.0, {"lr": 0.5}),
        use((2, 2), 0.0, 4.0, {"lr": 0.5, "lower_bound": 1.0}),
        use((3,), 2.0, 4.0, {"lr": 0.5, "upper_bound": 0.0}),
        use((0, 3), 2.0, 4.0, {"lr": 0.5}),
    ]


def _many_uses(op: Any, names: Any, given: Any, last: Any, rates: Any, mixed: Any, mxnet: Any = True) -> Iterator[Any]:
    """Two weights with everything; one, and three, with next to nothing; clips; strings; float16."""
    specs, count = op.params, op.count
    tail = {"lrs": [0.25, 0.5, 0.125], "wds": [0.125, 0.25, 0.0], "rescale_grad": [0.5]}
    needed = {n: s for n, s in specs.items() if s.required}

    def use(
        shapes: Any, values: Any, dtypes: Any = "float32" if mixed or last else "float32 float64", **more: Any
    ) -> Any:
        n = len(shapes)
        cut = {k: v[:n] if isinstance(v, tuple) else v for k, v in values.items()}
        ends = [np.array(tail[m][: n if m in rates else 1], np.float32) for m in last]
        return Sample(
            *[a for s in shapes for a in _inputs(names, s, mixed)],
            *ends,
            params={**cut, count: n},
            dtypes=dtypes,
            grad=False,
            mxnet=mxnet,
            **more,
        )

    few = {
        n: (0.25, 0.5, 0.125) if isinstance(s, Floats) else (3, 1, 2) if isinstance(s, Shape) else _EXACT[n]
        for n, s in needed.items()
    }
    yield use([(3, 4), (5,)], given)
    yield use([(2, 3)], few, "float32")  # MXNet keeps parameters in float32 even where the weights are float64
    yield use([(2,), (1, 3), (2, 1, 2)], few, "float32")
    yield use([(0, 3), (2,)], few, "float32")
    if "clip_gradient" in specs:
        yield use([(4,), (1,)], {**given, "clip_gradient": -1.0})
        yield use([(2, 2), (3,)], {**given, "clip_gradient": 0.0})
    yield use([(3,), (2, 1)], {n: v if isinstance(v, tuple) else str(v) for n, v in given.items()})
    for n in ("bias_correction", "lower_bound", "upper_bound"):
        if n in specs:
            yield use([(3,), (2, 2)], {**given, "upper_bound": -1.0, n: {"bias_correction": False}.get(n, 3.0)})
    if not mixed and not last:
        yield use([(3, 2), (4,)], given, "float16")


_GIVEN = {"rescale_grad": 0.5, "clip_gradient": 0.75}
_MOMENTS = {n: _EXACT[n] for n in ("beta1", "beta2", "epsilon")}
_GIVEN_RATES = {"lrs": (0.25, 0.5), "wds": (0.125, 0.25)}
_LRS = ("lrs", "wds")
#: name -> (states, parameters, arrays after all the weights, names of the rates)
_MANY_USES = {
    "multi_%ssgd_update": ([], {**_GIVEN, **_GIVEN_RATES}, (), _LRS),
    "multi_%ssgd_mom_update": (["mom"], {**_GIVEN, **_GIVEN_RATES, "momentum": 0.5}, (), _LRS),
    "preloaded_multi_%ssgd_update": ([], _GIVEN, _LRS, _LRS),
    "preloaded_multi_%ssgd_mom_update": (["mom"], {**_GIVEN, "momentum": 0.5}, _LRS, _LRS),
    "_multi_%slamb_update": (
        ["mean", "var"],
        {
            **_MOMENTS,
            "learning_rates": (0.25, 0.5),
            "wds": (0.125, 0.25),
            "step_count": (3, 4),
            "rescale_grad": 0.5,
            "clip_gradient": 0.75,
            "upper_bound": 2.0,
        },
        (),
        ("learning_rates", "wds"),
    ),
    "_multi_%sadamw_update": (
        ["mean", "var"],
        {**_MOMENTS, **_GIVEN_RATES, "etas": (0.5, 0.25), "clip_gradient": 0.75},
        ("rescale_grad",),
        _LRS,
    ),
}


#: The same, of operators that MXNet does not have.
_OWN_USES = {
    step.together: (step.states, {**{n: _EXACT[n] for n in step.params if n in _EXACT}, **_GIVEN_RATES}, (), _LRS)
    for step in STEPS
    if step.together.startswith("_")
}
for _, _params, *_ in _OWN_USES.values():
    del _params["lr"], _params["wd"]


def _adamw_uses(names: Any, mixed: Any) -> Any:
    given = {n: _EXACT[n] for n in ADAMW_PARAMS}
    return [
        Sample(
            *_inputs(names, shape, mixed), np.array([scale], np.float32), params=values, grad=False, dtypes="float32"
        )
        for shape, scale, values in (
            ((3, 4), 0.5, given),
            ((3, 4), 0.5, {**given, "clip_gradient": -1.0}),
            ((5,), 0.5, {**given, "wd": 0.0, "clip_gradient": 0.0}),
            ((2, 3), 0.0, given),
            ((2, 1, 3), np.inf, given),
            ((4,), np.nan, given),
            ((1,), 4.0, {**given, "eta": "2.0", "lr": "0.5", "beta1": "0.25", "wd": "0.5"}),
            ((5,), 1.0, {"lr": 0.25, "eta": 0.5}),
        )
    ]


_PHASE1_CHOICES: tuple[dict[str, Any], ...] = ({}, {"bias_correction": False}, {"clip_gradient": -1.0, "t": 1})
_BY_NAME = {op.name: op for op in (*LAMB, *MANY)}
_WITH_MOMENTS = ["weight", "grad", "mean", "var"]


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
    "multi_lars": [
        Sample(*[Values((4,), 0.5, 2.0)] * 4, params={"eta": 0.25, "eps": 0.5, "rescale_grad": 0.5}, grad=False),
        Sample([1.0, 1.0], [4.0, 0.0], [0.0, 4.0], [0.5, 0.5], params={"eta": 0.25, "eps": 0.5}, grad=False),
        Sample(*[Values((1,), 0.5, 2.0)] * 4, params={"eta": "0.25", "eps": "0.0"}, grad=False),
        Sample(
            *[Values((7,), 0.5, 2.0)] * 4,
            params={"eta": 1.0, "eps": 0.0, "rescale_grad": -2.0},
            grad=False,
            dtypes="float32 float64",
        ),
    ],
    "multi_sum_sq": [
        Sample((3, 4), (5,), params={"num_arrays": 2}, grad=False, tol=4, dtypes="float16 float32 float64"),
        Sample((2, 1, 3), params={"num_arrays": "1"}, grad=False, tol=4),
        Sample((1,), (2, 2), (3,), params={"num_arrays": 3}, grad=False, tol=4),
        Sample((0, 3), (2,), params={"num_arrays": 2}, grad=False),
    ],
    "reset_arrays": [
        Sample((3, 4), (5,), params={"num_arrays": 2}, grad=False, dtypes="float16 float32 float64"),
        Sample((2, 1, 2), params={"num_arrays": "1"}, grad=False),
        Sample(Ints((2, 3), -5, 5), params={"num_arrays": 1}, grad=False, dtypes="int32 uint8"),
        Sample((0, 3), (2,), params={"num_arrays": 2}, grad=False),
        Sample((5,), (1, 1), (2, 3), params={"num_arrays": "3"}, grad=False, domain=(-1e30, 1e30)),
    ],
    "lamb_update_phase1": [*_uses(_BY_NAME["lamb_update_phase1"], _PHASE1_CHOICES)],
    "mp_lamb_update_phase1": [*_uses(_BY_NAME["mp_lamb_update_phase1"], _PHASE1_CHOICES, mixed=True)],
    "lamb_update_phase2": _phase2_uses(mixed=False),
    "mp_lamb_update_phase2": _phase2_uses(mixed=True),
    **{
        name: [*_many_uses(_BY_NAME[name], ["weight", "grad", *states, *copy], given, last, rates, bool(copy), mxnet)]
        for uses, mxnet in ((_MANY_USES, True), (_OWN_USES, "MXNet has no such operator"))
        for form, (states, given, last, rates) in uses.items()
        for name, copy in ((form % "", []), (form % "mp_", ["weight32"]))
    },
    "_adamw_update": _adamw_uses(_WITH_MOMENTS, mixed=False),
    "_mp_adamw_update": _adamw_uses([*_WITH_MOMENTS, "weight32"], mixed=True),
}
