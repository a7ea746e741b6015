"""Connectionist temporal classification: sums over all alignments of a label with the time steps, a sample at a time.

The *path* of a label is blank, first class, blank, second class … blank. ``alpha[t, s]`` is the logarithm of the probability of arriving at
place s at time t, ``beta[t, s]`` of reaching the end from there, what is emitted at t included in both.
"""
from __future__ import annotations

import numpy as np

from .. import math as m
from ..jit import helper, kernel
from ._arrays import flat, writable
from .softmax import log_softmax

__all__ = ["loss", "loss_backward"]

_NEVER = -1e30  # logarithm of a probability that is as good as zero, and can still be added to


@helper(inline=False)
def _lay_out(label, count, blank, path, skip):
    """Write the path of a label of `count` classes, and whether a place may be reached from two places before."""
    skip[:] = False
    for s in range(2 * count + 1):
        path[s] = label[s // 2] if s % 2 else blank
        skip[s] = s > 1 and path[s] != blank and path[s] != path[s - 2]


@helper(inline=False)
def _emitted(logs, at, path, row):
    for s in range(row.size):
        row[s] = logs[at + path[s]]


@helper(inline=False)
def _merge(a, b, c, skip, emitted, out):
    """out = log(exp(a) + exp(b) + exp(c where it is allowed)) + emitted"""
    never = out.dtype.type(_NEVER)
    for s in range(out.size):
        x, y, z = a[s], b[s], m.where(skip[s], c[s], never)
        top = m.where(x < y, y, x)
        top = m.where(top < z, z, top)
        merged = top + m.log(m.exp(x - top) + m.exp(y - top) + m.exp(z - top)) + emitted[s]
        out[s] = m.where(merged < never, never, merged)


@helper(inline=False)
def _forward(logs, at, stride, steps, path, skip, ends, row, alpha):
    """Fill alpha, whose places begin behind two that cannot be, and return the logarithm of the probability of the label."""
    never = logs.dtype.type(_NEVER)
    alpha[:, :] = never
    for s in range(min(ends, 2)):
        alpha[0, 2 + s] = logs[at + path[s]]
    for t in range(1, steps):
        _emitted(logs, at + t * stride, path, row[:ends])
        before = alpha[t - 1]
        _merge(before[2:], before[1:], before, skip, row, alpha[t, 2:2 + ends])
    x, y = alpha[steps - 1, ends + 1], alpha[steps - 1, ends]
    top = max(x, y)
    return top + m.log(m.exp(x - top) + m.exp(y - top))


@helper(inline=False)
def _likely(alpha, beta, emitted, total, share):
    zero = share.dtype.type(0)
    for s in range(share.size):
        x = alpha[s] + beta[s] - emitted[s] - total
        share[s] = m.exp(m.where(x > zero, zero, x))


@helper(inline=False)
def _share(logs, at, stride, steps, path, skip, ends, total, alpha, beta, row, share, out):
    """Subtract from `out`, laid out as `logs`, the probability of being at each class at each time, given the label."""
    beta[:, :] = logs.dtype.type(_NEVER)
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
            out[here + path[s]] -= share[s]


@kernel(threshold=1 << 10)
def _losses(first, last, times, classes, blank, logs, labels, lengths, steps, possible, loss):
    room, stride = 2 * labels.shape[1] + 3, loss.size * classes
    path, skip, row = np.empty(room, np.int64), np.empty(room, np.bool_), np.empty(room, logs.dtype)
    alpha = np.empty((times, room), logs.dtype)
    for i in range(first, last):
        loss[i] = logs.dtype.type(0)
        if possible[i]:
            _lay_out(labels[i], lengths[i], blank, path, skip)
            loss[i] = -_forward(logs, i * classes, stride, steps[i], path, skip, 2 * lengths[i] + 1, row, alpha)


@kernel(threshold=1 << 10)
def _gradients(first, last, times, classes, blank, logs, labels, lengths, steps, possible, d_loss, out):
    room, stride, zero = 2 * labels.shape[1] + 3, d_loss.size * classes, logs.dtype.type(0)
    path, skip, row, share = np.empty(room, np.int64), np.empty(room, np.bool_), np.empty(room, logs.dtype), np.empty(room, logs.dtype)
    alpha, beta = np.empty((times, room), logs.dtype), np.empty((2, room), logs.dtype)
    for i in range(first, last):
        running = steps[i] if possible[i] else 0
        for t in range(times):
            at = t * stride + i * classes
            x, y = logs[at:at + classes], out[at:at + classes]
            for k in range(classes):
                y[k] = m.exp(x[k]) if t < running else zero
        if running:
            ends = 2 * lengths[i] + 1
            _lay_out(labels[i], lengths[i], blank, path, skip)
            total = _forward(logs, i * classes, stride, running, path, skip, ends, row, alpha)
            _share(logs, i * classes, stride, running, path, skip, ends, total, alpha, beta, row, share, out)
            for t in range(running):
                y = out[t * stride + i * classes:t * stride + (i + 1) * classes]
                for k in range(classes):
                    y[k] *= d_loss[i]


def _facts(data: np.ndarray, label: np.ndarray, data_lengths: np.ndarray | None, label_lengths: np.ndarray | None, blank_first: bool):
    """Return (blank, labels, their lengths, steps, whether these are enough) of each sample; None if a class is out of range."""
    times, samples, classes = data.shape
    labels, width = np.ascontiguousarray(label, dtype=np.int64), label.shape[1]
    blank, padding = (0, 0) if blank_first else (classes - 1, -1)
    if label_lengths is not None:
        lengths = np.clip(label_lengths.astype(np.int64), 0, width)
    else:
        lengths = np.cumprod(labels != padding, axis=1).sum(axis=1)
    inside = np.arange(width) < lengths[:, None]
    if ((labels < 0) | (labels >= classes))[inside].any():
        raise IndexError(f"label {labels[inside & ((labels < 0) | (labels >= classes))][0]} is not one of the {classes} classes")
    given = np.full(samples, times) if data_lengths is None else np.clip(data_lengths.astype(np.int64), 0, times)
    repeats = ((labels[:, 1:] == labels[:, :-1]) & inside[:, 1:]).sum(axis=1)
    return blank, labels, lengths, np.maximum(given, 1), (given > 0) & (lengths + repeats <= given)


def _logarithms(data: np.ndarray) -> np.ndarray:
    logs = np.empty(data.shape, data.dtype)
    log_softmax(data, logs)
    return logs.reshape(-1)


def loss(data: np.ndarray, label: np.ndarray, data_lengths: np.ndarray | None, label_lengths: np.ndarray | None, blank_first: bool,
         out: np.ndarray) -> None:
    """Write the loss of each sample.

    Parameters
    ----------
    data : ndarray (time, samples, classes)
        Logits.
    label : ndarray (samples, width)
    data_lengths, label_lengths : ndarray (samples,) or None
        Without the latter a label ends at its first padding, 0 or (with the blank last) -1.
    blank_first : bool
        The blank is class 0, not the last.
    out : ndarray (samples,)
        Minus the logarithm of the label's probability; 0 where the steps are too few for it.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 CTCLoss.
    """
    facts = _facts(data, label, data_lengths, label_lengths, blank_first)
    _, samples, classes = data.shape
    work = data.shape[0] * samples * (2 * label.shape[1] + 1)
    with writable(out) as (y,):
        _losses.run(_losses.workers(work), samples, data.shape[0], classes, facts[0], _logarithms(data), *facts[1:], y)


def loss_backward(d_loss: np.ndarray, data: np.ndarray, label: np.ndarray, data_lengths: np.ndarray | None, label_lengths: np.ndarray | None,
                  blank_first: bool, d_data: np.ndarray) -> None:
    """Write the gradient of :func:`loss` with respect to the logits."""
    facts = _facts(data, label, data_lengths, label_lengths, blank_first)
    _, samples, classes = data.shape
    work = data.shape[0] * samples * (2 * label.shape[1] + 1)
    with writable(d_data) as (dx,):
        _gradients.run(_gradients.workers(work), samples, data.shape[0], classes, facts[0], _logarithms(data), *facts[1:], flat(d_loss),
                       dx.reshape(-1))
