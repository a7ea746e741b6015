"""Layer-wise adaptive moments."""

from __future__ import annotations

from typing import Any

from ..ndarray import NDArray, _internal
from ._steps import aggregation_size
from .base import Optimizer, zeros_like


class LAMB(Optimizer):
    """Adam whose steps have, for each layer, the length of the weight.

    ::

        mean   = beta1 * mean + (1 - beta1) * grad
        var    = beta2 * var  + (1 - beta2) * grad**2
        g      = mean / (sqrt(var) + epsilon) + wd * weight          (mean and var corrected for their start)
        weight = weight - lr * bounded(|weight|) / |g| * g

    Parameters
    ----------
    learning_rate : float
        The learning rate.
    beta1, beta2 : float
        Decay of the moments.
    epsilon : float
        Added to the denominator.
    lower_bound, upper_bound : float, optional
        Bounds on the norm of the weight.
    bias_correction : bool
        Correct the moments for their start at 0.
    **kwargs
        As for `Optimizer`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.LAMB``; You et al., "Large batch optimization for deep
    learning: training BERT in 76 minutes" (ICLR 2020). One call moves up to
    ``MXNET_OPTIMIZER_AGGREGATION_SIZE`` (45) weights.

    Examples
    --------
    >>> LAMB().aggregate_num
    45
    """

    reads_whole = True

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        bias_correction: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        self.bias_correction = bias_correction
        self.aggregate_num = aggregation_size(45)

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight, weight.stype), zeros_like(weight, weight.stype)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._move(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        several = isinstance(index, (list, tuple))
        self._move(index, weight, grad, state, self._has_master(weight[0] if several else weight))

    def _move(self, index: Any, weight: Any, grad: Any, state: Any, master: bool) -> None:
        if not isinstance(index, (list, tuple)):
            index, weight, grad, state = [index], [weight], [grad], [state]
        self._update_count(index)
        lrs, wds = self._get_lrs(index), self._get_wds(index)
        steps = [self._index_update_count[i] for i in index]
        common = dict(
            self._common(),
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            bias_correction=self.bias_correction,
        )
        if self.lower_bound:
            common["lower_bound"] = self.lower_bound
        if self.upper_bound:
            common["upper_bound"] = self.upper_bound
        inputs = []
        for w, g, s in zip(weight, grad, state):
            inputs += [w, g, *s[1], s[0]] if master else [w, g, *s]
        operator = _internal._multi_mp_lamb_update if master else _internal._multi_lamb_update
        operator(*inputs, learning_rates=lrs, wds=wds, step_count=steps, out=weight, num_tensors=len(weight), **common)
