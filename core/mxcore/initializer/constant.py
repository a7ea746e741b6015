"""Constants."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray
from .base import Initializer


class Constant(Initializer):
    """Fill with one value, or with an array of values.

    Parameters
    ----------
    value : float, list, numpy.ndarray or NDArray
        The value; an array must have the parameter's shape.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.Constant``.

    Examples
    --------
    >>> Constant(0.5).dumps()
    '["constant", {"value": 0.5}]'
    """

    def __init__(self, value: Any) -> None:
        plain = value.asnumpy() if hasattr(value, "asnumpy") else value
        super().__init__(value=plain.tolist() if hasattr(plain, "tolist") else plain)
        self.value = value

    def _init_weight(self, _: Any, arr: NDArray) -> None:
        arr[:] = self.value


class Zero(Initializer):
    """Fill with zeros.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.Zero``, also known as ``'zeros'``.

    Examples
    --------
    >>> Zero().dumps()
    '["zero", {}]'
    """

    def _init_weight(self, _: Any, arr: NDArray) -> None:
        arr[:] = 0


class One(Initializer):
    """Fill with ones.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.One``, also known as ``'ones'``.

    Examples
    --------
    >>> One().dumps()
    '["one", {}]'
    """

    def _init_weight(self, _: Any, arr: NDArray) -> None:
        arr[:] = 1
