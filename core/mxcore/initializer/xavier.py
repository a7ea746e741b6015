"""Noise that keeps the scale of signals through layers."""

from __future__ import annotations

import math

from .. import random
from ..base import error
from ..ndarray import NDArray
from .base import Initializer

#: factor_type -> what the variance is divided by.
FACTORS = {
    "avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2.0,
    "in": lambda fan_in, fan_out: fan_in,
    "out": lambda fan_in, fan_out: fan_out,
}


class Xavier(Initializer):
    """Fill with noise of variance about ``magnitude / fan``.

    For a weight of shape (out, in, *kernel), the fans are ``in * size(kernel)`` and ``out * size(kernel)``.
    Uniform noise lies within ``±sqrt(magnitude / fan)``; normal noise has that standard deviation.

    Parameters
    ----------
    rnd_type : {'uniform', 'gaussian'}
        Kind of noise.
    factor_type : {'avg', 'in', 'out'}
        Which fan counts: their mean, the inputs' or the outputs'.
    magnitude : float
        Scale of the variance.

    Raises
    ------
    MXNetError
        (also ValueError) if a type is unknown or the array has fewer than 2 dimensions.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.Xavier``; Glorot and Bengio, "Understanding the difficulty of
    training deep feedforward neural networks" (AISTATS 2010).

    Examples
    --------
    >>> import mxcore as mx
    >>> a = mx.nd.zeros((4, 8))
    >>> mx.init.Xavier()(mx.init.InitDesc("fc_weight"), a)
    >>> bool((abs(a.asnumpy()) <= (3 / 6) ** 0.5).all())
    True
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        if factor_type not in FACTORS:
            raise error(ValueError, f"factor_type must be one of {', '.join(FACTORS)}, not {factor_type!r}")
        if rnd_type not in ("uniform", "gaussian"):
            raise error(ValueError, f"rnd_type must be 'uniform' or 'gaussian', not {rnd_type!r}")
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        shape = arr.shape
        if len(shape) < 2:
            kind = type(self).__name__
            raise error(ValueError, f"{kind} needs 2 dimensions at least, but {name} has shape {shape}")
        kernel = math.prod(shape[2:])
        scale = math.sqrt(self.magnitude / FACTORS[self.factor_type](shape[1] * kernel, shape[0] * kernel))
        if self.rnd_type == "uniform":
            random.uniform(-scale, scale, out=arr)
        else:
            random.normal(0, scale, out=arr)


class MSRAPrelu(Xavier):
    """Fill with normal noise fit for layers before a (leaky) ReLU: variance ``2 / (1 + slope**2) / fan``.

    Parameters
    ----------
    factor_type : {'avg', 'in', 'out'}
        Which fan counts.
    slope : float
        Slope of the ReLU on the negative side.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.MSRAPrelu``; He, Zhang, Ren and Sun, "Delving deep into
    rectifiers" (ICCV 2015).

    Examples
    --------
    >>> MSRAPrelu(slope=0).magnitude
    2.0
    """

    def __init__(self, factor_type: str = "avg", slope: float = 0.25) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}
