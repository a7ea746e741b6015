"""A rule for tests."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray
from .base import Optimizer, zeros_like


class Test(Optimizer):
    """Add the rescaled gradient to the weight; the state is a copy of the result.

    Parameters
    ----------
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.Test``.

    Examples
    --------
    >>> import mxcore as mx
    >>> rule, weight = Test(rescale_grad=2.0), mx.nd.array([1.0])
    >>> rule.update(0, weight, mx.nd.array([3.0]), rule.create_state(0, weight))
    >>> weight.asnumpy()
    array([7.], dtype=float32)
    """

    __test__ = False  # not a class of tests, for pytest

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        weight += grad * self.rescale_grad
        state[:] = weight
