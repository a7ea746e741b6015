"""The base of learning-rate schedules, with their warm-up."""

from __future__ import annotations

import math
import numbers
from operator import index
from typing import Any

from ..base import asserted, error

WARMUP_MODES = ("linear", "constant")


class LRScheduler:
    """A learning rate as a function of the number of updates; subclasses define ``__call__(num_update)``.

    Parameters
    ----------
    base_lr : float
        Learning rate after the warm-up.
    warmup_steps : int
        Number of updates before the schedule proper starts.
    warmup_begin_lr : float
        Learning rate at update 0, if there is a warm-up.
    warmup_mode : {'linear', 'constant'}
        Rise linearly from `warmup_begin_lr` to `base_lr`, or stay at `warmup_begin_lr`.

    Raises
    ------
    MXNetError
        (also ValueError) if `warmup_begin_lr` exceeds `base_lr`, `warmup_steps` is negative or no integer,
        or the mode is unknown.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.lr_scheduler.LRScheduler``. The warm-up ends at the `base_lr` given
    here, also when an optimizer with a learning rate of its own overwrites `base_lr` later.

    Examples
    --------
    >>> LRScheduler(0.1, warmup_steps=4).get_warmup_lr(2)
    0.05
    """

    def __init__(
        self, base_lr: float = 0.01, warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear"
    ) -> None:
        self.base_lr = base_lr
        self.warmup_steps = whole("warmup_steps", warmup_steps, at_least=0)
        self.warmup_final_lr = base_lr
        self.warmup_begin_lr = warmup_begin_lr
        if warmup_begin_lr > base_lr:
            raise error(ValueError, f"warmup_begin_lr {warmup_begin_lr} must not exceed base_lr {base_lr}")
        if warmup_mode not in WARMUP_MODES:
            raise error(ValueError, f"unknown warmup_mode {warmup_mode!r}; it is {' or '.join(WARMUP_MODES)}")
        self.warmup_mode = warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """Return the learning rate during the warm-up.

        Parameters
        ----------
        num_update : int
            Number of updates so far, below `warmup_steps`.

        Returns
        -------
        float
        """
        if num_update >= self.warmup_steps:
            raise error(ValueError, f"update {num_update} is past the warm-up of {self.warmup_steps} updates")
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        rise = (self.warmup_final_lr - self.warmup_begin_lr) * float(num_update) / float(self.warmup_steps)
        return self.warmup_begin_lr + rise

    def __call__(self, num_update: int) -> float:
        """Return the learning rate for update number `num_update`."""
        raise error(NotImplementedError, f"{type(self).__name__} does not define __call__(num_update)")


def updates(name: str, value: Any) -> float:
    """Return `value`, which must be a number of updates, whole or not; `name` is for the error."""
    known: Any = value if isinstance(value, numbers.Real) and not isinstance(value, bool) else 0
    if not 1 <= known < math.inf:
        raise asserted(ValueError, f"{name} must be a number of at least 1, not {value!r}")
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def whole(name: str, value: Any, at_least: int) -> int:
    """Return `value`, which must be an integer of at least `at_least`; `name` is for the error."""
    if not hasattr(value, "__index__") or value < at_least:
        raise asserted(ValueError, f"{name} must be an integer of at least {at_least}, not {value!r}")
    return index(value)
