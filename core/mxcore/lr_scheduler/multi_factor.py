"""Geometric decay at given updates."""

import logging

from ..base import asserted, error
from .base import LRScheduler, updates


class MultiFactorScheduler(LRScheduler):
    """Multiply the learning rate by `factor` after each of the given numbers of updates.

    Parameters
    ----------
    step : list of int or float
        Increasing numbers of updates; the change shows from the update after.
    factor : float
        Multiplier, at most 1.
    base_lr, warmup_steps, warmup_begin_lr, warmup_mode
        As for `LRScheduler`.

    Raises
    ------
    MXNetError
        (also ValueError) if `step` is no increasing list of numbers from 1 on, or `factor` is above 1.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.lr_scheduler.MultiFactorScheduler``.

    Examples
    --------
    >>> schedule = MultiFactorScheduler([10, 30], 0.1, base_lr=1.0)
    >>> [round(schedule(n), 3) for n in (10, 11, 31)]
    [1.0, 0.1, 0.01]
    """

    def __init__(
        self,
        step: list[float],
        factor: float = 1,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(step, list) or not step:
            raise asserted(TypeError, f"step must be a list of numbers of updates, not {step!r}")
        step = [updates(f"step[{i}]", s) for i, s in enumerate(step)]
        for i, s in enumerate(step):
            if i and s <= step[i - 1]:
                raise error(ValueError, f"step must increase, but step[{i}] = {s} follows {step[i - 1]}")
        if factor > 1.0:
            raise error(ValueError, f"factor must be at most 1 for the learning rate to decay, not {factor}")
        self.step = step
        self.cur_step_ind = 0
        self.factor = factor
        self.count: float = 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            logging.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr
