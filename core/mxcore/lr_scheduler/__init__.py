"""Learning-rate schedules: functions of the number of updates.

>>> import mxcore as mx
>>> schedule = mx.lr_scheduler.FactorScheduler(step=100, factor=0.5, base_lr=0.1)
>>> [schedule(n) for n in (1, 101, 201)]
[0.1, 0.05, 0.025]
"""

from math import cos, pi

from .. import registry as _registry
from .base import LRScheduler
from .cosine import CosineScheduler
from .factor import FactorScheduler
from .multi_factor import MultiFactorScheduler
from .poly import PolyScheduler

register = _registry.get_register_func(LRScheduler, "lr_scheduler")
create = _registry.get_create_func(LRScheduler, "lr_scheduler")

__all__ = [
    "CosineScheduler",
    "FactorScheduler",
    "LRScheduler",
    "MultiFactorScheduler",
    "PolyScheduler",
    "cos",
    "create",
    "pi",
    "register",
]
