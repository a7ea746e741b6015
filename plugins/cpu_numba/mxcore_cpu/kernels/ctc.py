"""Connectionist temporal classification: sums over all alignments of a label with the time steps, a sample at a time.

The *path* of a label is blank, first class, blank, second class … blank. ``alpha[t, s]`` is the logarithm of the
probability of arriving at place s at time t, ``beta[t, s]`` of reaching the end from there, what is emitted at t
included in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import math as m
from ..jit import helper, kernel
from ..typing import Array, Scalar
from ._arrays import flat, writable
from .columns import fill
from .softmax import log_softmax

__all__ = ["loss", "loss_backward"]


@helper(inline=False)
def _lay_out(label: Array, count: int, blank: int, path: Array, skip: Array) -> None:
    """Write the path of a label of `count` classes, and whether a place may be reached from two places before."""
    skip[:] = False
    for s in range(2 * count + 1):
        path[s] = label[s // 2] if s % 2 else blank
        skip[s] = s > 1 and path[s] != blank and path[s] != path[s - 2]


@helper(inline=False)
def _emitted(logs: Array, at: int, path: Array, row: Array) -> None:
    for s in range(row.size):
        row[s] = logs[at + path[s]]


@helper(inline=False)
def _merge(a: Array, b: Array, c: Array, skip: Array, emitted: Array, out: Array) -> None:
    """out = log(exp(a) + exp(b) + exp(c where it is allowed)) + emitted; -infinity is the log of what cannot be."""
    never, zero = out.dtype.type(-np.inf), out.dtype.type(0)
    for s in range(out.size):
        x, y, z = a[s], b[s], m.where(skip[s], c[s], never)
        top = m.where(x < y, y, x)
        top = m.where(top < z, z, top)
        top = m.where(top == never, zero, top)
        out[s] = top + m.log(m.exp(x - top) + m.exp(y - top) + m.exp(z - top)) + emitted[s]


@helper(inline=False)
def _forward(
    logs: Array, at: int, stride: int, steps: int, path: Array, skip: Array, ends: int, row: Array, alpha: Array
) -> Scalar:
    """Fill alpha, whose places begin behind two that cannot be, and return the log-probability of the label."""
    never, zero = logs.dtype.type(-np.inf), logs.dtype.type(0)
    alpha[:, :] = never
    for s in range(min(ends, 2)):
        alpha[0, 2 + s] = logs[at + path[s]]
    for t in range(1, steps):
        _emitted(logs, at + t * stride, path, row[:ends])
        before = alpha[t - 1]
        _merge(before[2:], before[1:], before, skip, row, alpha[t, 2 : 2 + ends])
    x, y = alpha[steps - 1, ends + 1], alpha[steps - 1, ends]
    top = x if x > y else y
    top = zero if top == never else top
    return top + m.log(m.exp(x - top) + m.exp(y - top))


@helper(inline=False)
def _likely(alpha: Array, beta: Array, emitted: Array, total: Scalar, share: Array) -> None:
    never, zero = share.dtype.type(-np.inf), share.dtype.type(0)
    reached = zero if total == never else total
    for s in range(share.size):
        x = m.exp(alpha[s] + beta[s] - emitted[s] - reached)
        share[s] = m.where((alpha[s] == never) | (beta[s] == never), zero, x)


@helper(inline=False)
def _share(
    logs: Array,
    at: int,
    stride: int,
    steps: int,
    path: Array,
    skip: Array,
    ends: int,
    total: Scalar,
    alpha: Array,
    beta: Array,
    row: Array,
    share: Array,
    out: Array,
) -> None:
    """Add to `out`, laid out as `logs`, the probability of being at each class at each time, given the label."""
    beta[:, :] = logs.dtype.type(-np.inf)
    for t in range(steps - 1, -1, -1):
        now, after, here = beta[t % 2], beta[(t + 1) % 2], at + t * stride
        _emitted(logs, here, path, row[:ends])
        if t == steps - 1:
            for s in range(max(0, ends - 2), ends):
                now[s] = row[s]
        else:
            _merge(after, after[1:], after[2:], skip[2:], row, now[:ends])
        _likely(alpha[t, 2:], now, row, total, share[:ends])
        for s in range(ends):
            out[here + path[s]] += share[s]


@helper(inline=False)
def _beside(logs: Array, factor: Scalar, out: Array) -> None:
    """out = (probabilities - out) * factor; a class is expected once at most, whatever rounding adds."""
    one = out.dtype.type(1)
    for k in range(out.size):
        out[k] = (m.exp(logs[k]) - m.where(out[k] > one, one, out[k])) * factor


@kernel(threshold=1 << 10)
def _losses(
    first: int,
    last: int,
    times: int,
    classes: int,
    blank: int,
    logs: Array,
    labels: Array,
    lengths: Array,
    steps: Array,
    possible: Array,
    loss: Array,
) -> None:
    room, stride = 2 * labels.shape[1] + 3, loss.size * classes
    path, skip, row = np.empty(room, np.int64), np.empty(room, np.bool_), np.empty(room, logs.dtype)
    alpha = np.empty((times, room), logs.dtype)
    for i in range(first, last):
        loss[i] = logs.dtype.type(0)
        if possible[i]:
            _lay_out(labels[i], lengths[i], blank, path, skip)
            loss[i] = -_forward(logs, i * classes, stride, steps[i], path, skip, 2 * lengths[i] + 1, row, alpha)


@kernel(threshold=1 << 10)
def _gradients(
    first: int,
    last: int,
    times: int,
    classes: int,
    blank: int,
    logs: Array,
    labels: Array,
    lengths: Array,
    steps: Array,
    possible: Array,
    d_loss: Array,
    out: Array,
) -> None:
    room, stride, zero = 2 * labels.shape[1] + 3, d_loss.size * classes, logs.dtype.type(0)
    path, skip, row, share = (
        np.empty(room, np.int64),
        np.empty(room, np.bool_),
        np.empty(room, logs.dtype),
        np.empty(room, logs.dtype),
    )
    alpha, beta = np.empty((times, room), logs.dtype), np.empty((2, room), logs.dtype)
    for i in range(first, last):
        running = steps[i] if possible[i] else 0
        for t in range(times):
            fill(out, t * stride + i * classes, classes, zero)
        if running:
            ends = 2 * lengths[i] + 1
            _lay_out(labels[i], lengths[i], blank, path, skip)
            total = _forward(logs, i * classes, stride, running, path, skip, ends, row, alpha)
            _share(logs, i * classes, stride, running, path, skip, ends, total, alpha, beta, row, share, out)
            for t in range(running):
                at = t * stride + i * classes
                _beside(logs[at : at + classes], d_loss[i], out[at : at + classes])


def _plain(labels: Sequence[Any]) -> tuple[Any, ...]:
    """What the kernels take of labels, the class of the blank first; NumPy would keep another order of memory."""
    blank, *arrays = labels
    return blank, *map(np.ascontiguousarray, arrays)


def _logarithms(data: Array) -> Array:
    logs = np.empty(data.shape, data.dtype)
    log_softmax(data, logs)
    return logs.reshape(-1)


def _sizes(data: Array, width: int) -> tuple[int, int, int, int]:
    """How much work there is, the number of samples, of time steps and of classes."""
    times, samples, classes = data.shape
    return times * samples * (2 * width + 1), samples, times, classes


def loss(data: Array, labels: Sequence[Any], out: Array) -> None:
    """Write the loss of each sample.

    Parameters
    ----------
    data : ndarray (time, samples, classes)
        Logits.
    labels : (int, ndarray, ndarray, ndarray, ndarray)
        What the operator's `read_labels` gives: the class of the blank; the labels, (samples, width); how many each
        sample has; how many steps; and whether these suffice.
    out : ndarray (samples,)
        Minus the logarithm of the label's probability; 0 where the steps are too few for it, infinity where logits of
        minus infinity leave no alignment.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 CTCLoss.
    """
    (blank, *arrays), (work, samples, times, classes) = _plain(labels), _sizes(data, labels[1].shape[1])
    with writable(out) as (y,):
        _losses.run(_losses.workers(work), samples, times, classes, blank, _logarithms(data), *arrays, y)


def loss_backward(d_loss: Array, data: Array, labels: Sequence[Any], d_data: Array) -> None:
    """Write the gradient of :func:`loss` with respect to the logits."""
    (blank, *arrays), (work, samples, times, classes) = _plain(labels), _sizes(data, labels[1].shape[1])
    with writable(d_data) as (dx,):
        _gradients.run(
            _gradients.workers(work),
            samples,
            times,
            classes,
            blank,
            _logarithms(data),
            *arrays,
            flat(d_loss),
            dx.reshape(-1),
        )
