"""Bilinear interpolation."""

from __future__ import annotations

from ..base import error
from ..ndarray import NDArray
from .base import Initializer, bilinear_weight


class Bilinear(Initializer):
    """Fill with the weights with which a deconvolution interpolates bilinearly.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.Bilinear``; the formula is Caffe's ``BilinearFiller``.

    Examples
    --------
    >>> import mxcore as mx
    >>> a = mx.nd.zeros((1, 1, 4, 4))
    >>> Bilinear()(mx.init.InitDesc("up_weight"), a)
    >>> a.asnumpy()[0, 0, 0]
    array([0.0625, 0.1875, 0.1875, 0.0625], dtype=float32)
    """

    def _init_weight(self, name: str, arr: NDArray) -> None:
        if len(arr.shape) != 4:
            raise error(ValueError, f"Bilinear needs 4 dimensions, but {name} has shape {arr.shape}")
        arr[:] = bilinear_weight(arr.shape)
