"""Connectionist temporal classification."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._core.infer import merge_shape
from .._core.op import op
from .._core.params import Bool, Enum
from ..testing.sample import Sample, Values
from .dense import given, wide
from .rules import gradient_of, size_of
from .silent import silent

__all__: list[str] = []

_PARAMS = dict(use_data_lengths=Bool(False), use_label_lengths=Bool(False), blank_label=Enum("first last", "first"))
_INPUTS = "data label data_lengths[use_data_lengths] label_lengths[use_label_lengths]"


class _Problem:
    """Labels with blanks between them, and where each sequence ends.

    Attributes
    ----------
    logs : array
        Log-softmax of the data, (T, N, C).
    path : array of int
        (N, S) with S = 2 L + 1: blank, label, blank, label … blank.
    emit : array
        logs at the path, (T, N, S).
    steps, ends : array of int
        (N,): number of time steps, and of places on the path.
    skip : array of bool
        (N, S): whether a path may come from two places before.
    possible : array of bool
        (N,): whether there are steps enough for the label, with a blank between repeated classes.
    """

    def __init__(self, xp: Any, blank_label: str, ins: dict[str, Any]) -> None:
        self.xp = xp
        x = wide(ins["data"])
        steps, n, c = x.shape
        shifted = x - x.max(2, keepdims=True)
        self.logs = shifted - xp.log(xp.exp(shifted).sum(2, keepdims=True))
        label = ins["label"].astype(np.int64)
        blank, padding = (0, 0) if blank_label == "first" else (c - 1, -1)
        width = label.shape[1]
        if "label_lengths" in ins:
            lengths = xp.clip(ins["label_lengths"].astype(np.int64), 0, width)
        else:
            # The first padding ends a label.
            lengths = xp.cumprod((label != padding).astype(np.int64), 1).sum(1)
        self.ends = 2 * lengths + 1
        inside = xp.arange(width)[None, :] < lengths[:, None]
        given_steps = xp.clip(ins["data_lengths"].astype(np.int64), 0, steps) if "data_lengths" in ins else xp.full((n,), steps, np.int64)
        self.steps = xp.maximum(given_steps, 1)
        repeats = ((label[:, 1:] == label[:, :-1]) & inside[:, 1:]).sum(1)
        self.possible = (given_steps > 0) & (lengths + repeats <= given_steps)
        label = xp.where(inside, label, blank)
        if label.size and not (label.min().item() >= 0 and label.max().item() < c):
            raise IndexError(f"labels from {label.min().item()} to {label.max().item()} are given, there are classes from 0 to {c - 1}")
        self.path = xp.full((n, 2 * width + 1), blank, np.int64)
        self.path[:, 1::2] = label
        self.emit = xp.take_along_axis(self.logs, xp.broadcast_to(self.path[None], (steps, *self.path.shape)), 2)
        self.skip = xp.zeros(self.path.shape, np.bool_)
        self.skip[:, 2:] = (self.path[:, 2:] != blank) & (self.path[:, 2:] != self.path[:, :-2])

    def merged(self, a: Any, step: int, skip: Any) -> Any:
        """Log of the sum of what can come to each place: from itself, its neighbour, and where allowed the one after."""
        xp = self.xp
        one = self._moved(a, step)
        two = xp.where(skip, self._moved(one, step), _NEVER)
        top = xp.maximum(xp.maximum(a, one), two)
        return top + xp.log(xp.exp(a - top) + xp.exp(one - top) + xp.exp(two - top))

    def _moved(self, a: Any, step: int) -> Any:
        b = self.xp.full_like(a, _NEVER)
        if step > 0:
            b[:, 1:] = a[:, :-1]
        else:
            b[:, :-1] = a[:, 1:]
        return b

    def forward(self) -> tuple[Any, Any]:
        """Log probabilities of arriving at each place at each time (T, N, S), and of the whole label (N,)."""
        xp = self.xp
        alpha = xp.empty(self.emit.shape, self.emit.dtype)
        place = xp.arange(self.path.shape[1])[None, :]
        alpha[0] = xp.where((place < 2) & (place < self.ends[:, None]), self.emit[0], _NEVER)
        for t in range(1, alpha.shape[0]):
            alpha[t] = xp.maximum(self.merged(alpha[t - 1], 1, self.skip) + self.emit[t], _NEVER)
        at_end = alpha[self.steps - 1, xp.arange(alpha.shape[1])]
        last = xp.take_along_axis(at_end, (self.ends - 1)[:, None], 1)[:, 0]
        other = xp.take_along_axis(at_end, xp.maximum(self.ends - 2, 0)[:, None], 1)[:, 0]
        other = xp.where(self.ends > 1, other, _NEVER)
        top = xp.maximum(last, other)
        return alpha, top + xp.log(xp.exp(last - top) + xp.exp(other - top))

    def backward(self) -> Any:
        """Log probabilities of reaching the end from each place at each time, what it emits included."""
        xp = self.xp
        steps = self.emit.shape[0]
        beta = xp.empty(self.emit.shape, self.emit.dtype)
        place = xp.arange(self.path.shape[1])[None, :]
        final = (place == self.ends[:, None] - 1) | (place == self.ends[:, None] - 2)
        skip = xp.zeros(self.skip.shape, np.bool_)
        skip[:, :-2] = self.skip[:, 2:]
        for t in range(steps - 1, -1, -1):
            start = xp.where(final, self.emit[t], _NEVER)
            if t < steps - 1:
                onward = xp.maximum(self.merged(beta[t + 1], -1, skip) + self.emit[t], _NEVER)
                beta[t] = xp.where((self.steps == t + 1)[:, None], start, xp.where((self.steps > t + 1)[:, None], onward, _NEVER))
            else:
                beta[t] = xp.where((self.steps == t + 1)[:, None], start, _NEVER)
        return beta


#: Logarithm of a probability that is as good as zero, and can still be added to.
_NEVER = -1e30

_SAMPLE = ([(5, 2, 4), [[1, 2, 0], [3, 3, 1]]], {})


@op("CTCLoss", "ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss", inputs=_INPUTS, **_PARAMS,
    grad=lambda F, p, dy, data, label, data_lengths, label_lengths: (
        F._backward_ctc_loss(dy, data, label, data_lengths, label_lengths, **given(p, _PARAMS)), None, None, None),
    samples=[Sample((7, 2, 4), [[1, 2, 0], [3, 3, 1]], grad=(True, False)),
             Sample((6, 2, 4), [[1, 2, -1], [0, 0, 1]], params={"blank_label": "last"}, grad=(True, False)),
             Sample((7, 2, 4), [[1, 2, 1], [3, 3, 1]], [5, 7], [2, 3], params={"use_data_lengths": True, "use_label_lengths": True},
                    grad=(True, False, False, False)),
             Sample((6, 2, 4), [[1, 2, 3], [3, 3, 1]], [4, 6], params={"use_data_lengths": True}, grad=(True, False, False)),
             Sample((6, 2, 4), [[1, 2, 3], [0, 0, 1]], [2, 3], params={"use_label_lengths": True, "blank_label": "last"},
                    grad=(True, False, False)),
             Sample((6, 3, 4), [[1, 2], [-1, -1], [2, -1]], [5, 6, 3], params={"use_data_lengths": "True", "blank_label": "last"},
                    grad=(True, False, False)),
             Sample((5, 3, 4), [[0, 0], [1, 0], [2, 2]], grad=(True, False)),  # no label, one, one that needs a blank between
             Sample((3, 1, 2), [[1, 1, 0]], grad=(True, False)), Sample((1, 2, 3), [[1], [2]], grad=(True, False)),
             Sample((4, 1, 3), [[1, 2]], np.array([3], np.int32), np.array([1], np.int32), grad=(True, False, False, False),
                    params={"use_data_lengths": True, "use_label_lengths": True}),
             Sample(Values((5, 2, 4), -60.0, 60.0), [[1, 2, 0], [3, 3, 1]], grad=(True, False)),
             Sample((6, 2, 4), np.array([[1, 2, 0], [3, 3, 1]], np.int32), grad=(True, False)),
             *(Sample(*ins, params=q, grad=False, mxnet="forward only: MXNet leaves the gradient of labels that do not fit unset") for ins, q in (
                 (((3, 3, 4), [[1, 1, 0], [1, 2, 1], [2, 2, 2]]), {}), (((3, 2, 3), [[1, 2], [2, 1]], [1, 0]),
                     {"use_data_lengths": True}))),
             Sample((5, 0, 4), (0, 3), grad=False)])
@silent
def ctc_loss(k, p, *arrays):
    """Minus the log probability of a label sequence, summed over all ways to align it with the time steps.

    Parameters
    ----------
    data : array
        Logits (time, N, C); one of the C classes is the blank.
    label : array
        Class indices (N, L); shorter ones end with padding: 0, or -1 for ``blank_label='last'``.
    data_lengths : array
        With `use_data_lengths`: number of time steps, (N,).
    label_lengths : array
        With `use_label_lengths`: length of each label, (N,).
    use_data_lengths, use_label_lengths : bool
        There are such inputs.
    blank_label : {'first', 'last'}
        The blank is class 0, or class C - 1.

    Returns
    -------
    array
        The loss of each sample, (N,); 0, with no gradient, where the steps are too few for the label.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``CTCLoss``. Source: Graves et al., "Connectionist temporal classification", ICML 2006.
    """
    problem = _Problem(k.xp, p.blank_label, dict(zip(p._sig.inputs, arrays)))
    total = problem.forward()[1]
    return k.xp.where(problem.possible, -total, total.dtype.type(0))


@ctc_loss.shape
def _(p, ins, outs):
    data, label = ins[0], ins[1]
    n = merge_shape(outs[0], (-1,))
    for shape, rank, what in ((data, 3, "data (time, N, C)"), (label, 2, "label (N, L)")):
        if shape is not None:
            if len(shape) != rank:
                raise ValueError(f"{what} must have {rank} dimensions, got {shape}")
            n = merge_shape(n, (shape[1] if rank == 3 else shape[0],))
    if data is not None and label is not None and 0 <= data[0] < label[1]:
        raise ValueError(f"labels of length {label[1]} are longer than the {data[0]} time steps")
    return [data and (data[0], n[0], data[2]), label and (n[0], label[1]), *[n] * (len(ins) - 2)], [n]


@ctc_loss.dtype
def _(p, ins, outs):
    t = ins[0] or outs[0]
    if t is not None and t.kind in "biu":
        raise TypeError(f"data are logits, of float16, float32 or float64, not {t.name}")
    return [t, *(v or t for v in ins[1:])], [t]


def _cost(p: Any, ins: list[Any], outs: list[Any]) -> float:
    data, label = (ins[0], ins[1]) if len(ins[0]) == 3 else (ins[1], ins[2])
    return 10 * size_of(data) + 1e5 * data[0] + 60 * data[0] * (2 * size_of(label) + 1)


ctc_loss.cost(_cost)


@op("_backward_ctc_loss", inputs="dy " + _INPUTS, **_PARAMS, samples=[
    Sample((2,), *_SAMPLE[0], params=_SAMPLE[1], grad=False, mxnet="internal")])
@silent
def backward_ctc_loss(k, p, dy_, *arrays):
    """Gradient of `CTCLoss` with respect to its logits.

    Parameters
    ----------
    dy : array
        The incoming gradient, (N,).
    data, label, data_lengths, label_lengths : array
        The inputs.
    use_data_lengths, use_label_lengths, blank_label
        As in `CTCLoss`.
    """
    xp = k.xp
    problem = _Problem(xp, p.blank_label, dict(zip(p._sig.inputs[1:], arrays)))
    alpha, total = problem.forward()
    beta = problem.backward()
    share = xp.exp(xp.minimum(alpha + beta - problem.emit - total[None, :, None], 0.0))
    steps, n, c = problem.logs.shape
    expected = xp.zeros((steps * n * c,), share.dtype)
    at = (xp.arange(steps * n) * c).reshape(steps, n, 1) + problem.path[None]
    xp.add.at(expected, at.reshape(-1), share.reshape(-1))
    running = (xp.arange(steps)[:, None] < problem.steps[None, :]) & problem.possible[None, :]
    g = (xp.exp(problem.logs) - expected.reshape(steps, n, c)) * running[:, :, None]
    return g * wide(dy_)[None, :, None]


backward_ctc_loss.shape(gradient_of(lambda p, ins: ctc_loss.shape_rule(p, ins, [None])[1][0]))


@backward_ctc_loss.dtype
def _(p, ins, outs):
    t = ins[1] or ins[0]
    return [t, t, *(v or t for v in ins[2:])], [t]


backward_ctc_loss.cost(_cost)
