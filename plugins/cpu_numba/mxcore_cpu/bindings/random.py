"""Random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mxcore.plugin import Call, Params, Rng, Spec

from ..kernels import variates
from ..typing import Array, Outs
from .common import cpu, helpers


def _draw_gamma(rng: Rng, each: int, alpha: Array, beta: Array) -> Array:
    x = variates.gamma(rng, alpha.astype(np.float64), each)
    scaled: Array = x * np.repeat(beta.reshape(-1), each)
    return scaled


def _draw_poisson(rng: Rng, each: int, lam: Array) -> Array:
    return variates.poisson(rng, lam.astype(np.float64), each)


def _draw_negative_binomial(rng: Rng, each: int, count: Array, p: Array) -> Array:
    rate = variates.gamma(rng, count.astype(np.float64), each)
    return variates.poisson(rng, rate * np.repeat(((1 - p) / p).reshape(-1), each), 1)


def _draw_generalized(rng: Rng, each: int, mu: Array, alpha: Array) -> Array:
    alpha = alpha.astype(np.float64)
    plain = alpha == 0
    rate = variates.gamma(rng, 1 / np.where(plain, 1.0, alpha), each) * np.repeat(alpha.reshape(-1), each)
    rate[np.repeat(plain.reshape(-1), each)] = 1.0
    return variates.poisson(rng, rate * np.repeat(mu.reshape(-1), each), 1)


def _wide_floats(p: Params, *specs: Spec) -> bool:
    return all(s.dtype.kind == "f" for s in specs)


_DRAWS: dict[str, Callable[..., Array]] = {
    "gamma": _draw_gamma,
    "poisson": _draw_poisson,
    "negative_binomial": _draw_negative_binomial,
    "generalized_negative_binomial": _draw_generalized,
}

for _name, _draw in _DRAWS.items():

    @cpu.kernel("_sample_" + _name, when=_wide_floats, out=True)
    def _sample(
        k: Call, p: Params, outs: Outs, *values: Array, op: str = "_sample_" + _name, draw: Callable[..., Array] = _draw
    ) -> None:
        helpers(op).check(values)
        wide = np.float64 if outs[0].dtype == np.float64 else np.float32
        with np.errstate(all="ignore"):
            outs[0][...] = draw(k.rng, math.prod(p.shape), *[v.astype(wide) for v in values]).reshape(outs[0].shape)


def _gamma_numbers(k: Call, p: Params, outs: Outs, *like: Array) -> None:
    values = p.alpha, p.beta
    helpers("_random_gamma").check(values)
    outs[0][...] = (variates.gamma(k.rng, np.array([float(p.alpha)]), outs[0].size) * p.beta).reshape(outs[0].shape)


# 0: a length that a graph decides.
cpu.kernel("_random_gamma", when=lambda p: bool(p.shape) and all(p.shape), out=True)(_gamma_numbers)
cpu.kernel("_random_gamma_like", when=_wide_floats, out=True)(_gamma_numbers)


@cpu.kernel(
    "_shuffle",
    when=lambda p, data: (
        data.ndim > 0 and data.dtype.kind in "fiu" and data.dtype.itemsize >= 4 and 0 < data.shape[0] < 1 << 24
    ),
    out=True,
)
def _shuffle(k: Call, p: Params, outs: Outs, data: Array) -> None:
    variates.shuffled(k.rng, data, outs[0])
