"""Adam with Nesterov's momentum."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray
from .base import Optimizer, zeros_like


class Nadam(Optimizer):
    """Adam with Nesterov's momentum.

    ::

        grad      = clip(rescale_grad * grad + wd * weight) mean, var = as in Adam now       = beta1 * (1 -
        0.96**(t * schedule_decay) / 2),   next = the same for t + 1 bar       = (1 - now) * grad / (1 -
        product of all now) + next * mean / (1 - product of all now * next) weight    = weight - lr * bar /
        (sqrt(var / (1 - beta2**t)) + epsilon)

    Parameters
    ----------
    learning_rate : float
        The learning rate.
    beta1, beta2 : float
        Decays.
    epsilon : float
        Added to the denominator.
    schedule_decay : float
        Decay of the schedule of momentum.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.Nadam``, where all parameters share one product; Dozat,
    "Incorporating Nesterov momentum into Adam" (2016).

    Examples
    --------
    >>> Nadam().schedule_decay
    0.004
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        schedule_decay: float = 0.004,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.schedule_decay = schedule_decay
        self.m_schedule = 1.0

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight), zeros_like(weight)

    def _momentum(self, t: int) -> float:
        return self.beta1 * (1.0 - 0.5 * float(0.96 ** (t * self.schedule_decay)))

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        lr, wd, t = self._begin(index)
        mean, var = state
        grad = self._clipped(grad * self.rescale_grad + weight * wd)
        now, following = self._momentum(t), self._momentum(t + 1)
        self.m_schedule *= now
        mean *= self.beta1
        mean += grad * (1.0 - self.beta1)
        var *= self.beta2
        var += grad.square() * (1.0 - self.beta2)
        bar = grad * ((1.0 - now) / (1.0 - self.m_schedule))
        bar += mean * (following / (1.0 - self.m_schedule * following))
        weight -= bar / ((var / (1.0 - self.beta2**t)).sqrt() + self.epsilon) * lr
