"""Losses that pull like things together and push others apart."""

from __future__ import annotations

from typing import Any

from ... import ndarray as nd
from ...base import error
from .base import Loss

__all__ = ["CosineEmbeddingLoss", "SDMLLoss", "TripletLoss"]


class TripletLoss(Loss):
    """``max(0, |pred - positive|² - |pred - negative|² + margin)``.

    Parameters
    ----------
    margin : float, default 1
    weight, batch_axis, **kwargs
        See `Loss`.

    Notes
    -----
    Called as ``loss(pred, positive, negative, sample_weight=None)``.

    Examples
    --------
    >>> import mxcore as mx
    >>> x = mx.nd.ones((2, 3))
    >>> mx.gluon.loss.TripletLoss()(x, x, x).asnumpy().tolist()
    [1.0, 1.0]
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, positive: Any, negative: Any, sample_weight: Any = None) -> Any:
        near = F.square(F.reshape_like(positive, pred) - pred)
        far = F.square(F.reshape_like(negative, pred) - pred)
        loss = F.relu(F.sum(near - far, axis=self._batch_axis, exclude=True) + self._margin)
        return self._weighted(F, loss, sample_weight)


class CosineEmbeddingLoss(Loss):
    """``1 - cos(a, b)`` for like pairs, ``max(0, cos(a, b) - margin)`` for others.

    Parameters
    ----------
    weight, batch_axis, **kwargs
        See `Loss`.
    margin : float, default 0
        Similarity that unlike pairs may have, from -1 to 1.

    Notes
    -----
    Called as ``loss(input1, input2, label, sample_weight=None)``, vectors along the last axis, labels 1
    (like) and -1. The result has shape ``(N, 1)``. Behaviour matched: MXNet 1.9.1
    ``gluon.loss.CosineEmbeddingLoss``.
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, input1: Any, input2: Any, label: Any, sample_weight: Any = None) -> Any:
        input1 = F.reshape_like(input1, input2)
        dot = F.sum(input1 * input2, axis=-1).reshape((-1, 1))
        norms = F.norm(input1, axis=-1).reshape((-1, 1)) * F.norm(input2, axis=-1).reshape((-1, 1))
        similarity = dot / F._internal._maximum_scalar(norms, scalar=1e-12)
        label = F.reshape_like(label, similarity)
        loss = F.where(label == 1, 1.0 - similarity, F.relu(similarity - self._margin))
        return self._weighted(F, loss, sample_weight)


class SDMLLoss(Loss):
    """Smoothed deep metric learning: every pair against the others of the batch (Bonadiman et al., 2019).

    Parameters
    ----------
    smoothing_parameter : float, default 0.3
        Probability given to all the wrong pairs together.
    weight : float, default 1.0
    batch_axis, **kwargs
        See `Loss`.

    Notes
    -----
    Called as ``loss(x1, x2)`` with rows that belong together, shape ``(N, D)``. It needs the batch size and
    runs on arrays only. Behaviour matched: MXNet 1.9.1 ``gluon.loss.SDMLLoss``; arXiv:1905.12786.
    """

    def __init__(
        self, smoothing_parameter: float = 0.3, weight: float = 1.0, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self.smoothing_parameter = smoothing_parameter

    def hybrid_forward(self, F: Any, x1: Any, x2: Any) -> Any:
        if F is not nd:
            raise error(TypeError, "SDMLLoss needs the batch size and cannot become a graph; do not hybridize it")
        n, d = x1.shape
        if x2.shape != (n, d) or n < 2:
            raise error(
                ValueError, f"SDMLLoss: x1 and x2 must be of one shape with 2 or more rows, got {x1.shape}, {x2.shape}"
            )
        eye = F.one_hot(F.contrib.arange_like(x1, axis=0), n)
        labels = eye * (1 - self.smoothing_parameter) + (1 - eye) * self.smoothing_parameter / (n - 1)
        distances = F.sum(F.square(F.expand_dims(x1, 1) - F.expand_dims(x2, 0)), axis=2)
        log_probs = F.log_softmax(-distances, axis=1)
        # The divergence of each row, summed over the pairs.
        return F.sum(labels * (F.log(labels + 1e-12) - log_probs), axis=1)
