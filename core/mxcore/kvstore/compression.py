"""Compression of gradients for stores: of dense float32 arrays, on the way from who pushes to who adds up."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _importing
from ..base import error
from ..ndarray import NDArray
from .keys import Key

__all__ = ["Compression", "Narrow", "TwoBit", "compressor", "narrow"]

#: Types that send each number in fewer bytes.
NARROW = ("fp16", "bfloat16")


def narrow(kind: str) -> Any:
    """The dtype that numbers of a type have on the way: ``'fp16'`` or ``'bfloat16'``."""
    if kind not in NARROW:
        raise ValueError(f"{kind!r} is no encoding")
    if kind == "fp16":
        return np.dtype(np.float16)
    return np.dtype(_importing.load("ml_dtypes").bfloat16)


class Compression:
    """What makes less of gradients."""

    #: What users call it.
    type: str

    def check(self, key: Key, grads: Sequence[NDArray]) -> None:
        """Refuse gradients that are not compressed: before any of a push has changed something.

        Parameters
        ----------
        key : int or str
        grads : sequence of NDArray

        Raises
        ------
        MXNetError
            (also TypeError) naming the key.
        """
        for grad in grads:
            if grad.stype != "default" or grad.dtype != np.float32:
                raise error(
                    TypeError,
                    f"kvstore: push of key {key!r}: gradient compression is for dense arrays of float32, this one is "
                    f"{grad.stype} of {np.dtype(grad.dtype).name}",
                )

    def __call__(self, slot: Hashable, grad: NDArray) -> NDArray:
        """Return what comes of a gradient, as float32.

        Parameters
        ----------
        slot : hashable
            Whose it is: what an earlier one of the same slot has left over joins it.
        grad : NDArray
        """
        raise NotImplementedError


class TwoBit(Compression):
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

    type = "2bit"

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
        carried, t = self.residuals.get(slot), self.threshold
        value = grad if carried is None else carried.as_in_context(grad.context) + grad
        quantised = ((value >= t) - (value <= -t)) * t
        self.residuals[slot] = value - quantised
        return quantised


class Narrow(Compression):
    """Round to numbers of half the bytes.

    Parameters
    ----------
    type : {'fp16', 'bfloat16'}

    Examples
    --------
    >>> import mxcore as mx
    >>> Narrow("fp16")("w", mx.nd.array([0.1])).asnumpy()
    array([0.09997559], dtype=float32)
    """

    def __init__(self, type: str) -> None:
        self.type, self.dtype = type, narrow(type)

    def __call__(self, slot: Hashable, grad: NDArray) -> NDArray:
        """Return a gradient, rounded."""
        return grad.astype(self.dtype).astype(grad.dtype)


#: Type -> the names of its other parameters, and what makes it of them.
TYPES: dict[str, tuple[frozenset[str], Callable[..., Compression]]] = {
    "2bit": (frozenset({"threshold"}), TwoBit),
    **{kind: (frozenset(), lambda kind=kind: Narrow(kind)) for kind in NARROW},
}


def compressor(params: Mapping[str, Any]) -> Compression:
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
    known, make = TYPES[kind]
    unknown = set(rest) - known
    if unknown:
        takes = ", ".join(map(repr, sorted(known))) or "no others"
        raise error(ValueError, f"gradient compression: unknown parameter {min(unknown)!r}; {kind!r} takes {takes}")
    return make(**rest)
