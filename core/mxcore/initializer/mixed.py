"""Different initializers for different names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ..base import asserted, error
from ..ndarray import NDArray


class Mixed:
    """Choose the initializer by the parameter's name.

    Parameters
    ----------
    patterns : list of str
        Regular expressions, matched at the start of the name; the first that fits counts.
    initializers : list of Initializer
        One for each pattern.

    Raises
    ------
    MXNetError
        (also ValueError) if the lists differ in length, or no pattern fits a name.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.Mixed``.

    Examples
    --------
    >>> import mxcore as mx
    >>> a = mx.nd.zeros(2)
    >>> Mixed([".*bias", ".*"], [mx.init.Zero(), mx.init.One()])(mx.init.InitDesc("fc_weight"), a)
    >>> a.asnumpy()
    array([1., 1.], dtype=float32)
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Callable[[str, NDArray], Any]]) -> None:
        if len(patterns) != len(initializers):
            raise asserted(ValueError, f"{len(patterns)} patterns, but {len(initializers)} initializers")
        self.map = [(re.compile(pattern), init) for pattern, init in zip(patterns, initializers)]

    def __call__(self, name: str, arr: NDArray) -> None:
        """Fill `arr`, the parameter `name`."""
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        raise error(ValueError, f"no pattern fits parameter {name!r}; add '.*' with a default at the end")
