"""Output layers: a forward pass that predicts, and a gradient that is the loss's, whatever comes in from above."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.infer import known, merge_shape, show
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum, Float
from ...typing import Array, Call, Operand, Operators
from ..activation.softmax import soft
from ..common import special_functions
from ..common.bodies import wide
from ..common.gradients import given
from ..common.rules import floating, one, size_of

__all__ = [
    "MAKE_LOSS_PARAMS",
    "SOFTMAX_OUTPUT_PARAMS",
    "SPARSENESS_PARAMS",
    "SVM_PARAMS",
    "channel_shape",
    "class_index",
    "class_lengths",
    "softmax_cross_entropy",
    "softmax_label_shape",
]


def class_index(xp: Any, label: Any, c: int) -> tuple[Any, Any]:
    """Labels as indices, clipped to the `c` classes, and where they were inside."""
    i = label.astype(np.int64)
    inside = xp.clip(i, 0, max(c - 1, 0))
    return inside, i == inside


# -- SoftmaxOutput --------------------------------------------------------------------------------------------------

SOFTMAX_OUTPUT_PARAMS = dict(
    grad_scale=Float(1.0),
    ignore_label=Float(-1.0),
    multi_output=Bool(False),
    use_ignore=Bool(False),
    preserve_shape=Bool(False),
    normalization=Enum("batch null valid", "null"),
    out_grad=Bool(False),
    smooth_alpha=Float(0.0),
)


def class_lengths(p: Params, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """The data as (samples, classes, positions)."""
    if p.multi_output:
        return shape[0], shape[1], size_of(shape[2:])
    if p.preserve_shape:
        return size_of(shape[:-1]), shape[-1], 1
    return shape[0], size_of(shape[1:]), 1


@op(
    "SoftmaxOutput",
    "Softmax",
    inputs="data label",
    labels="outputs",
    recompute=False,
    helpers={"class_lengths": class_lengths},
    **SOFTMAX_OUTPUT_PARAMS,
    grad=lambda F, p, dy, y, label: (
        F._backward_SoftmaxOutput(y, label, *([dy] if p.out_grad else []), **given(p, SOFTMAX_OUTPUT_PARAMS)),
        None,
    ),
)
def softmax_output(k: Call, p: Params, data: Array, label: Array) -> Array:
    """Softmax forward; backward the gradient of the cross entropy with the label, whatever gradient comes in.

    Parameters
    ----------
    data : array
        Logits (N, C); all dimensions after the first are classes, but see `multi_output` and `preserve_shape`.
    label : array
        Class indices (N,); or probabilities, shaped as `data`.
    grad_scale : float
        Factor of the gradient.
    ignore_label : float
        Label that gives no gradient, with `use_ignore`; also what ``normalization='valid'`` does not count.
    multi_output : bool
        `data` is (N, C, ...), classes on axis 1, and there is a label at every position: (N, ...) or (N, positions).
    use_ignore : bool
    preserve_shape : bool
        Classes are on the last axis, and there is a label for every place on the others.
    normalization : {'null', 'batch', 'valid'}
        Divide the gradient by 1, the number of labels, or the number of those that are not `ignore_label`; with
        `multi_output` the first means the number of positions. Probabilities as labels are never divided.
    out_grad : bool
        Multiply by the incoming gradient.
    smooth_alpha : float
        Label smoothing: this much of the probability is spread over the other classes; without effect in
        `multi_output`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``SoftmaxOutput``, except that `out_grad` takes the incoming gradient, where MXNet
    takes the output instead.
    """
    return soft(k.xp, wide(data).reshape(class_lengths(p, data.shape)), 1).reshape(data.shape)


def softmax_label_shape(p: Params, data: Any, label: Any) -> Any:
    """The label's shape for a data shape; as given where several are allowed."""
    if len(data) < (2 if p.multi_output else 1):
        raise ValueError(
            f"data {data} has no classes" + (" on axis 1, where multi_output needs them" if p.multi_output else "")
        )
    if label is not None and label == data:
        return label
    if not p.multi_output:
        return data[:-1]
    flat = (data[0], -1 if -1 in data[2:] else size_of(data[2:]))
    if label is None:
        return flat
    for allowed in (flat, (data[0], *data[2:]), (data[0], 1, *data[2:]), data):
        try:
            return merge_shape(label, allowed)
        except ValueError:
            pass
    raise ValueError(f"label {label} must be {show(flat)}, {show((data[0], *data[2:]))} or, with probabilities, {data}")


@softmax_output.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, label = merge_shape(ins[0], outs[0]), ins[1]
    if data and data[0] == -1 and label:
        data = (label[0], *data[1:])
    return [data, label if data is None else softmax_label_shape(p, data, label)], [data]


softmax_output.dtype(floating())
softmax_output.cost(lambda p, ins, outs: size_of(ins[0]) * 8)

# -- regression -----------------------------------------------------------------------------------------------------

_SCALE = dict(grad_scale=Float(1.0))

#: name -> (prediction over (xp, data), direction over (xp, prediction, label), what it does)
_REGRESSION: dict[str, tuple[Any, Any, str]] = {
    "LinearRegressionOutput": (
        lambda xp, x: x.copy(),
        lambda xp, y, t: y - t,
        "Predict the data itself; backward the gradient of half the squared error.",
    ),
    "LogisticRegressionOutput": (
        special_functions.sigmoid,
        lambda xp, y, t: y - t,
        "Predict the sigmoid of the data; backward the gradient of the cross entropy.",
    ),
    "MAERegressionOutput": (
        lambda xp, x: x.copy(),
        lambda xp, y, t: xp.where(y > t, y.dtype.type(1), y.dtype.type(-1)),
        "Predict the data itself; backward the gradient of the absolute error, -1 where there is none.",
    ),
}

_REGRESSION_DOC = """{0}

    Parameters
    ----------
    data : array
        Shape (N, ...).
    label : array
        As many elements, shape (N, ...); (N,) where data is (N, 1) and no shape is given.
    grad_scale : float
        Factor of the gradient, which is also divided by the number of elements of a sample.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``{1}``.
    """


def _regression_shape(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, label = merge_shape(ins[0], outs[0]), ins[1]
    if data is None:
        return [data, label], [data]
    if not data:
        raise ValueError("data must have at least one dimension")
    if label is None:
        return [data, data[:1] if len(data) == 2 and data[1] == 1 else data], [data]
    if data[0] == -1 and label:
        data = (label[0], *data[1:])
    if not label or -1 != label[0] != data[0] or (known(label) and known(data) and size_of(label) != size_of(data)):
        raise ValueError(f"label {label} and data {data} must have as many elements, and one batch size")
    return [data, label], [data]


def _regression(name: str, predict: Any, direction: Any, doc: str) -> tuple[Any, Any]:
    def rule(F: Operators, p: Params, y: Operand, label: Operand) -> Any:
        return getattr(F, f"_backward_{name}")(y, label, grad_scale=p.grad_scale), None

    forward = op(name, inputs="data label", grad=rule, doc=_REGRESSION_DOC.format(doc, name), **_SCALE)(
        lambda k, p, data, label: predict(k.xp, data)
    )

    def body(k: Call, p: Params, out: Array, label: Array) -> Any:
        width = size_of(out.shape[1:])
        return direction(k.xp, out, label.reshape(out.shape)) * out.dtype.type(p.grad_scale / max(width, 1))

    backward = op(
        f"_backward_{name}",
        inputs="out label",
        doc=(
            f"Gradient of `{name}` with respect to its data.\n\n"
            "    Parameters\n    ----------\n    out, label : array\n"
            "        What the forward pass returned, and the label.\n    grad_scale : float\n        Factor.\n    "
        ),
        **_SCALE,
    )(body)
    forward.shape(_regression_shape)
    forward.dtype(floating())
    backward.shape(lambda p, ins: [ins[0]])
    return forward, backward


REGRESSION = [_regression(name, *row) for name, row in _REGRESSION.items()]


# -- support vectors ------------------------------------------------------------------------------------------------

SVM_PARAMS = dict(margin=Float(1.0), regularization_coefficient=Float(1.0), use_linear=Bool(False))


@op(
    "SVMOutput",
    inputs="data label",
    labels="gradients outputs",
    **SVM_PARAMS,
    grad=lambda F, p, data, label: (F._backward_SVMOutput(data, label, **given(p, SVM_PARAMS)), None),
)
def svm_output(k: Call, p: Params, data: Array, label: Array) -> Array:
    """Predict the data itself; backward the gradient of a one-against-all hinge loss.

    Parameters
    ----------
    data : array
        Scores (N, C).
    label : array
        Class indices (N,).
    margin : float
        How far a score must be on its side of zero.
    regularization_coefficient : float
        Factor of the gradient.
    use_linear : bool
        Hinge loss; else its square.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``SVMOutput``.
    """
    return data.copy()


@svm_output.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data = merge_shape(ins[0], outs[0])
    if data is not None and not data:
        raise ValueError("data must have at least one dimension")
    if data is not None and ins[1] and data[0] == -1:
        data = (ins[1][0], *data[1:])
    return [data, ins[1] if data is None else data[:-1]], [data]


svm_output.dtype(floating())

# -- sparseness -----------------------------------------------------------------------------------------------------

SPARSENESS_PARAMS = dict(
    sparseness_target=Float(0.1, ge=0, le=1), penalty=Float(0.001), momentum=Float(0.9, ge=0, le=1)
)


@op(
    "IdentityAttachKLSparseReg",
    inputs="data moving_avg",
    labels="inputs gradients outputs",
    aux="moving_avg",
    **SPARSENESS_PARAMS,
    grad=lambda F, p, dy, data, moving_avg: (
        F._backward_IdentityAttachKLSparseReg(dy, data, moving_avg, **given(p, SPARSENESS_PARAMS)),
        None,
    ),
)
def identity_attach_kl_sparse_reg(k: Call, p: Params, data: Array, moving_avg: Array) -> Any:
    """Pass activations; add to their gradient that of the KL divergence between their mean and a sparseness.

    Parameters
    ----------
    data : array
        Activations between 0 and 1, such as sigmoids, shape (N, C, ...).
    moving_avg : array
        Shape (C,), an auxiliary state: the moving average of the mean activation of each channel. It follows in the
        backward pass.
    sparseness_target : float
        The wanted mean activation, from 0 to 1.
    penalty : float
        Factor of the added gradient.
    momentum : float
        Share of the old value in an update of the moving average.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``IdentityAttachKLSparseReg``. Source: Hinton, "A practical guide to training
    restricted Boltzmann machines", 2010.
    """
    return data.copy()


def channel_shape(data: Any) -> Any:
    """Shape of what there is one of for each channel."""
    if data is None:
        return None
    if len(data) < 2:
        raise ValueError(f"data {data} must have batch and channels")
    return data[1:2]


@identity_attach_kl_sparse_reg.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data = merge_shape(ins[0], outs[0])
    return [data, channel_shape(data)], [data]


identity_attach_kl_sparse_reg.dtype(floating())
identity_attach_kl_sparse_reg.input_attrs = {"moving_avg": {"__init__": '["zero", {}]'}}

# -- losses ---------------------------------------------------------------------------------------------------------

MAKE_LOSS_PARAMS = dict(grad_scale=Float(1.0), valid_thresh=Float(0.0), normalization=Enum("batch null valid", "null"))


@op(
    "MakeLoss",
    inputs="data",
    labels="inputs gradients outputs",
    **MAKE_LOSS_PARAMS,
    grad=lambda F, p, data: F._backward_MakeLoss(data, **given(p, MAKE_LOSS_PARAMS)),
)
def make_loss_layer(k: Call, p: Params, data: Array) -> Array:
    """Mark `data` as a loss: it passes unchanged, and its gradient is `grad_scale`, whatever comes in.

    Parameters
    ----------
    data : array
        Shape (N, ...).
    grad_scale : float
        The gradient of each element.
    valid_thresh : float
        Elements above it are valid.
    normalization : {'null', 'batch', 'valid'}
        Divide the gradient by 1, the batch, or the number of valid elements.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``MakeLoss``: all axes but the last are the batch, and a vector is one row.
    """
    return data.copy()


make_loss_layer.dtype(floating())

#: Logarithm of the smallest probability that counts.
_FAINT = math.log(1e-8)


@op(
    "softmax_cross_entropy",
    inputs="data label",
    grad=lambda F, dy, data, label: (F._backward_softmax_cross_entropy(dy, data, label), None),
)
def softmax_cross_entropy(k: Call, p: Params, data: Array, label: Array) -> Array:
    """Sum over the batch of minus the logarithm of the softmax at the label.

    Parameters
    ----------
    data : array
        Logits (N, C).
    label : array
        Class indices (N,).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``softmax_cross_entropy``, which counts no probability below 1e-8; labels out of
    range take the nearest class, and have no place in the gradient.
    """
    xp, x = k.xp, wide(data)
    if not x.size:
        return xp.zeros(one, data.dtype)
    d = x - x.max(1, keepdims=True)
    at, _ = class_index(xp, label, x.shape[1])
    picked = xp.take_along_axis(d, at[:, None], 1)[:, 0] - xp.log(xp.exp(d).sum(1))
    return -xp.maximum(picked, x.dtype.type(_FAINT)).sum().reshape(one)


@softmax_cross_entropy.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data, label = ins
    n = merge_shape(None if data is None else data[:1], label)
    if data is not None and len(data) != 2:
        raise ValueError(f"data must be (N, C), got {data}")
    if n is not None and len(n) != 1:
        raise ValueError(f"label must be (N,), got {n}")
    return [None if data is None else (n[0], data[1]), n], [one]


softmax_cross_entropy.dtype(floating())
