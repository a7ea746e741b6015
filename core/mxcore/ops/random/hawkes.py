"""Point processes: the likelihood of a Hawkes process."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.rules import within_limits

__all__ = ["HAWKES_INPUTS", "check_events", "hawkesll", "intensity", "walk"]


HAWKES_INPUTS = "lda alpha beta state lags marks valid_length max_time"
_I4 = np.dtype("int32")


def _marks(xp: Any, marks: Any, n_marks: int, j: int) -> Any:
    return xp.clip(marks[:, j].astype(np.int64), 0, n_marks - 1)


def check_events(k: Any, n_marks: int, marks: Any, valid_length: Any) -> None:
    """Raise an error for lengths and marks that cannot be, where values may be read; not for marks behind the end."""
    n, length = marks.shape
    if k.device.async_ or not n:
        return
    within_limits("valid_length", valid_length, 0, length, "a length")
    if length and not (marks.min().item() >= 0 and marks.max().item() < n_marks):
        ends = valid_length.reshape(-1, 1)
        within_limits("marks", marks[k.xp.arange(length).reshape(1, -1) < ends], 0, n_marks - 1, "a mark", IndexError)


def walk(xp: Any, lda: Any, alpha: Any, beta: Any, state: Any, lags: Any, marks: Any, valid_length: Any) -> Any:
    """Walk over the events: (state, time of the last event of each mark, what each step saw)."""
    n, length = lags.shape
    rows = xp.arange(n)
    s, last, t, seen = state.copy(), xp.zeros_like(state), lags[:, :0].sum(1), []
    for j in range(length):
        valid, c = valid_length > j, _marks(xp, marks, s.shape[1], j)
        t = xp.where(valid, t + lags[:, j], t)
        old = s[rows, c]
        d = t - last[rows, c]
        e = xp.exp(-beta[c] * d)
        seen.append((valid, c, old, d, e))
        s[rows, c] = xp.where(valid, 1 + old * e, old)
        last[rows, c] = xp.where(valid, t, last[rows, c])
    return s, last, seen


def intensity(rows: Any, lda: Any, alpha: Any, beta: Any, c: Any, se: Any) -> Any:
    """The intensity of the marks `c`: what always is, and what their past events excite."""
    return lda[rows, c] + alpha[c] * beta[c] * se


@op(
    "_contrib_hawkesll",
    inputs=HAWKES_INPUTS,
    labels="outputs",
    outputs="output out_state",
    helpers={"check_events": check_events},
)
@silent
def hawkesll(
    k: Call,
    p: Params,
    lda: Array,
    alpha: Array,
    beta: Array,
    state: Array,
    lags: Array,
    marks: Array,
    valid_length: Array,
    max_time: Array,
) -> Any:
    """The log likelihood of events under Hawkes processes with exponential decay, one process for each mark.

    The intensity of mark k is ``lda[k] + alpha[k] * beta[k] * sum(exp(-beta[k] * (t - t_i)))`` over its events before
    t.

    Parameters
    ----------
    lda : array, (N, K)
        Background intensity of each mark, for each sequence.
    alpha, beta : array, (K,)
        Branching ratio, and decay.
    state : array, (N, K)
        The sum above at time 0: what earlier events left.
    lags : array, (N, T)
        Time since the event before, of any mark.
    marks : array of int32, (N, T)
        From 0 to K - 1, as far as the sequences go.
    valid_length : array, (N,)
        How many events each sequence has, from 0 to T.
    max_time : array, (N,)
        How long it was observed.

    Returns
    -------
    loglike : array, (N,)
    out_state : array, (N, K)
        The state at `max_time`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``hawkesll``. MXNet has gradients of the likelihood for lda, alpha and beta only;
    here there are all of both outputs. Source: Bacry, Mastromatteo and Muzy, "Hawkes processes in finance", 2015.
    """
    xp, dtype = k.xp, lags.dtype
    check_events(k, alpha.shape[0], marks, valid_length)
    lda, alpha, beta, state, lags, max_time = map(wide, (lda, alpha, beta, state, lags, max_time))
    s, last, seen = walk(xp, lda, alpha, beta, state, lags, marks, valid_length)
    rows = xp.arange(lags.shape[0])
    d = max_time[:, None] - last
    se = s * xp.exp(-beta * d)
    total = -(lda * d + alpha * (s - se)).sum(1)
    for valid, c, old, d, e in seen:
        ll = xp.log(intensity(rows, lda, alpha, beta, c, old * e)) - lda[rows, c] * d - alpha[c] * old * (1 - e)
        total = total + xp.where(valid, ll, 0)
    return total.astype(dtype), se.astype(dtype)


@hawkesll.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    lags = ins[4]
    if len(lags) != 2:
        raise ValueError(f"lags must be (N, T), got {lags}")
    n, marks = lags[0], ins[1][-1] if ins[1] else 0
    wanted = {
        "lda": (n, marks),
        "alpha": (marks,),
        "beta": (marks,),
        "state": (n, marks),
        "marks": lags,
        "valid_length": (n,),
        "max_time": (n,),
    }
    for name, shape in zip(HAWKES_INPUTS.split(), ins):
        if name in wanted and shape != wanted[name]:
            raise ValueError(f"{name} must be {wanted[name]} for lags {lags} and alpha {ins[1]}, got {shape}")
    return [(n,), (n, marks)]


@hawkesll.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = next((x for i, x in enumerate(ins) if x is not None and i != 5), outs[0])
    if t is not None and t.kind != "f":
        raise TypeError(f"lda, lags and the others must be floats, got {t.name}")
    if ins[5] is not None and ins[5] != _I4:
        raise TypeError(f"marks must be int32, got {ins[5].name}")
    return [_I4 if i == 5 else t for i in range(8)], [t, t]


hawkesll.cost(lambda p, ins, outs: 30 * ins[4][0] * ins[4][1])
