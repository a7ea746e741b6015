"""Samples of the random operators of ``mx.np``, whose checks are moments and frequencies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...testing.sample import Sample, Values

__all__ = ["NUMPY_SAMPLES"]

_EULER = 0.5772156649015329


def plausible(x: Any, mean: Any, var: Any, what: str = "") -> None:
    """Fail unless the mean of the values lies within six standard errors, and their variance is near."""
    x = np.asarray(x, np.float64).ravel()
    if not x.size:
        return
    assert np.isfinite(x).all(), f"{what}: not finite"
    assert abs(x.mean() - mean) <= 6 * np.sqrt(var / x.size) + 1e-3 * abs(mean), f"{what}: mean {x.mean()}, not {mean}"
    if x.size > 500:
        spread = np.sqrt(max(((x - mean) ** 4).mean() - var**2, var**2) / x.size)
        assert abs(((x - mean) ** 2).mean() - var) <= 6 * spread + 2e-3 * var, f"{what}: variance {x.var()}, not {var}"


def _weibull(a: float) -> tuple[float, float]:
    mean = math.gamma(1 + 1 / a)
    return mean, math.gamma(1 + 2 / a) - mean**2


#: Operator -> (names of parameters, values of them that are tried, moments of them).
_LAWS: dict[str, tuple[str, list[tuple[float, ...]], Callable[..., tuple[float, float]]]] = {
    "_npi_normal": ("loc scale", [(-1.0, 0.5), (2.0, 3.0)], lambda m, s: (m, s * s)),
    "_npi_uniform": ("low high", [(-1.0, 0.5), (2.0, 3.0)], lambda a, b: ((a + b) / 2, (b - a) ** 2 / 12)),
    "_npi_gumbel": ("loc scale", [(-1.0, 0.5), (2.0, 3.0)], lambda m, s: (m + _EULER * s, (math.pi * s) ** 2 / 6)),
    "_npi_logistic": ("loc scale", [(-1.0, 0.5), (2.0, 3.0)], lambda m, s: (m, (math.pi * s) ** 2 / 3)),
    "_npi_exponential": ("scale", [(0.5,), (3.0,)], lambda s: (s, s * s)),
    "_npi_rayleigh": ("scale", [(0.5,), (3.0,)], lambda s: (s * math.sqrt(math.pi / 2), (2 - math.pi / 2) * s * s)),
    "_npi_weibull": ("a", [(1.5,), (3.0,)], _weibull),
    "_npi_pareto": ("a", [(9.0,), (12.0,)], lambda a: (1 / (a - 1), a / ((a - 1) ** 2 * (a - 2)))),
    "_npi_powerd": ("a", [(0.5,), (3.0,)], lambda a: (a / (a + 1), a / ((a + 1) ** 2 * (a + 2)))),
    "_npi_gamma": ("shape scale", [(0.5, 2.0), (3.0, 0.5)], lambda a, s: (a * s, a * s * s)),
}


def _moments(moments: Any, *values: float) -> Any:
    mean, var = moments(*values)
    return lambda inputs, outputs: plausible(outputs[0], mean, var)


def _columns(moments: Any, names: list[str], numbers: dict[str, float]) -> Any:
    """A check: each column of what was drawn has the moments of its parameters."""

    def check(inputs: Any, outputs: Any) -> None:
        left = iter(inputs)
        given = [np.full(2, numbers[n]) if n in numbers else np.asarray(next(left), np.float64) for n in names]
        for i in range(2):
            plausible(np.asarray(outputs[0])[..., i], *moments(*[float(v[i]) for v in given]))

    return check


def _uses(op: str) -> list[Sample]:
    """Uses of a distribution: of numbers, arrays, and both."""
    names_, values, moments = _LAWS[op.removesuffix("_n")]
    names = names_.split()
    none = dict.fromkeys(names)
    size = (600,) if op.endswith("_n") else (600, 2)
    first, second = values
    by_array = [[a, b] for a, b in zip(first, second)]
    known = {"dtype": "float64"} if "gamma" in op or "normal" in op or "uniform" in op else {}
    found = [
        Sample(params={**dict(zip(names, v)), "size": (30, 40)}, grad=False, check=_moments(moments, *v))
        for v in values
    ]
    found += [
        Sample(*by_array, params={**none, "size": size}, grad=False, check=_columns(moments, names, {})),
        Sample(*by_array, params={**none, **known, "size": size}, grad=False, check=_columns(moments, names, {})),
        Sample(*by_array, params=none, grad=False, check=lambda i, o: None),
        Sample(params={**dict(zip(names, first)), "size": (0, 2)}, grad=False, check=lambda i, o: None),
        Sample(params=dict(zip(names, first)), grad=False, check=lambda i, o: None),
    ]
    if len(names) == 2:
        a, b = names
        found += [
            Sample(
                by_array[0],
                params={a: None, b: first[1], "size": size},
                grad=False,
                check=_columns(moments, names, {b: first[1]}),
            ),
            Sample(
                by_array[1],
                params={a: first[0], b: None, "size": size},
                grad=False,
                check=_columns(moments, names, {a: first[0]}),
            ),
        ]
    return found


def _frequency(chance: float) -> Any:
    return lambda inputs, outputs: plausible(outputs[0], chance, chance * (1 - chance))


def _chosen(chances: list[float], replace: bool = True) -> Any:
    def check(inputs: Any, outputs: Any) -> None:
        x = np.asarray(outputs[0]).ravel()
        assert x.size == 0 or (x.min() >= 0 and x.max() < len(chances))
        if not replace:
            assert len({*x.tolist()}) == x.size
        elif x.size > 100:
            for i, c in enumerate(chances):
                plausible(x == i, c, c * (1 - c), f"index {i}")

    return check


def _counts(chances: list[float], n: int) -> Any:
    def check(inputs: Any, outputs: Any) -> None:
        x = np.asarray(outputs[0])
        assert (x >= 0).all() and (x.sum(-1) == n).all()
        for i, c in enumerate(chances):
            plausible(x[..., i], n * c, n * c * (1 - c), f"outcome {i}")

    return check


_CHANCES = [0.1, 0.2, 0.7]
NUMPY_SAMPLES = {
    **{op: _uses(op) for op in (*_LAWS, "_npi_normal_n", "_npi_uniform_n")},
    "_npi_bernoulli": [
        Sample(
            params={"prob": 0.3, "logit": None, "is_logit": False, "size": (30, 40)}, grad=False, check=_frequency(0.3)
        ),
        Sample(
            params={"prob": None, "logit": 0.0, "is_logit": True, "size": 900, "dtype": "int32"},
            grad=False,
            check=_frequency(0.5),
        ),
        Sample(
            Values((1,), 0.7, 0.7),
            params={"prob": None, "logit": None, "is_logit": False, "size": 900, "dtype": "bool"},
            grad=False,
            check=_frequency(0.7),
        ),
        Sample((2, 3), params={"prob": None, "logit": None, "is_logit": True}, grad=False, check=lambda i, o: None),
    ],
    "_npi_multinomial": [
        Sample(params={"n": 20, "pvals": tuple(_CHANCES), "size": 300}, grad=False, check=_counts(_CHANCES, 20)),
        Sample(_CHANCES, params={"n": 7, "pvals": None, "size": (20, 20)}, grad=False, check=_counts(_CHANCES, 7)),
        Sample(_CHANCES, params={"n": 0, "pvals": None}, grad=False, check=_counts(_CHANCES, 0)),
    ],
    "_npi_choice": [
        Sample(params={"a": 4, "size": (30, 40)}, grad=False, check=_chosen([0.25] * 4)),
        Sample(params={"a": 40, "size": 40, "replace": False}, grad=False, check=_chosen([0.025] * 40, False)),
        Sample((4,), params={"a": None, "size": 900}, grad=False, check=_chosen([0.25] * 4)),
        Sample(_CHANCES, params={"a": 3, "size": 900, "weighted": True}, grad=False, check=_chosen(_CHANCES)),
        Sample(
            (3,),
            _CHANCES,
            params={"a": None, "size": 2, "weighted": True, "replace": False},
            grad=False,
            check=_chosen(_CHANCES, False),
        ),
        Sample(params={"a": 4}, grad=False, check=_chosen([0.25] * 4)),
    ],
    "_mvn_noise": [
        Sample(
            (2,),
            (2, 2),
            params={"size": 900},
            grad=False,
            check=lambda i, o: plausible(o[0], 0.0, 1.0),
            mxnet="internal",
        ),
        Sample((3, 2), (2, 2), grad=False, check=lambda i, o: None, mxnet="internal"),
    ],
}
