"""Dropout."""

from __future__ import annotations

from typing import Any

from ..block import HybridBlock

__all__ = ["Dropout"]


class Dropout(HybridBlock):
    """Set a random share of the inputs to zero while training and scale up the rest; nothing otherwise.

    Parameters
    ----------
    rate : float
        Share of the inputs to drop, from 0 to 1.
    axes : tuple of int, default ()
        Axes along which inputs are dropped together.
    **kwargs
        prefix, params.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.nn.Dropout`` (Srivastava et al., 2014).

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.gluon.nn.Dropout(0.5)(mx.nd.ones((2,))).asnumpy().tolist()
    [1.0, 1.0]
    """

    def __init__(self, rate: float, axes: tuple[int, ...] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._rate = rate
        self._axes = axes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        if self._rate > 0:
            return F.Dropout(x, p=self._rate, axes=self._axes, name="fwd", cudnn_off=False)
        return F.identity(x)
