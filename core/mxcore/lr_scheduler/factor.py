"""Geometric decay every n updates."""

import logging

from ..base import error
from .base import LRScheduler, updates


class FactorScheduler(LRScheduler):
    """Multiply the learning rate by `factor` every `step` updates, down to `stop_factor_lr`.

    Parameters
    ----------
    step : int or float
        Number of updates between two changes.
    factor : float
        Multiplier, at most 1.
    stop_factor_lr : float
        Smallest learning rate.
    base_lr, warmup_steps, warmup_begin_lr, warmup_mode
        As for `LRScheduler`.

    Raises
    ------
    MXNetError
        (also ValueError) if `step` is below 1 or `factor` above 1.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.lr_scheduler.FactorScheduler``. It remembers how far it decayed: the
    numbers of updates must not go back.

    Examples
    --------
    >>> schedule = FactorScheduler(10, 0.1, base_lr=1.0, stop_factor_lr=0.05)
    >>> [schedule(n) for n in (10, 11, 21)]
    [1.0, 0.1, 0.05]
    """

    def __init__(
        self,
        step: float,
        factor: float = 1,
        stop_factor_lr: float = 1e-8,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if factor > 1.0:
            raise error(ValueError, f"factor must be at most 1 for the learning rate to decay, not {factor}")
        self.step = updates("step", step)
        self.factor = factor
        self.stop_factor_lr = stop_factor_lr
        self.count: float = 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while num_update > self.count + self.step:  # more than one step after loading a checkpoint
            before = self.base_lr
            self.base_lr = max(before * self.factor, self.stop_factor_lr)
            if self.base_lr == self.stop_factor_lr:
                logging.info("Update[%d]: the learning rate stays at %0.5e now", num_update, self.base_lr)
            else:
                logging.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
            # Where it stays the same, so it does in all further steps.
            steps = 1 if self.base_lr != before else -((self.count - num_update) // updates("step", self.step)) - 1
            count, self.count = self.count, self.count + max(steps, 1) * self.step
            if self.count == count:
                break  # beyond what floats tell apart
        return self.base_lr
