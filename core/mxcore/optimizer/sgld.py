"""Stochastic gradient Langevin dynamics."""

import math

from .. import random
from .base import Optimizer


class SGLD(Optimizer):
    """Stochastic gradient Langevin dynamics: noisy descent that samples from a posterior.

    ::

        weight = weight - lr / 2 * (clip(rescale_grad * grad) + wd * weight) + normal(0, sqrt(lr))

    Parameters
    ----------
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.SGLD``; Welling and Teh, "Bayesian learning via stochastic
    gradient Langevin dynamics" (ICML 2011).

    Examples
    --------
    >>> SGLD(learning_rate=0.1).lr
    0.1
    """

    def update(self, index, weight, grad, state):
        lr, wd, _ = self._begin(index)
        noise = random.normal(0, math.sqrt(lr), shape=weight.shape, dtype=weight.dtype, ctx=weight.context)
        weight += noise - (self._prepared(grad) + weight * wd) * (lr / 2)
