"""Connectionist temporal classification."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.gradients import given
from ..common.rules import size_of

__all__ = ["CTC_INPUTS", "CTC_PARAMS", "BlankedLabels", "Labels", "ctc_cost", "ctc_loss", "read_labels"]


CTC_PARAMS = dict(use_data_lengths=Bool(False), use_label_lengths=Bool(False), blank_label=Enum("first last", "first"))
CTC_INPUTS = "data label data_lengths[use_data_lengths] label_lengths[use_label_lengths]"


class Labels(NamedTuple):
    """What the labels are, and where each sequence ends.

    Attributes
    ----------
    blank : int
        The class of the blank.
    classes : array of int
        (N, L): the labels, and the blank behind their ends.
    lengths : array of int
        (N,): number of labels.
    steps : array of int
        (N,): number of time steps, at least one.
    possible : array of bool
        (N,): whether there are steps enough for the label, with a blank between repeated classes.
    """

    blank: int
    classes: Any
    lengths: Any
    steps: Any
    possible: Any


@silent
def read_labels(
    xp: Any, shape: tuple[int, ...], label: Any, data_lengths: Any, label_lengths: Any, blank_first: bool
) -> Labels:
    """The labels of data of a shape (T, N, C); an error if one is no class. Either of the lengths may be None."""
    steps, n, c = shape
    classes, width = label.astype(np.int64), label.shape[1]
    blank, padding = (0, 0) if blank_first else (c - 1, -1)
    if label_lengths is not None:
        lengths = xp.clip(label_lengths.astype(np.int64), 0, width)
    else:
        # The first padding ends a label; NaN, which devices make different whole numbers of, is none.
        lengths = xp.cumprod(((classes != padding) | (label != label)).astype(np.int64), 1).sum(1)
    inside = xp.arange(width)[None, :] < lengths[:, None]
    if (inside & ~((label > -1) & (label < c))).any().item():
        low, high = xp.where(inside, label, np.inf).min().item(), xp.where(inside, label, -np.inf).max().item()
        which = f"from {low:.12g} to {high:.12g}" if low == low else "that are NaN"
        raise IndexError(f"labels {which} are given, there are classes from 0 to {c - 1}")
    given_steps = (
        xp.full((n,), steps, np.int64) if data_lengths is None else xp.clip(data_lengths.astype(np.int64), 0, steps)
    )
    repeats = ((classes[:, 1:] == classes[:, :-1]) & inside[:, 1:]).sum(1)
    return Labels(
        blank,
        xp.where(inside, classes, blank),
        lengths,
        xp.maximum(given_steps, 1),
        (given_steps > 0) & (lengths + repeats <= given_steps),
    )


def _log_sum(xp: Any, *terms: Any) -> Any:
    """Logarithm of the sum of what the terms are logarithms of; minus infinity is that of zero."""
    top = functools.reduce(xp.maximum, terms)
    top = xp.where(top == -np.inf, 0.0, top)
    return top + xp.log(sum(xp.exp(t - top) for t in terms))


class BlankedLabels:
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
        (N,): as of `Labels`.
    """

    def __init__(self, xp: Any, blank_label: str, ins: dict[str, Any]) -> None:
        self.xp = xp
        x = wide(ins["data"])
        shifted = x - x.max(2, keepdims=True)
        self.logs = shifted - xp.log(xp.exp(shifted).sum(2, keepdims=True))
        labels = read_labels(
            xp, x.shape, ins["label"], ins.get("data_lengths"), ins.get("label_lengths"), blank_label == "first"
        )
        self.steps, self.ends, self.possible = labels.steps, 2 * labels.lengths + 1, labels.possible
        n, width = labels.classes.shape
        self.path = xp.full((n, 2 * width + 1), labels.blank, np.int64)
        self.path[:, 1::2] = labels.classes
        self.emit = xp.take_along_axis(self.logs, xp.broadcast_to(self.path[None], (x.shape[0], *self.path.shape)), 2)
        self.skip = xp.zeros(self.path.shape, np.bool_)
        self.skip[:, 2:] = (self.path[:, 2:] != labels.blank) & (self.path[:, 2:] != self.path[:, :-2])

    def merged(self, a: Any, step: int, skip: Any) -> Any:
        """Log of the sum of what comes to each place: from itself, its neighbour, and where allowed the next one."""
        xp = self.xp
        one = self._moved(a, step)
        return _log_sum(xp, a, one, xp.where(skip, self._moved(one, step), -np.inf))

    def _moved(self, a: Any, step: int) -> Any:
        b = self.xp.full_like(a, -np.inf)
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
        alpha[0] = xp.where((place < 2) & (place < self.ends[:, None]), self.emit[0], -np.inf)
        for t in range(1, alpha.shape[0]):
            alpha[t] = self.merged(alpha[t - 1], 1, self.skip) + self.emit[t]
        at_end = alpha[self.steps - 1, xp.arange(alpha.shape[1])]
        last = xp.take_along_axis(at_end, (self.ends - 1)[:, None], 1)[:, 0]
        other = xp.take_along_axis(at_end, xp.maximum(self.ends - 2, 0)[:, None], 1)[:, 0]
        return alpha, _log_sum(xp, last, xp.where(self.ends > 1, other, -np.inf))

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
            start = xp.where(final, self.emit[t], -np.inf)
            if t < steps - 1:
                onward = self.merged(beta[t + 1], -1, skip) + self.emit[t]
                beta[t] = xp.where(
                    (self.steps == t + 1)[:, None], start, xp.where((self.steps > t + 1)[:, None], onward, -np.inf)
                )
            else:
                beta[t] = xp.where((self.steps == t + 1)[:, None], start, -np.inf)
        return beta


@op(
    "CTCLoss",
    "ctc_loss",
    "_contrib_CTCLoss",
    "_contrib_ctc_loss",
    inputs=CTC_INPUTS,
    labels="numbers",
    mxnet_outputs=2,
    recompute=False,
    **CTC_PARAMS,
    grad=lambda F, p, dy, data, label, data_lengths, label_lengths: (
        F._backward_ctc_loss(dy, data, label, data_lengths, label_lengths, **given(p, CTC_PARAMS)),
        None,
        None,
        None,
    ),
    helpers={"read_labels": read_labels},
)
@silent
def ctc_loss(k: Call, p: Params, *arrays: Array) -> Array:
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
        The loss of each sample, (N,); 0, with no gradient, where the steps are too few for the label; infinity where
        logits of minus infinity leave no alignment.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``CTCLoss``. Source: Graves et al., "Connectionist temporal classification", ICML
    2006.
    """
    problem = BlankedLabels(k.xp, p.blank_label, dict(zip(p._sig.inputs, arrays)))
    total = problem.forward()[1]
    return k.xp.where(problem.possible, -total, total.dtype.type(0))


@ctc_loss.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
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
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[0] or outs[0]
    if t is not None and t.kind in "biu":
        raise TypeError(f"data are logits, of float16, float32 or float64, not {t.name}")
    return [t, *(v or t for v in ins[1:])], [t]


def ctc_cost(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    """Estimated work: softmax over the data, and a walk over its steps for labels with blanks between them."""
    data, label = (ins[0], ins[1]) if len(ins[0]) == 3 else (ins[1], ins[2])
    return 10 * size_of(data) + 1e5 * data[0] + 60 * data[0] * (2 * size_of(label) + 1)


ctc_loss.cost(ctc_cost)
