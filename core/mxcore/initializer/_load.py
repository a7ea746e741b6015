"""Values from a file."""

from __future__ import annotations

import logging
from typing import Any

from ..base import asserted, error
from ..ndarray import NDArray, load
from ..ndarray.files import without_kinds
from .base import Initializer


class Load:
    """Fill from saved arrays of the same names.

    Parameters
    ----------
    param : str or dict of str to NDArray
        A file of `mx.nd.save`, or its content. Prefixes ``arg:`` and ``aux:`` are dropped.
    default_init : Initializer, optional
        Initializer of parameters that were not saved.
    verbose : bool
        Log where each parameter comes from.

    Raises
    ------
    MXNetError
        (also ValueError) if a shape differs; (also KeyError) if a parameter is missing and there is no
        `default_init`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.Load``.

    Examples
    --------
    >>> import mxcore as mx
    >>> a = mx.nd.zeros(2)
    >>> Load({"arg:fc_weight": mx.nd.array([1, 2])})("fc_weight", a)
    >>> a.asnumpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(self, param: Any, default_init: Initializer | None = None, verbose: bool = False) -> None:
        if isinstance(param, str):
            param = load(param)
        if not isinstance(param, dict):
            raise error(TypeError, f"Load needs a dictionary of arrays, not a {type(param).__name__}")
        self.param = without_kinds(param, "Load")
        self.default_init = default_init
        self.verbose = verbose

    def __call__(self, name: str, arr: NDArray) -> None:
        """Fill `arr` with what was saved as `name`."""
        saved = self.param.get(name)
        if saved is not None:
            if saved.shape != arr.shape:
                raise error(ValueError, f"{name} has shape {arr.shape}, but was saved with {saved.shape}")
            arr[:] = saved
        elif self.default_init is not None:
            self.default_init(name, arr)
        else:
            raise asserted(KeyError, f"{name} was not saved, and there is no default_init for it")
        if self.verbose:
            logging.info("Initialized %s by %s", name, "default" if saved is None else "loading")
