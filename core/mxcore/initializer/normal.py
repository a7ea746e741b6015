"""Normal noise."""

from .. import random
from .base import Initializer


class Normal(Initializer):
    """Fill with normal noise of mean 0.

    Parameters
    ----------
    sigma : float
        Standard deviation.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.Normal``.

    Examples
    --------
    >>> Normal(0.1).dumps()
    '["normal", {"sigma": 0.1}]'
    """

    def __init__(self, sigma=0.01):
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, _, arr):
        random.normal(0, self.sigma, out=arr)
