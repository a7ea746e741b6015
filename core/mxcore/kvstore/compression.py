"""Compression of gradients for stores."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from ..base import error
from ..ndarray import NDArray

__all__ = ["TwoBit", "compressor"]


class TwoBit:
    """Quantise to -threshold, 0 and threshold, and carry the error over to the next time.

    Parameters
    ----------
    threshold : float
        Greater than 0.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 gradient compression of type ``'2bit'``.

    Examples
    --------
    >>> import mxcore as mx
    >>> quantise = TwoBit(threshold=0.5)
    >>> quantise("w", mx.nd.array([0.3, -0.7])).asnumpy()
    array([ 0. , -0.5], dtype=float32)
    >>> quantise("w", mx.nd.array([0.3, 0.0])).asnumpy()
    array([0.5, 0. ], dtype=float32)
    """

    def __init__(self, threshold: float = 0.5) -> None:
        try:
            self.threshold = float(threshold)
        except (TypeError, ValueError):
            raise error(ValueError, f"gradient compression: threshold must be a number, got {threshold!r}") from None
        if not 0 < self.threshold < float("inf"):
            raise error(ValueError, f"gradient compression: threshold must be greater than 0, got {threshold!r}")
        self.residuals: dict[Hashable, NDArray] = {}

    def __call__(self, slot: Hashable, grad: NDArray) -> NDArray:
        """Return the quantised sum of a gradient and the error that its slot has carried over."""
        if grad.stype != "default":
            raise error(TypeError, f"gradient compression takes dense gradients, got a {grad.stype} one for {slot!r}")
        carried, t = self.residuals.get(slot), self.threshold
        value = grad if carried is None else carried.as_in_context(grad.context) + grad
        quantised = ((value >= t) - (value <= -t)) * t
        self.residuals[slot] = value - quantised
        return quantised


#: Type -> class, called with the other parameters.
TYPES = {"2bit": TwoBit}


def compressor(params: Mapping[str, Any]) -> TwoBit:
    """Make what a user's ``compression_params`` describe.

    Parameters
    ----------
    params : dict
        ``type`` and the parameters of that type, e.g. ``{'type': '2bit', 'threshold': 0.5}``.

    Raises
    ------
    MXNetError
        (also ValueError or TypeError) naming what is wrong.
    """
    if not isinstance(params, Mapping):
        raise error(TypeError, f"compression_params must be a dict such as {{'type': '2bit'}}, got {params!r}")
    rest = dict(params)
    kind = rest.pop("type", None)
    if kind not in TYPES:
        raise error(
            ValueError, f"gradient compression: type must be one of {', '.join(map(repr, TYPES))}, got {kind!r}"
        )
    unknown = set(rest) - {"threshold"}
    if unknown:
        raise error(ValueError, f"gradient compression: unknown parameter {min(unknown)!r}; {kind!r} takes 'threshold'")
    return TYPES[kind](**rest)
