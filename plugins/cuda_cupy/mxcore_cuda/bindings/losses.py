"""Losses: what their layers predict, and the gradients of what they tell."""

from __future__ import annotations

import math
from typing import Any

from mxcore.plugin import Call, Params, Spec, held

from ..dtypes import name_of
from ..places import INDICES, index
from .common import Array, Outs, binds, few, helpers, is_float, kernel_for, wide
from .softmax import along

#: Numbers that a block adds up, and blocks at most.
_SHARE, _BLOCKS = 4096, 256
#: Logarithm of the smallest probability that counts in a cross entropy.
_FAINT = math.log(1e-8)


def _run(k: Call, name: str, like: Array) -> Any:
    return kernel_for(k, "losses", name, like.dtype)


def _empty(k: Call, n: int, like: Array) -> Array:
    """Room for numbers in the dtype in which those of an array are added up."""
    return k.device.empty((n,), wide(like.dtype), k.ctx.device_id)


def _blocks(n: int) -> int:
    return min(max(-(-n // _SHARE), 1), _BLOCKS)


# -- one logarithm of the softmax of each row --------------------------------------------------------------------------
def _picks(data: Spec, label: Spec, *others: Spec) -> bool:
    return (
        is_float(data.dtype)
        and name_of(label.dtype) in INDICES
        and few(data)
        and data.shape[-1] > 0
        and all(s.dtype == data.dtype for s in others)
    )


def _pick(k: Call, data: Array, at: Array, found: Outs, inner: bool, scalar: float, least: float) -> None:
    """Find the picked logarithm, the largest number and the logarithm of the sum of each row; `inner`, in wide ones."""
    n = data.shape[-1]
    rows = data.size // n
    given = data, *index(at), *found, inner, rows, n, scalar, least
    _run(k, "pick_softmax", data).kept_rows(rows, n, 1, *given)


def _pick_backward(
    k: Call, dy: Array, data: Array, at: Array, found: Outs, out: Array, whole: bool, scalar: float
) -> None:
    n = data.shape[-1]
    rows = data.size // n
    given = data, *index(at), dy, *found, out, whole, rows, n, scalar
    _run(k, "pick_softmax_backward", data).rows(rows, n, *given)


@binds("_pick_log_softmax", dtypes=None, when=lambda p, data, at: _picks(data, at))
def _pick_log_softmax(k: Call, p: Params, outs: Outs, data: Array, at: Array) -> None:
    _pick(k, data, at, outs, False, p.scalar, -math.inf)


@binds("_backward_pick_log_softmax", dtypes=None, when=lambda p, dy, data, at, *found: _picks(data, at, dy, *found))
def _backward_pick_log_softmax(
    k: Call, p: Params, outs: Outs, dy: Array, data: Array, at: Array, largest: Array, total: Array
) -> None:
    _pick_backward(k, dy, data, at, [largest, total], outs[0], False, p.scalar)


@binds("softmax_cross_entropy", dtypes=None, when=lambda p, data, label: _picks(data, label))
def _softmax_cross_entropy(k: Call, p: Params, outs: Outs, data: Array, label: Array) -> None:
    n = data.shape[0]
    losses, run, blocks = _empty(k, n, data), _run(k, "add_up", data), _blocks(n)
    _pick(k, data, label, [losses, None, None], True, -1.0, _FAINT)
    if blocks > 1:
        parts = _empty(k, blocks, data)
        run.blocks(blocks, losses, parts, None, n, -math.inf)
        losses, n = parts, blocks
    run.blocks(1, losses, None, outs[0], n, -math.inf)


@binds("_backward_softmax_cross_entropy", dtypes=None, when=lambda p, dy, data, label: _picks(data, label, dy))
def _backward_softmax_cross_entropy(k: Call, p: Params, outs: Outs, dy: Array, data: Array, label: Array) -> None:
    found = [_empty(k, data.shape[0], data) for _ in range(2)]
    _pick(k, data, label, [None, *found], True, 1.0, -math.inf)
    _pick_backward(k, dy, data, label, found, outs[0], True, -1.0)


# -- layers whose gradient is that of a loss ---------------------------------------------------------------------------
def _classes(p: Params, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """The data as (samples, classes, positions)."""
    return helpers("SoftmaxOutput").class_lengths(p, shape)  # type: ignore[no-any-return]


@binds("SoftmaxOutput")
def _softmax_output(k: Call, p: Params, outs: Outs, data: Array, label: Array) -> None:
    along(k, data, outs[0], _classes(p, data.shape))


def _labelled(p: Params, out: Spec, label: Spec, *dy: Spec) -> bool:
    n, _, positions = _classes(p, out.shape)
    return label.dtype == out.dtype and (label.shape == out.shape or label.size == n * positions)


@binds("_backward_SoftmaxOutput", when=_labelled)
def _backward_softmax_output(k: Call, p: Params, outs: Outs, out: Array, label: Array, dy: Array | None = None) -> None:
    (n, c, positions), scale, count = _classes(p, out.shape), p.grad_scale, None
    if not out.size:
        return
    if label.shape == out.shape:  # of probabilities
        _run(k, "regression_backward", out).each(out.size, out, label, dy, outs[0], out.size, scale, False)
        return
    ignored = float(held(p.ignore_label, label.dtype))
    if p.normalization == "valid":
        count = _count(k, label, ignored)
    else:
        scale /= positions * (n if p.normalization == "batch" else 1)
    ignores = p.use_ignore, ignored, 0.0 if p.multi_output else p.smooth_alpha
    run = _run(k, "softmax_output_backward", out)
    run.each(out.size, out, label, count, dy, outs[0], out.size, c, positions, scale, *ignores)


def _count(k: Call, label: Array, ignored: float) -> Array:
    """How many labels are not ignored, 1 at least."""
    blocks, count = _blocks(label.size), _empty(k, 1, label)
    parts = count if blocks == 1 else _empty(k, blocks, label)
    _run(k, "count_labels", label).blocks(blocks, label, parts, label.size, float(blocks == 1), ignored)
    if blocks > 1:
        _run(k, "add_up", label).blocks(1, parts, count, None, blocks, 1.0)
    return count


def _paired(p: Params, out: Spec, label: Spec) -> bool:
    return label.dtype == out.dtype and label.size == out.size


def _bind_regression(name: str, logistic: bool, sign: bool) -> None:
    @binds(name)
    def predict(k: Call, p: Params, outs: Outs, data: Array, label: Array) -> None:
        _run(k, "predict", data).each(data.size, data, outs[0], data.size, logistic)

    @binds(f"_backward_{name}", when=_paired)
    def backward(k: Call, p: Params, outs: Outs, out: Array, label: Array) -> None:
        scale = p.grad_scale / max(math.prod(out.shape[1:]), 1)
        _run(k, "regression_backward", out).each(out.size, out, label, None, outs[0], out.size, scale, sign)


#: Layer -> whether it predicts sigmoids, and whether its gradient is but a sign.
for _name, _how in {
    "LinearRegressionOutput": (False, False),
    "LogisticRegressionOutput": (True, False),
    "MAERegressionOutput": (False, True),
}.items():
    _bind_regression(_name, *_how)


@binds("SVMOutput")
def _svm_output(k: Call, p: Params, outs: Outs, data: Array, label: Array) -> None:
    _run(k, "predict", data).each(data.size, data, outs[0], data.size, False)


@binds("_backward_SVMOutput", when=lambda p, data, label: label.dtype == data.dtype and label.shape == data.shape[:-1])
def _backward_svm_output(k: Call, p: Params, outs: Outs, data: Array, label: Array) -> None:
    numbers = p.margin, p.regularization_coefficient, p.use_linear
    _run(k, "svm_backward", data).each(data.size, data, label, outs[0], data.size, data.shape[-1], *numbers)
