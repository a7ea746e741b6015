"""The factor of the loss that keeps gradients within the range of float16."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from ... import ndarray as nd

__all__ = ["LossScaler"]


class LossScaler:
    """A factor that halves when gradients overflow, and doubles after 2000 steps in which none did.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.amp.loss_scaler.LossScaler``. A new factor counts from the call of
    `has_overflow` after the one that found it: the next loss is still scaled by the old one.

    Examples
    --------
    >>> import mxcore as mx
    >>> scaler = LossScaler()
    >>> scaler.loss_scale
    65536.0
    """

    def __init__(self) -> None:
        self._loss_scale = self._next_loss_scale = 2.0**16
        self._max_loss_scale = 2.0**24
        self._scale_seq_len = 2000
        self._unskipped = 0

    @property
    def loss_scale(self) -> float:
        """What losses are multiplied by."""
        return self._loss_scale

    def has_overflow(self, params: Iterable[Any]) -> bool:
        """Whether a gradient holds an infinity or NaN; also decides on the next factor.

        Parameters
        ----------
        params : iterable of Parameter
            Those without gradients are passed over.

        Returns
        -------
        bool
        """
        self._loss_scale = self._next_loss_scale
        overflow = not _all_finite(g for p in params if p.grad_req != "null" for g in p.list_grad())
        if overflow:
            self._next_loss_scale = self._loss_scale / 2
            self._unskipped = 0
            logging.info("AMP: decreasing loss scale to %f", self._next_loss_scale)
        else:
            self._unskipped += 1
        if self._unskipped == self._scale_seq_len:
            self._unskipped = 0
            self._next_loss_scale = min(self._max_loss_scale, self._loss_scale * 2)
            logging.info("AMP: increasing loss scale to %f", self._next_loss_scale)
        return overflow


def _all_finite(grads: Iterable[Any]) -> bool:
    """Whether all numbers of all arrays are finite: one look at each context."""
    by_context: dict[Any, list[Any]] = {}
    for g in grads:
        by_context.setdefault((g.context, g.dtype), []).append(g if g.stype == "default" else g._part("values"))
    return all(
        nd.multi_all_finite(*[g for g in arrays if g.size], num_arrays=sum(g.size > 0 for g in arrays)).asscalar() != 0
        for arrays in by_context.values()
        if any(g.size for g in arrays)
    )
