"""Losses of scores against classes."""

from __future__ import annotations

from typing import Any

from ...base import error
from .base import Loss

__all__ = [
    "HingeLoss",
    "KLDivLoss",
    "LogisticLoss",
    "SigmoidBCELoss",
    "SigmoidBinaryCrossEntropyLoss",
    "SoftmaxCELoss",
    "SoftmaxCrossEntropyLoss",
    "SquaredHingeLoss",
]

_TINY = 1e-12


def _binary_cross_entropy(F: Any, pred: Any, label: Any) -> Any:
    """Of scores before the sigmoid, in a form that does not overflow."""
    return F.relu(pred) - pred * label + F.Activation(-F.abs(pred), act_type="softrelu")


class SigmoidBinaryCrossEntropyLoss(Loss):
    """Cross entropy of independent yes-or-no classes.

    Parameters
    ----------
    from_sigmoid : bool, default False
        Whether `pred` is a probability already, or a score before the sigmoid (safer).
    weight, batch_axis, **kwargs
        See `Loss`.

    Notes
    -----
    Called as ``loss(pred, label, sample_weight=None, pos_weight=None)`` with labels from 0 to 1;
    `pos_weight` is an array with the weight of the positive examples, and broadcasts. Behaviour matched:
    MXNet 1.9.1 ``gluon.loss.SigmoidBinaryCrossEntropyLoss``.

    Examples
    --------
    >>> import mxcore as mx
    >>> loss = mx.gluon.loss.SigmoidBinaryCrossEntropyLoss()
    >>> round(float(loss(mx.nd.array([[0.0]]), mx.nd.array([[1.0]])).asscalar()), 4)
    0.6931
    """

    def __init__(
        self, from_sigmoid: bool = False, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None) -> Any:
        label = F.reshape_like(label, pred)
        if self._from_sigmoid:
            positive = F.log(pred + _TINY) * label
            if pos_weight is not None:
                positive = F.broadcast_mul(positive, pos_weight)
            loss = -(positive + F.log(1.0 - pred + _TINY) * (1.0 - label))
        elif pos_weight is None:
            loss = _binary_cross_entropy(F, pred, label)
        else:
            log_weight = 1 + F.broadcast_mul(pos_weight - 1, label)
            softplus = F.Activation(-F.abs(pred), act_type="softrelu")
            loss = pred - pred * label + log_weight * (softplus + F.relu(-pred))
        return self._sample_mean(F, self._weighted(F, loss, sample_weight))


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


class SoftmaxCrossEntropyLoss(Loss):
    """Cross entropy of one class out of many.

    Parameters
    ----------
    axis : int, default -1
        The axis of the classes.
    sparse_label : bool, default True
        Whether labels are class numbers, or distributions of the shape of `pred`.
    from_logits : bool, default False
        Whether `pred` is a log probability already, or a score before the softmax.
    weight, batch_axis, **kwargs
        See `Loss`.

    Notes
    -----
    Called as ``loss(pred, label, sample_weight=None)``. Behaviour matched: MXNet 1.9.1
    ``gluon.loss.SoftmaxCrossEntropyLoss``.

    Examples
    --------
    >>> import mxcore as mx
    >>> loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    >>> round(float(loss(mx.nd.array([[0, 0]]), mx.nd.array([1])).asscalar()), 4)
    0.6931
    """

    def __init__(
        self,
        axis: int = -1,
        sparse_label: bool = True,
        from_logits: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._axis = axis
        self._sparse_label = sparse_label
        self._from_logits = from_logits

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        if self._sparse_label:
            loss = -F.pick(pred, label, axis=self._axis, keepdims=True)
        else:
            loss = -F.sum(pred * F.reshape_like(label, pred), axis=self._axis, keepdims=True)
        return self._sample_mean(F, self._weighted(F, loss, sample_weight))


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss):
    """Kullback-Leibler divergence of distributions, the sum over all axes but the batch axis.

    Parameters
    ----------
    from_logits : bool, default True
        Whether `pred` is a log probability already, or a score before the softmax.
    axis : int, default -1
        The axis of the softmax, if one is taken.
    weight, batch_axis, **kwargs
        See `Loss`.

    Notes
    -----
    Called as ``loss(pred, label, sample_weight=None)``. Behaviour matched: MXNet 1.9.1
    ``gluon.loss.KLDivLoss``.
    """

    def __init__(
        self, from_logits: bool = True, axis: int = -1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._axis = axis

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        loss = label * (F.log(label + _TINY) - pred)
        return F.sum(self._weighted(F, loss, sample_weight), axis=self._batch_axis, exclude=True)


class HingeLoss(Loss):
    """``max(0, margin - pred * label)`` for labels -1 and 1.

    Parameters
    ----------
    margin : float, default 1
    weight, batch_axis, **kwargs
        See `Loss`.

    Notes
    -----
    Called as ``loss(pred, label, sample_weight=None)``.
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        loss = F.relu(self._margin - pred * F.reshape_like(label, pred))
        return self._sample_mean(F, self._weighted(F, loss, sample_weight))


class SquaredHingeLoss(Loss):
    """``max(0, margin - pred * label)²`` for labels -1 and 1.

    Parameters
    ----------
    margin : float, default 1
    weight, batch_axis, **kwargs
        See `Loss`.

    Notes
    -----
    Called as ``loss(pred, label, sample_weight=None)``.
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        loss = F.square(F.relu(self._margin - pred * F.reshape_like(label, pred)))
        return self._sample_mean(F, self._weighted(F, loss, sample_weight))


class LogisticLoss(Loss):
    """``log(1 + exp(-pred * label))`` for labels -1 and 1, or the same for labels 0 and 1.

    Parameters
    ----------
    weight : float, optional
    batch_axis : int, default 0
    label_format : {'signed', 'binary'}
        Whether the labels are -1 and 1, or 0 and 1.
    **kwargs
        prefix, params.

    Notes
    -----
    Called as ``loss(pred, label, sample_weight=None)``.
    """

    def __init__(
        self, weight: float | None = None, batch_axis: int = 0, label_format: str = "signed", **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        if label_format not in ("signed", "binary"):
            raise error(ValueError, f"label_format can only be signed or binary, received {label_format}.")
        self._label_format = label_format

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        label = F.reshape_like(label, pred)
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        loss = _binary_cross_entropy(F, pred, label)
        return self._sample_mean(F, self._weighted(F, loss, sample_weight))
