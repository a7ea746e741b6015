"""Gradients of the operators of :mod:`mxcore.ops.random`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...typing import Array, Call, Operand, Operators
from ..common import rules
from ..common.bodies import silent, sum_over, wide
from ..common.gradients import narrow, widen
from ..common.rules import fits
from .densities import aligned_shape, pdf_dirichlet
from .hawkes import HAWKES_INPUTS, hawkesll, intensity, walk

__all__: list[str] = []


_I4 = np.dtype("int32")


def _grad(
    F: Operators,
    p: Params,
    d_output: Any,
    d_out_state: Any,
    lda: Any,
    alpha: Any,
    beta: Any,
    state: Any,
    lags: Any,
    marks: Any,
    valid_length: Any,
    max_time: Any,
) -> Any:
    a, b, c, d, e, f = F._contrib_backward_hawkesll(
        d_output, d_out_state, lda, alpha, beta, state, lags, marks, valid_length, max_time
    )
    return a, b, c, d, e, None, None, f


hawkesll.grad(_grad)


@op(
    "_contrib_backward_hawkesll",
    inputs="d_loglike d_out_state " + HAWKES_INPUTS,
    outputs="lda alpha beta state lags max_time",
)
@silent
def backward_hawkesll(
    k: Call,
    p: Params,
    d_loglike: Array,
    d_out_state: Array,
    lda: Array,
    alpha: Array,
    beta: Array,
    state: Array,
    lags: Array,
    marks: Array,
    valid_length: Array,
    max_time: Array,
) -> Any:
    """The gradients of `hawkesll`.

    Parameters
    ----------
    d_loglike : array, (N,)
        Gradient of the log likelihoods.
    d_out_state : array, (N, K)
        Gradient of the final states.
    lda, alpha, beta, state, lags, marks, valid_length, max_time : array
        As in `hawkesll`.
    """
    xp = k.xp
    lda, alpha, beta, state, lags, max_time = map(wide, (lda, alpha, beta, state, lags, max_time))
    s, last, seen = walk(xp, lda, alpha, beta, state, lags, marks, valid_length)
    rows, g = xp.arange(lags.shape[0]), wide(d_loglike)
    # From the last event to the end of the observation, all marks at once.
    d, G = max_time[:, None] - last, g[:, None]
    e = xp.exp(-beta * d)
    g_se = G * alpha + d_out_state
    g_d = -G * lda - beta * e * g_se * s
    g_lda, g_alpha, g_beta = -G * d, -G * s * (1 - e), -d * e * g_se * s
    g_s, g_last, g_max = g_se * e - G * alpha, -g_d, g_d.sum(1)
    g_t, g_lags = xp.zeros_like(g), xp.zeros_like(lags)
    for j in range(len(seen) - 1, -1, -1):
        valid, c, old, d, e = seen[j]
        a, b, mu, zero = alpha[c], beta[c], lda[rows, c], xp.zeros_like(g)
        se = old * e
        g_rate = g / intensity(rows, lda, alpha, beta, c, se)
        g_se = g_s[rows, c] + g_rate * a * b + g * a
        g_d = -g * mu - b * e * g_se * old

        def add(to: Any, value: Any, c: Any = c, valid: Any = valid, zero: Any = zero) -> None:
            to[rows, c] = to[rows, c] + xp.where(valid, value, zero)

        add(g_lda, g_rate - g * d)
        add(g_alpha, g_rate * b * se - g * (old - se))
        add(g_beta, g_rate * a * se - d * e * g_se * old)
        g_t = g_t + xp.where(valid, g_last[rows, c] + g_d, zero)
        g_s[rows, c] = xp.where(valid, g_se * e - g * a, g_s[rows, c])
        g_last[rows, c] = xp.where(valid, -g_d, g_last[rows, c])
        g_lags[:, j] = xp.where(valid, g_t, zero)
    return g_lda, g_alpha.sum(0), g_beta.sum(0), g_s, g_lags, g_max


@backward_hawkesll.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    fits("d_loglike d_out_state", ins, hawkesll.shape_rule(p, ins[2:]))
    return [ins[2], ins[3], ins[4], ins[5], ins[6], ins[9]]


@backward_hawkesll.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = next((x for i, x in enumerate(ins) if x is not None and i != 7), outs[0])
    return [_I4 if i == 7 else t for i in range(10)], [t] * 6


backward_hawkesll.cost(lambda p, ins, outs: 60 * ins[6][0] * ins[6][1])


@op("_backward_sample_multinomial", inputs="dy data sample")
def backward_sample_multinomial(k: Call, p: Params, dy: Array, data: Array, sample: Array) -> Array:
    """The gradient of the log-probabilities of drawn indices: dy / probability at each index.

    Parameters
    ----------
    dy : array
        Gradient of the log-probabilities.
    data : array (..., k)
    sample : array
        The drawn indices.
    """
    xp = k.xp
    n = math.prod(data.shape[:-1])
    rows = wide(data).reshape(n, data.shape[-1])
    index = sample.astype(np.int64).reshape(n, math.prod(sample.shape) // max(n, 1))
    found = xp.zeros(rows.shape, rows.dtype)
    at = xp.arange(n)[:, None] + xp.zeros_like(index)
    xp.add.at(found, (at, index), dy.reshape(index.shape) / xp.take_along_axis(rows, index, 1))
    return found.reshape(data.shape)


@backward_sample_multinomial.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    dy, data, sample = ins
    rules.fits("dy", ins, [sample])
    if data[:-1] not in (sample[: len(data) - 1], ()):
        raise ValueError(f"sample {sample} must begin with the shape of the distributions, {data[:-1]}")
    return [data]


backward_sample_multinomial.dtype(lambda p, ins, outs: (ins, [ins[1]]))


@op("_trailing_like", inputs="data like~", grad=lambda F, dy, like_data: (F._trailing_sum(dy, like_data), None))
def trailing_like(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Repeat `data` along the dimensions that `like` has beyond it.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used; it begins with the shape of `data`.
    """
    shape = tuple(like.shape)
    return k.xp.broadcast_to(data.reshape(tuple(data.shape) + (1,) * (len(shape) - data.ndim)), shape).copy()


@trailing_like.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if ins[1][: len(ins[0])] != ins[0]:
        raise ValueError(f"like {ins[1]} does not begin with data {ins[0]}")
    return [ins[1]]


@op("_trailing_sum", inputs="data like~", grad=lambda F, dy, like_data: (F._trailing_like(dy, like_data), None))
@silent
def trailing_sum(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Sum `data` over the dimensions that it has beyond those of `like`.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used.
    """
    return sum_over(data, tuple(range(like.ndim, data.ndim)))


@trailing_sum.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if ins[0][: len(ins[1])] != ins[1]:
        raise ValueError(f"data {ins[0]} does not begin with like {ins[1]}")
    return [ins[1]]


def _dirichlet_slopes(F: Operators, p: Params, dy: Operand, y: Operand, sample: Operand, alpha: Operand) -> Any:
    x, g = widen(F, sample), widen(F, dy)
    g = F.expand_dims(g if p.is_log else g * widen(F, y), axis=-1)
    few = widen(F, alpha)
    a = F._middle_like(few, x)
    total = F._digamma(F.broadcast_mul(F.sum(a, axis=-1, keepdims=True), F.ones_like(x)))
    by_alpha = F._middle_sum(F.broadcast_mul(g, F.log(x) + total - F._digamma(a)), few)
    return narrow(F, F.broadcast_mul(g, (a - 1) / x), sample), narrow(F, by_alpha, alpha)


@op("_middle_like", inputs="data like~", grad=lambda F, dy, like_data: (F._middle_sum(dy, like_data), None))
def middle_like(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Repeat `data` along the dimensions that `like` has more, before the last one.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used.
    """
    return k.xp.broadcast_to(data.reshape(aligned_shape(data.shape, like.shape)), tuple(like.shape)).copy()


@op("_middle_sum", inputs="data like~", grad=lambda F, dy, like_data: (F._middle_like(dy, like_data), None))
@silent
def middle_sum(k: Call, p: Params, data: Array, like: Array) -> Array:
    """Sum `data` over the dimensions that it has more than `like`, before the last one.

    Parameters
    ----------
    data : array
    like : array
        Only its shape is used.
    """
    return sum_over(data, tuple(range(like.ndim - 1, data.ndim - 1)))


def _around(ins: list[Any], short: Any, long: Any) -> Any:
    if not short or long[: len(short) - 1] != short[:-1] or long[-1:] != short[-1:]:
        raise ValueError(f"{long} must be {short} with further dimensions before the last")
    return [ins[1]]


middle_like.shape(lambda p, ins: _around(ins, *ins))
middle_sum.shape(lambda p, ins: _around(ins, *ins[::-1]))

pdf_dirichlet.grad(_dirichlet_slopes)
