"""The loss of sequences without alignment."""

from __future__ import annotations

from typing import Any

from ...base import error
from .base import Loss

__all__ = ["CTCLoss"]


class CTCLoss(Loss):
    """Connectionist temporal classification (Graves et al., 2006).

    Parameters
    ----------
    layout : {'NTC', 'TNC'}
        Order of the axes of `pred`: batch, time, classes. The last class is the blank.
    label_layout : {'NT', 'TN'}
        Order of the axes of `label`.
    weight : float, optional
    **kwargs
        prefix, params.

    Notes
    -----
    Called as ``loss(pred, label, pred_lengths=None, label_lengths=None, sample_weight=None)``; `pred` has
    scores before the softmax. Without lengths, labels are padded with -1. Behaviour matched: MXNet 1.9.1
    ``gluon.loss.CTCLoss``.
    """

    def __init__(
        self, layout: str = "NTC", label_layout: str = "NT", weight: float | None = None, **kwargs: Any
    ) -> None:
        for what, given, known in (("layout", layout, ("NTC", "TNC")), ("label_layout", label_layout, ("NT", "TN"))):
            if given not in known:
                raise error(
                    AssertionError, f"CTCLoss: only {known[0]!r} and {known[1]!r} {what} are supported, got {given!r}"
                )
        self._layout = layout
        self._label_layout = label_layout
        super().__init__(weight, label_layout.find("N"), **kwargs)

    def hybrid_forward(
        self,
        F: Any,
        pred: Any,
        label: Any,
        pred_lengths: Any = None,
        label_lengths: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        if self._layout == "NTC":
            pred = F.swapaxes(pred, 0, 1)
        if self._batch_axis == 1:
            label = F.swapaxes(label, 0, 1)
        lengths = [x for x in (pred_lengths, label_lengths) if x is not None]
        loss = F.CTCLoss(
            pred,
            label,
            *lengths,
            use_data_lengths=pred_lengths is not None,
            use_label_lengths=label_lengths is not None,
            blank_label="last",
        )
        return self._weighted(F, loss, sample_weight)
