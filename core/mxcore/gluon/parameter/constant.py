"""`Constant`: a parameter that never learns."""

from __future__ import annotations

import warnings
from typing import Any

from ... import initializer
from ... import ndarray as nd
from ...ndarray.numpy import arrays
from ..utils import is_np_array
from .parameter import Parameter

__all__ = ["Constant"]


class _Value(initializer.Initializer):
    """Fills a constant with its value."""

    def __init__(self, value: nd.NDArray) -> None:
        # Not handed to the base: its keywords end up, as JSON, in the symbol's attributes.
        super().__init__()
        self.value = value

    def _init_weight(self, _: Any, arr: nd.NDArray) -> None:
        self.value.copyto(arr)


class Constant(Parameter):
    """A parameter with a fixed value and no gradient.

    Parameters
    ----------
    name : str
    value : NDArray or array_like
        The value; it also fixes shape and dtype (float32 for anything but arrays; after
        ``npx.set_np()`` what ``np.array`` makes of it).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.Constant``.

    Examples
    --------
    >>> import mxcore as mx
    >>> c = mx.gluon.Constant('c', [[1, 2]])
    >>> c.initialize()
    >>> c.data().shape, c.grad_req
    ((1, 2), 'null')
    """

    def __init__(self, name: str, value: Any) -> None:
        if not isinstance(value, nd.NDArray):
            value = (arrays if is_np_array() else nd).array(value)
        self.value = value
        super().__init__(name, grad_req="null", shape=value.shape, dtype=value.dtype, init=_Value(value))

    def __repr__(self) -> str:
        return f"Constant {self.name} (shape={self.shape}, dtype={self.dtype})"

    @property
    def grad_req(self) -> str:
        """Always 'null'."""
        return "null"

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req != "null":
            warnings.warn(
                f"Constant parameter '{self.name}' does not support grad_req other than 'null', "
                f"and new value '{req}' is ignored.",
                UserWarning,
                stacklevel=2,
            )
        self._grad_req = "null"
