"""Cosine decay."""

from math import cos, pi

from .base import LRScheduler, whole


class CosineScheduler(LRScheduler):
    """Decay as ``final_lr + (base_lr - final_lr) * (1 + cos(pi * t)) / 2``, t from 0 to 1 after the warm-up.

    Parameters
    ----------
    max_update : int
        Number of updates, warm-up included, after which the learning rate stays at `final_lr`.
    base_lr : float
        Learning rate at the start.
    final_lr : float
        Learning rate at the end.
    warmup_steps, warmup_begin_lr, warmup_mode
        As for `LRScheduler`.

    Raises
    ------
    MXNetError
        (also ValueError) if `max_update` is no integer from 1 on.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.lr_scheduler.CosineScheduler``; Loshchilov and Hutter, "SGDR" (ICLR
    2017), without restarts.

    Examples
    --------
    >>> schedule = CosineScheduler(100, base_lr=1.0)
    >>> [round(schedule(n), 3) for n in (0, 50, 100)]
    [1.0, 0.5, 0.0]
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.base_lr_orig = base_lr
        self.max_update = whole("max_update", max_update, at_least=1)
        self.final_lr = final_lr
        self.max_steps = self.max_update - self.warmup_steps

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        if num_update <= self.max_update:
            half_turn = pi * (num_update - self.warmup_steps) / self.max_steps
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * (1 + cos(half_turn)) / 2
        return self.base_lr
