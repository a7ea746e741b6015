"""`BatchProcessor`: what an estimator does with one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import autograd
from ....base import error
from ...utils import split_and_load

if TYPE_CHECKING:
    from ....context import Context
    from .estimator import Estimator

__all__ = ["BatchProcessor"]


class BatchProcessor:
    """What an estimator does with one batch; subclasses change it, e.g. for nets of several inputs or losses.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.contrib.estimator.BatchProcessor``. Arrays of a batch are split over the
    contexts of the estimator.

    Examples
    --------
    >>> from mxcore.gluon.contrib.estimator import BatchProcessor
    >>> class Autoencoder(BatchProcessor):
    ...     def _get_data_and_label(self, batch, ctx, batch_axis=0):
    ...         data, _ = super()._get_data_and_label(batch, ctx, batch_axis)
    ...         return data, data
    """

    def _get_data_and_label(self, batch: Any, ctx: list[Context], batch_axis: int = 0) -> tuple[Any, ...]:
        if not isinstance(batch, (list, tuple)) or len(batch) < 2:
            raise error(
                ValueError,
                f"{type(self).__name__}: a batch must be data and label, got {_outline(batch)}; give the estimator a "
                "batch_processor that knows other batches",
            )
        return tuple(split_and_load(part, ctx_list=ctx, batch_axis=batch_axis) for part in batch[:2])

    def evaluate_batch(self, estimator: Estimator, val_batch: list[Any], batch_axis: int = 0) -> tuple[Any, ...]:
        """Run the validation net and loss on a batch.

        Parameters
        ----------
        estimator : Estimator
        val_batch : list
            Data and label.
        batch_axis : int, default 0
            The axis that is split over the contexts.

        Returns
        -------
        data, label, pred, loss : list of NDArray
            A part for each context.
        """
        data, label = self._get_data_and_label(val_batch, estimator.context, batch_axis)
        pred = [estimator.val_net(x) for x in data]
        return data, label, pred, [estimator.val_loss(p, y) for p, y in zip(pred, label)]

    def fit_batch(self, estimator: Estimator, train_batch: list[Any], batch_axis: int = 0) -> tuple[Any, ...]:
        """Run net and loss on a batch, and the backward pass.

        Parameters
        ----------
        estimator : Estimator
        train_batch : list
            Data and label.
        batch_axis : int, default 0
            The axis that is split over the contexts.

        Returns
        -------
        data, label, pred, loss : list of NDArray
            A part for each context.
        """
        data, label = self._get_data_and_label(train_batch, estimator.context, batch_axis)
        with autograd.record():
            pred = [estimator.net(x) for x in data]
            loss = [estimator.loss(p, y) for p, y in zip(pred, label)]
        for part in loss:
            part.backward()
        return data, label, pred, loss


def _outline(batch: Any) -> str:
    """A batch in a few words."""
    if isinstance(batch, (list, tuple)):
        return f"a {type(batch).__name__} of {len(batch)}"
    shape = getattr(batch, "shape", None)
    return type(batch).__name__ + ("" if shape is None else f" {shape}")
