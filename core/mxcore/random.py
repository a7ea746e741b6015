"""Seeds, and the samplers of ``mx.nd.random`` under their old names, as ``mxnet.random``."""

from __future__ import annotations

import numbers
from typing import Any

from ._core import rng
from ._core.context import Context
from ._core.errors import error
from ._reexports import reexports

__all__ = ["seed"]


def seed(seed_state: int, ctx: Any = "all") -> None:
    """Seed the random operators.

    Parameters
    ----------
    seed_state : int
    ctx : Context or 'all'
        Seed one context, or all of them. A single context seeded with s draws the same numbers on every context.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.random.seed(1)
    >>> a = mx.nd.random.uniform(shape=(2,)).asnumpy()
    >>> mx.random.seed(1)
    >>> bool((a == mx.nd.random.uniform(shape=(2,)).asnumpy()).all())
    True
    """
    if not isinstance(seed_state, numbers.Integral):
        raise error(TypeError, f"random.seed: seed_state must be an int, got {seed_state!r}")
    value = int(seed_state)
    if isinstance(ctx, str):
        if ctx != "all":
            raise error(ValueError, f"random.seed: ctx must be a Context or 'all', got {ctx!r}")
        rng.seed(value)
    else:
        rng.seed(value, Context(ctx))


_borrow = reexports(__name__)


def __getattr__(name: str) -> Any:
    from .ndarray import random as samplers

    found = getattr(samplers, name, None)
    return _borrow(name) if found is None else found
