"""The likelihood of a Hawkes process, a sequence at a time, and its gradients."""

from __future__ import annotations

import math

import numpy as np

from ..jit import helper, kernel
from ..typing import Array, Scalar
from ._arrays import dense, flat, writable

__all__ = ["hawkes", "hawkes_backward"]


@helper
def _mark(marks: Array, i: int, j: int, n: int) -> Scalar:
    return min(max(np.int64(marks[i, j]), np.int64(0)), np.int64(n - 1))


@kernel(threshold=1 << 12)
def _forward(
    first: int,
    last: int,
    lda: Array,
    alpha: Array,
    beta: Array,
    state: Array,
    lags: Array,
    marks: Array,
    lengths: Array,
    ends: Array,
    times: Array,
    loglike: Array,
    s: Array,
    wrong: Array,
) -> None:
    one, zero = loglike.dtype.type(1.0), loglike.dtype.type(0.0)
    n_marks = alpha.size
    for i in range(first, last):
        total, t = zero, zero
        for c in range(n_marks):
            s[i, c] = state[i, c]
            times[i, c] = zero
        if not (lengths[i] >= 0 and lengths[i] <= lags.shape[1]):
            wrong[0] = True
            continue
        for j in range(lags.shape[1]):
            if not lengths[i] > j:
                break
            c = np.int64(marks[i, j])
            if c < 0 or c >= n_marks:
                wrong[0] = True
                break
            t += lags[i, j]
            d = t - times[i, c]
            e = math.exp(-beta[c] * d)
            se = s[i, c] * e
            total += math.log(lda[i, c] + alpha[c] * beta[c] * se) - lda[i, c] * d - alpha[c] * (s[i, c] - se)
            s[i, c] = one + se
            times[i, c] = t
        for c in range(n_marks):
            d = ends[i] - times[i, c]
            se = s[i, c] * math.exp(-beta[c] * d)
            total -= lda[i, c] * d + alpha[c] * (s[i, c] - se)
            s[i, c] = se
        loglike[i] = total


@kernel(threshold=1 << 12)
def _backward(
    first: int,
    last: int,
    d_loglike: Array,
    d_state: Array,
    lda: Array,
    alpha: Array,
    beta: Array,
    state: Array,
    lags: Array,
    marks: Array,
    lengths: Array,
    ends: Array,
    s: Array,
    times: Array,
    seen: Array,
    g_lda: Array,
    g_alpha: Array,
    g_beta: Array,
    g_state: Array,
    g_lags: Array,
    g_ends: Array,
) -> None:
    one, zero = lda.dtype.type(1.0), lda.dtype.type(0.0)
    n_marks, n = alpha.size, lags.shape[1]
    for i in range(first, last):
        t, events = zero, 0
        for c in range(n_marks):
            s[i, c] = state[i, c]
            times[i, c] = zero
        for j in range(n):
            g_lags[i, j] = zero
            if lengths[i] > j:
                c = _mark(marks, i, j, n_marks)
                t += lags[i, j]
                d = t - times[i, c]
                seen[i, j, 0], seen[i, j, 1] = s[i, c], d
                s[i, c] = one + s[i, c] * math.exp(-beta[c] * d)
                times[i, c] = t
                events = j + 1
        g, g_t, g_end = d_loglike[i], zero, zero
        for c in range(n_marks):
            d = ends[i] - times[i, c]
            e = math.exp(-beta[c] * d)
            g_se = g * alpha[c] + d_state[i, c]
            g_d = -g * lda[i, c] - beta[c] * e * g_se * s[i, c]
            g_lda[i, c] = -g * d
            g_alpha[i, c] = -g * s[i, c] * (one - e)
            g_beta[i, c] = -d * e * g_se * s[i, c]
            g_state[i, c] = g_se * e - g * alpha[c]
            times[i, c] = -g_d  # from here on: the gradient of the time of the last event
            g_end += g_d
        g_ends[i] = g_end
        for j in range(events - 1, -1, -1):
            c = _mark(marks, i, j, n_marks)
            old, d = seen[i, j, 0], seen[i, j, 1]
            e = math.exp(-beta[c] * d)
            rate = g / (lda[i, c] + alpha[c] * beta[c] * old * e)
            g_se = g_state[i, c] + rate * alpha[c] * beta[c] + g * alpha[c]
            g_d = -g * lda[i, c] - beta[c] * e * g_se * old
            g_lda[i, c] += rate - g * d
            g_alpha[i, c] += rate * beta[c] * old * e - g * old * (one - e)
            g_beta[i, c] += rate * alpha[c] * old * e - d * e * g_se * old
            g_t += times[i, c] + g_d
            times[i, c] = -g_d
            g_state[i, c] = g_se * e - g * alpha[c]
            g_lags[i, j] = g_t


def hawkes(
    lda: Array,
    alpha: Array,
    beta: Array,
    state: Array,
    lags: Array,
    marks: Array,
    lengths: Array,
    ends: Array,
    loglike: Array,
    out_state: Array,
) -> bool:
    """Write log likelihoods (n,) and final states (n, marks); `marks` is int32, see the operator ``_contrib_hawkesll``.

    False where lengths or marks are out of range: then the results are nothing to go by.
    """
    wrong = np.zeros(1, np.bool_)
    with writable(loglike, out_state) as (y, s):
        _forward.run(
            _forward.workers(4 * lags.size),
            lags.shape[0],
            dense(lda),
            flat(alpha),
            flat(beta),
            dense(state),
            dense(lags),
            dense(marks),
            flat(lengths),
            flat(ends),
            np.empty_like(s),
            y,
            s,
            wrong,
        )
    return not wrong[0]


def hawkes_backward(
    d_loglike: Array,
    d_state: Array,
    lda: Array,
    alpha: Array,
    beta: Array,
    state: Array,
    lags: Array,
    marks: Array,
    lengths: Array,
    ends: Array,
    grads: list[Array | None],
) -> None:
    """Write the gradients that are not None: of lda, alpha, beta, state, lags, ends, in the operator's order."""
    kind, like = lda.dtype, lda.shape
    own = [np.empty(x.shape, kind) for x in (lda, lda, lda, lda, lags, ends)]
    _backward.run(
        _backward.workers(8 * lags.size),
        lags.shape[0],
        flat(d_loglike),
        dense(d_state),
        dense(lda),
        flat(alpha),
        flat(beta),
        dense(state),
        dense(lags),
        dense(marks),
        flat(lengths),
        flat(ends),
        np.empty(like, kind),
        np.empty(like, kind),
        np.empty((*lags.shape, 2), kind),
        *own,
    )
    with np.errstate(all="ignore"):  # sums warn in NumPy's name, where nobody silences them
        own[1], own[2] = own[1].sum(0), own[2].sum(0)
    for grad, value in zip(grads, own):
        if grad is not None:
            grad[...] = value
