"""Densities of the random distributions: one row of a table each.

Parameters have the leading dimensions of the samples. A row gives the logarithm of the density over ``xp`` and its
derivatives over ``F``; the rest (exponential, gradients of both forms) is common.
"""

from __future__ import annotations

import math
from typing import Any

from ..._core.op import Op, op
from ..._core.params import Params
from ...parameters import Bool
from ...typing import Array, Call, Operand, Operators
from ..common import special_functions
from ..common.bodies import silent, wide
from ..common.gradients import narrow, widen

__all__ = ["DENSITIES", "aligned_shape", "pdf_dirichlet"]


def _chain(
    F: Operators, p: Params, dy: Operand, y: Operand, sample: Operand, parameters: Operand, slopes: Operand
) -> Any:
    """Gradients from the slopes of the log density: (of the sample, or None for zero; of each parameter)."""
    x, g = widen(F, sample), widen(F, dy)
    g = g if p.is_log else g * widen(F, y)
    few = [widen(F, v) for v in parameters]
    first, *others = slopes(x, *[F._trailing_like(v, x) for v in few])
    return (
        None if first is None else narrow(F, g * first, sample),
        *[narrow(F, F._trailing_sum(g * s, w), v) for s, w, v in zip(others, few, parameters)],
    )


def _binomial(xp: Any, x: Any, k: Any, p: Any) -> Any:
    g = special_functions.gammaln
    return g(xp, x + k) - g(xp, x + 1) - g(xp, k) + k * xp.log(p) + x * xp.log(1 - p)


def _binomial_slopes(F: Operators, x: Operand, k: Operand, p: Operand) -> Any:
    return F._digamma(x + k) - F._digamma(k) + F.log(p), k / p - x / (1 - p)


def _generalized_slopes(F: Operators, x: Operand, mu: Operand, alpha: Operand) -> Any:
    k, p = 1 / alpha, 1 / (mu * alpha + 1)
    dk, dp = _binomial_slopes(F, x, k, p)
    return None, dp * alpha * p * p * -1, (dk * k * k + dp * mu * p * p) * -1


#: name -> (parameters, log density over xp, gradient)
_TABLE = {
    "uniform": (
        "low high",
        lambda xp, x, a, b: -xp.log(b - a) + 0 * x,
        lambda F, p, dy, y, sample, low, high: _chain(
            F, p, dy, y, sample, (low, high), lambda x, a, b: (None, 1 / (b - a), (a - b) / F.square(b - a))
        ),
    ),
    "normal": (
        "mu sigma",
        lambda xp, x, m, s: -0.5 * ((x - m) / s) ** 2 - xp.log(s) - 0.5 * math.log(2 * math.pi),
        lambda F, p, dy, y, sample, mu, sigma: _chain(
            F,
            p,
            dy,
            y,
            sample,
            (mu, sigma),
            lambda x, m, s: ((m - x) / F.square(s), (x - m) / F.square(s), (F.square((x - m) / s) - 1) / s),
        ),
    ),
    "gamma": (
        "alpha beta",
        lambda xp, x, a, b: a * xp.log(b) + (a - 1) * xp.log(x) - b * x - special_functions.gammaln(xp, a),
        lambda F, p, dy, y, sample, alpha, beta: _chain(
            F,
            p,
            dy,
            y,
            sample,
            (alpha, beta),
            lambda x, a, b: ((a - 1) / x - b, F.log(b * x) - F._digamma(a), a / b - x),
        ),
    ),
    "exponential": (
        "lam",
        lambda xp, x, lam: xp.log(lam) - lam * x,
        lambda F, p, dy, y, sample, lam: _chain(F, p, dy, y, sample, (lam,), lambda x, a: (a * -1, 1 / a - x)),
    ),
    "poisson": (
        "lam",
        lambda xp, x, lam: x * xp.log(lam) - lam - special_functions.gammaln(xp, x + 1),
        lambda F, p, dy, y, sample, lam: _chain(F, p, dy, y, sample, (lam,), lambda x, a: (None, x / a - 1)),
    ),
    "negative_binomial": (
        "k p",
        _binomial,
        lambda F, p, dy, y, sample, k_, p_: _chain(
            F, p, dy, y, sample, (k_, p_), lambda x, a, b: (None, *_binomial_slopes(F, x, a, b))
        ),
    ),
    "generalized_negative_binomial": (
        "mu alpha",
        lambda xp, x, mu, alpha: _binomial(xp, x, 1 / alpha, 1 / (mu * alpha + 1)),
        lambda F, p, dy, y, sample, mu, alpha: _chain(
            F, p, dy, y, sample, (mu, alpha), lambda x, a, b: _generalized_slopes(F, x, a, b)
        ),
    ),
}


def _real(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    """One dtype for all, a float."""
    t = next((t for t in (*ins, *outs) if t is not None), None)
    if t is not None and t.kind != "f":
        raise TypeError(f"samples and parameters must be float16, float32 or float64, got {t.name}")
    return [t] * len(ins), [t]


def _density(name: str, parameters: Any, log: Any, rule: Any) -> Any:
    names = parameters.split()

    @silent
    def body(k: Call, p: Params, sample: Array, *values: Array) -> Any:
        values = tuple(wide(v).reshape(tuple(v.shape) + (1,) * (sample.ndim - v.ndim)) for v in values)
        found = log(k.xp, wide(sample), *values)
        return found if p.is_log else k.xp.exp(found)

    o = Op(
        f"_random_pdf_{name}",
        body,
        grad=rule,
        inputs=" ".join(["sample", *names]),
        params={"is_log": Bool(False)},
        aliases=(f"random_pdf_{name}",),
        doc="\n".join(
            [
                f"The density of the {name.replace('_', ' ')} distribution at `sample`.",
                "",
                "Parameters",
                "----------",
                "sample : array",
                "    Shape of the parameters, then any further dimensions.",
                f"{', '.join(names)} : array",
                "    Parameters of the distribution.",
                "is_log : bool",
                "    Give the logarithm.",
            ]
        ),
    )
    o.shape(_shape)
    o.dtype(_real)
    return o


def _shape(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    sample = ins[0] if ins[0] is not None else outs[0]
    first = next((s for s in ins[1:] if s is not None), None)
    if sample is not None and first is not None and sample[: len(first)] != first:
        raise ValueError(f"the shape of the samples, {sample}, does not begin with that of the parameters, {first}")
    return [sample, *[first] * (len(ins) - 1)], [sample]


DENSITIES = [_density(name, *row) for name, row in _TABLE.items()]


def aligned_shape(shape: Any, like: Any) -> Any:
    """The shape of `alpha` with dimensions of one where the samples have more, before the last."""
    return (*shape[:-1], *(1,) * (len(like) - len(shape)), shape[-1])


@op("_random_pdf_dirichlet", "random_pdf_dirichlet", inputs="sample alpha", is_log=Bool(False))
@silent
def pdf_dirichlet(k: Call, p: Params, sample: Array, alpha: Array) -> Array:
    """The density of the Dirichlet distribution at `sample`.

    Parameters
    ----------
    sample : array (..., n)
        Shape of `alpha` but for the last dimension, any further dimensions, then n.
    alpha : array (..., n)
        Concentrations.
    is_log : bool
        Give the logarithm.
    """
    xp = k.xp
    a, x = wide(alpha).reshape(aligned_shape(alpha.shape, sample.shape)), wide(sample)
    total = special_functions.gammaln(xp, a.sum(-1)) - special_functions.gammaln(xp, a).sum(-1)
    found = ((a - 1) * xp.log(x)).sum(-1) + total
    return found if p.is_log else xp.exp(found)


@pdf_dirichlet.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    sample, alpha = ins
    if not alpha or sample[-1:] != alpha[-1:] or sample[: len(alpha) - 1] != alpha[:-1]:
        raise ValueError(f"samples of shape {sample} do not fit alpha of shape {alpha}")
    return [sample[:-1] or (1,)]


pdf_dirichlet.dtype(_real)
