"""Point processes: the likelihood of a Hawkes process; and the quadratic function, MXNet's example of an operator."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.op import op
from ..parameters import Float
from ..testing.sample import Ints, Sample, Values
from .dense import wide
from .rules import fits, within_limits
from .silent import silent

__all__ = ["check_events"]

_INPUTS = "lda alpha beta state lags marks valid_length max_time"
_I4 = np.dtype("int32")


def _marks(xp: Any, marks: Any, n_marks: int, j: int) -> Any:
    return xp.clip(marks[:, j].astype(np.int64), 0, n_marks - 1)


def check_events(k: Any, n_marks: int, marks: Any, valid_length: Any) -> None:
    """Raise an error for lengths and marks that cannot be, where values may be looked at. Marks behind the end are not
    read.
    """
    n, length = marks.shape
    if k.device.async_ or not n:
        return
    within_limits("valid_length", valid_length, 0, length, "a length")
    if length and not (marks.min().item() >= 0 and marks.max().item() < n_marks):
        ends = valid_length.reshape(-1, 1)
        within_limits("marks", marks[k.xp.arange(length).reshape(1, -1) < ends], 0, n_marks - 1, "a mark", IndexError)


def _steps(xp: Any, lda: Any, alpha: Any, beta: Any, state: Any, lags: Any, marks: Any, valid_length: Any) -> Any:
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


def _intensity(rows: Any, lda: Any, alpha: Any, beta: Any, c: Any, se: Any) -> Any:
    return lda[rows, c] + alpha[c] * beta[c] * se


_EVENTS = dict(grad=(True, True, True, True, True, False, False, True))


def _samples(n: int, length: int, marks: int, lengths: list[int], **kw: Any) -> Sample:
    return Sample(
        Values((n, marks), 0.5, 3.0),
        Values((marks,), 0.1, 0.6),
        Values((marks,), 0.5, 2.0),
        Values((n, marks), 0.0, 1.5),
        Values((n, length), 0.1, 2.0),
        Ints((n, length), 0, marks, "int32"),
        lengths,
        Values((n,), 2.0 * length, 2.5 * length),
        **_EVENTS,
        **kw,
    )


def _grad(
    F: Any,
    p: Any,
    d_output: Any,
    d_out_state: Any,
    lda: Any,
    alpha: Any,
    beta: Any,
    state_: Any,
    lags: Any,
    marks: Any,
    valid_length: Any,
    max_time: Any,
) -> Any:
    a, b, c, d, e, f = F._contrib_backward_hawkesll(
        d_output, d_out_state, lda, alpha, beta, state_, lags, marks, valid_length, max_time
    )
    return a, b, c, d, e, None, None, f


@op(
    "_contrib_hawkesll",
    inputs=_INPUTS,
    labels="outputs",
    outputs="output out_state",
    grad=_grad,
    helpers={"check_events": check_events},
    samples=[
        _samples(3, 5, 2, [5, 2, 0]),
        _samples(1, 4, 3, [4]),
        _samples(4, 1, 1, [1, 1, 0, 1]),
        _samples(2, 7, 3, [7, 4]),
    ],
)
@silent
def hawkesll(k, p, lda, alpha, beta, state, lags, marks, valid_length, max_time):
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
    s, last, seen = _steps(xp, lda, alpha, beta, state, lags, marks, valid_length)
    rows = xp.arange(lags.shape[0])
    d = max_time[:, None] - last
    se = s * xp.exp(-beta * d)
    total = -(lda * d + alpha * (s - se)).sum(1)
    for valid, c, old, d, e in seen:
        ll = xp.log(_intensity(rows, lda, alpha, beta, c, old * e)) - lda[rows, c] * d - alpha[c] * old * (1 - e)
        total = total + xp.where(valid, ll, 0)
    return total.astype(dtype), se.astype(dtype)


@hawkesll.shape
def _(p, ins):
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
    for name, shape in zip(_INPUTS.split(), ins):
        if name in wanted and shape != wanted[name]:
            raise ValueError(f"{name} must be {wanted[name]} for lags {lags} and alpha {ins[1]}, got {shape}")
    return [(n,), (n, marks)]


@hawkesll.dtype
def _(p, ins, outs):
    t = next((x for i, x in enumerate(ins) if x is not None and i != 5), outs[0])
    if t is not None and t.kind != "f":
        raise TypeError(f"lda, lags and the others must be floats, got {t.name}")
    if ins[5] is not None and ins[5] != _I4:
        raise TypeError(f"marks must be int32, got {ins[5].name}")
    return [_I4 if i == 5 else t for i in range(8)], [t, t]


hawkesll.cost(lambda p, ins, outs: 30 * ins[4][0] * ins[4][1])


@op(
    "_contrib_backward_hawkesll",
    inputs="d_loglike d_out_state " + _INPUTS,
    outputs="lda alpha beta state lags max_time",
    samples=[Sample((2,), (2, 2), *_samples(2, 3, 2, [3, 2]).inputs, grad=False, mxnet="internal")],
)
@silent
def backward_hawkesll(k, p, d_loglike, d_out_state, lda, alpha, beta, state, lags, marks, valid_length, max_time):
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
    s, last, seen = _steps(xp, lda, alpha, beta, state, lags, marks, valid_length)
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
        g_rate = g / _intensity(rows, lda, alpha, beta, c, se)
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
def _(p, ins):
    fits("d_loglike d_out_state", ins, hawkesll.shape_rule(p, ins[2:]))
    return [ins[2], ins[3], ins[4], ins[5], ins[6], ins[9]]


@backward_hawkesll.dtype
def _(p, ins, outs):
    t = next((x for i, x in enumerate(ins) if x is not None and i != 7), outs[0])
    return [_I4 if i == 7 else t for i in range(10)], [t] * 6


backward_hawkesll.cost(lambda p, ins, outs: 60 * ins[6][0] * ins[6][1])


# -- the quadratic function -----------------------------------------------------------------------------------------

_ABC = {n: Float(0.0) for n in "abc"}


def _cut(x: Any, dtype: Any) -> Any:
    """Floats as an integer dtype: cut off, wrapped around as C does."""
    return x.astype(np.int64).astype(dtype) if dtype.kind in "iu" else x


@op(
    "_contrib_quadratic",
    inputs="data",
    labels="inputs",
    params=_ABC,
    alias="data->output",
    expr="a * data * data + b * data + c",
    grad=lambda F, p, dy, data: F._contrib_backward_quadratic(dy, data, a=p.a, b=p.b, c=p.c),
    samples=[
        Sample((2, 3), params={"a": 3.0, "b": -5.0, "c": 1.5}),
        Sample((2, 3)),
        Sample((2, 3), params={"b": 0.5}, dtypes="float16 float32 float64"),
        Sample(np.array([-2, 0, 3, 200], np.int32), params={"a": 3.0, "b": 5.0, "c": 1.5}, grad=False),
        Sample((0, 3), params={"a": 1.0}),
    ],
)
def quadratic(k, p, data):
    """``a * x**2 + b * x + c`` of each element.

    Parameters
    ----------
    data : array
    a, b, c : float
        The coefficients.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``quadratic``; for integers the result is cut off.
    """
    x = data.astype(np.float64) if data.dtype.kind != "f" else data
    return _cut((p.a * x + p.b) * x + p.c, data.dtype)


def _quadratic_grads(F: Any, p: Any, dys: Any, dy_: Any, data: Any) -> Any:
    return F._contrib_backward_quadratic(dys[0], data, a=p.a, b=p.b, c=p.c), dys[0] * dy_ * (2 * p.a)


@op(
    "_contrib_backward_quadratic",
    inputs="dy data",
    params=_ABC,
    alias="dy->output",
    grad=_quadratic_grads,
    samples=[Sample((2, 3), (2, 3), params={"a": 3.0, "b": -5.0, "c": 1.5}, mxnet="internal")],
)
def backward_quadratic(k, p, dy_, data):
    """The gradient of `quadratic`: ``dy * (2 * a * x + b)``.

    Parameters
    ----------
    dy, data : array
    a, b, c : float
        As in `quadratic`.
    """
    return dy_ * (2 * p.a * data + p.b)
