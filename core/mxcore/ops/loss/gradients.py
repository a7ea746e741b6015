"""Gradients of the operators of :mod:`mxcore.ops.loss`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...typing import Array, Call
from ..activation.softmax import soft
from ..common.bodies import silent, sum_dtype, wide
from ..common.rules import fits, gradient_of, size_of
from .ctc import CTC_INPUTS, CTC_PARAMS, BlankedLabels, ctc_cost, ctc_loss
from .operators import (
    MAKE_LOSS_PARAMS,
    SOFTMAX_OUTPUT_PARAMS,
    SPARSENESS_PARAMS,
    SVM_PARAMS,
    channel_shape,
    class_index,
    class_lengths,
    softmax_cross_entropy,
    softmax_label_shape,
)

__all__: list[str] = []


@op("_backward_SoftmaxOutput", inputs="out label dy[out_grad]", **SOFTMAX_OUTPUT_PARAMS)
def backward_softmax_output(k: Call, p: Params, out: Array, label: Array, dy_: Array = None) -> Array:
    """Gradient of `SoftmaxOutput` with respect to its data.

    Parameters
    ----------
    out, label : array
        What the forward pass returned, and the label.
    dy : array
        The incoming gradient; only with `out_grad`.
    grad_scale, ignore_label, multi_output, use_ignore, preserve_shape, normalization, out_grad, smooth_alpha
        As in `SoftmaxOutput`.
    """
    xp = k.xp
    n, c, s = class_lengths(p, out.shape)
    y = wide(out)
    if label.shape == out.shape:
        return _outgoing(p, (y - wide(label)) * p.grad_scale, dy_)
    g = y.reshape(n, c, s).copy()
    label = label.reshape(-1 if size_of(label.shape) else n, s if p.multi_output else 1)
    if label.shape[0] != n:
        raise ValueError(
            f"{label.shape[0]} labels for {n} samples; "
            "use preserve_shape or multi_output for data of more than two dimensions"
        )
    at, hit = class_index(xp, label, c)
    spread = 0.0 if p.multi_output else p.smooth_alpha
    rest = spread / (c - 1) if c > 1 else 0.0
    if rest:
        g -= g.dtype.type(rest)
    if g.size:
        rows, cols = xp.arange(n).reshape(n, 1), xp.arange(s).reshape(1, s)
        g[rows, at, cols] -= hit * g.dtype.type(1 - spread - rest)
    valid = label != p.ignore_label
    if p.use_ignore:
        g *= valid.reshape(n, 1, s)
    if p.normalization == "valid":
        g *= p.grad_scale / xp.maximum(valid.sum(), 1).astype(g.dtype)
    else:
        g *= g.dtype.type(p.grad_scale / (max(s, 1) * (max(n, 1) if p.normalization == "batch" else 1)))
    return _outgoing(p, g.reshape(out.shape), dy_)


def _outgoing(p: Params, g: Any, dy: Any) -> Any:
    return g * wide(dy) if p.out_grad else g


@backward_softmax_output.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    out, label, *dy = ins
    wanted = softmax_label_shape(p, out, label)
    if size_of(label) != size_of(wanted):  # MXNet's graphs hold labels in other shapes, too
        fits("label", [label], [wanted])
    fits("dy", dy, [out])
    return [out]


backward_softmax_output.cost(lambda p, ins, outs: size_of(ins[0]) * 4)


@op("_backward_SVMOutput", inputs="data label", **SVM_PARAMS)
def backward_svm_output(k: Call, p: Params, data: Array, label: Array) -> Array:
    """Gradient of `SVMOutput` with respect to its data.

    Parameters
    ----------
    data, label : array
        The inputs.
    margin, regularization_coefficient, use_linear
        As in `SVMOutput`.
    """
    xp = k.xp
    x = data.reshape(size_of(data.shape[:-1]), data.shape[-1])
    own = label.reshape(size_of(label.shape), 1).astype(np.int64) == xp.arange(x.shape[1])
    sign = xp.where(own, x.dtype.type(-1), x.dtype.type(1))
    gap = p.margin + sign * x
    g = sign * ((gap > 0) if p.use_linear else 2 * xp.maximum(gap, gap.dtype.type(0)))
    return (g * x.dtype.type(p.regularization_coefficient)).reshape(data.shape)


backward_svm_output.shape(lambda p, ins: [ins[0]])


@op(
    "_backward_IdentityAttachKLSparseReg",
    inputs="dy data moving_avg",
    outputs="data",
    aux="moving_avg",
    mutates="moving_avg",
    **SPARSENESS_PARAMS,
)
@silent
def backward_identity_attach_kl_sparse_reg(k: Call, p: Params, dy_: Array, data: Array, moving_avg: Array) -> Any:
    """Gradient of `IdentityAttachKLSparseReg`; moves the moving average.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data : array
        The input.
    moving_avg : array
        Updated, and used after that.
    sparseness_target, penalty, momentum
        As in `IdentityAttachKLSparseReg`.
    """
    x = wide(data)
    axes = (0, *range(2, x.ndim))
    mean = x.sum(axes) / max(size_of(x.shape[a] for a in axes), 1)
    new = moving_avg * p.momentum + mean * (1 - p.momentum)
    slope = p.penalty * ((1 - p.sparseness_target) / (1 - new) - p.sparseness_target / new)
    return wide(dy_) + slope.reshape(-1, *(1,) * (x.ndim - 2)).astype(x.dtype), new


@backward_identity_attach_kl_sparse_reg.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    fits("dy data moving_avg", ins, [ins[1], ins[1], channel_shape(ins[1])])
    return [ins[1]]


@op("_backward_MakeLoss", inputs="data", **MAKE_LOSS_PARAMS)
def backward_make_loss(k: Call, p: Params, data: Array) -> Array:
    """Gradient of `MakeLoss`.

    Parameters
    ----------
    data : array
        The input.
    grad_scale, valid_thresh, normalization
        As in `MakeLoss`.
    """
    xp = k.xp
    if p.normalization == "valid":
        count = xp.maximum((data > p.valid_thresh).sum(), 1).astype(sum_dtype(data) or data.dtype)
        return xp.zeros_like(data) + (p.grad_scale / count).astype(data.dtype)
    return xp.full_like(
        data, data.dtype.type(p.grad_scale / (max(size_of(data.shape[:-1]), 1) if p.normalization == "batch" else 1))
    )


@op("_backward_softmax_cross_entropy", inputs="dy data label")
def backward_softmax_cross_entropy(k: Call, p: Params, dy_: Array, data: Array, label: Array) -> Array:
    """Gradient of `softmax_cross_entropy` with respect to its logits.

    Parameters
    ----------
    dy : array
        The incoming gradient, shape (1,).
    data, label : array
        The inputs.
    """
    xp = k.xp
    g = soft(xp, wide(data), 1)
    at, hit = class_index(xp, label, data.shape[1])
    if g.size:
        g[xp.arange(g.shape[0]), at] -= hit
    return g * wide(dy_)


backward_softmax_cross_entropy.shape(gradient_of(lambda p, ins: softmax_cross_entropy.shape_rule(p, ins, [None])[1][0]))


@op("_backward_ctc_loss", inputs="dy " + CTC_INPUTS, **CTC_PARAMS)
@silent
def backward_ctc_loss(k: Call, p: Params, dy_: Array, *arrays: Array) -> Array:
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
    problem = BlankedLabels(xp, p.blank_label, dict(zip(p._sig.inputs[1:], arrays)))
    alpha, total = problem.forward()
    beta = problem.backward()
    share = xp.exp(alpha + beta - problem.emit - xp.where(total == -np.inf, 0.0, total)[None, :, None])
    share = xp.where((alpha == -np.inf) | (beta == -np.inf), 0.0, share)
    steps, n, c = problem.logs.shape
    expected = xp.zeros((steps * n * c,), share.dtype)
    at = (xp.arange(steps * n) * c).reshape(steps, n, 1) + problem.path[None]
    xp.add.at(expected, at.reshape(-1), share.reshape(-1))
    running = (xp.arange(steps)[:, None] < problem.steps[None, :]) & problem.possible[None, :]
    # A class is expected once at most; what rounding adds where the logits are huge is cut off.
    g = (xp.exp(problem.logs) - xp.minimum(expected.reshape(steps, n, c), 1.0)) * wide(dy_)[None, :, None]
    return xp.where(running[:, :, None], g, 0.0)


backward_ctc_loss.shape(gradient_of(lambda p, ins: ctc_loss.shape_rule(p, ins, [None])[1][0]))


@backward_ctc_loss.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[1] or ins[0]
    return [t, t, *(v or t for v in ins[2:])], [t]


backward_ctc_loss.cost(ctc_cost)
