"""Layers without parameters: functions, flattening, padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import ndarray as nd
from ...base import error
from ..block import Block, HybridBlock
from ..block.seen import as_seen_by

__all__ = ["Flatten", "HybridLambda", "Lambda", "ReflectionPad2D"]


class Flatten(HybridBlock):
    """Make all axes but the first one: ``(N, a, b, ...)`` to ``(N, a*b*...)``.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.gluon.nn.Flatten()(mx.nd.ones((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def __repr__(self) -> str:
        return type(self).__name__

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Flatten(x)


def _check_function(function: str | Callable[..., Any], where: str) -> str:
    """Name of the function; refuses what is neither callable nor the name of an operator."""
    if isinstance(function, str):
        if getattr(nd, function, None) is None:
            raise error(AssertionError, f"Function name {function} is not found in {where}.")
        return function
    if callable(function):
        return str(getattr(function, "__name__", type(function).__name__))
    raise error(ValueError, f"Unrecognized function in lambda: {function} of type {type(function)}")


class Lambda(Block):
    """A function as a block.

    Parameters
    ----------
    function : str or callable
        Name of an operator of `mxcore.nd`, or a function of the inputs.
    prefix : str, optional

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.gluon.nn.Lambda(lambda x: x + 1)(mx.nd.zeros((1,))).asnumpy().tolist()
    [1.0]
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        self._func_name = _check_function(function, "ndarray")
        self._function = function

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"

    def forward(self, *args: Any) -> Any:
        function = getattr(nd, self._function) if isinstance(self._function, str) else self._function
        return function(*args)


class HybridLambda(HybridBlock):
    """A function as a hybrid block.

    Parameters
    ----------
    function : str or callable
        Name of an operator of `mxcore.nd` and `mxcore.sym`, or a function of F and the inputs.
    prefix : str, optional

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.nn.HybridLambda(lambda F, x: F.relu(x) + 1)
    >>> layer(mx.nd.array([-1, 1])).asnumpy().tolist()
    [1.0, 2.0]
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        self._func_name = _check_function(function, "symbol/ndarray")
        self._function = function

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        if isinstance(self._function, str):
            return getattr(F, self._function)(x, *args)
        return self._function(as_seen_by(self._function, F), x, *args)


class ReflectionPad2D(HybridBlock):
    """Pad height and width with mirror images of the input.

    Parameters
    ----------
    padding : int or tuple of 8 int, default 0
        Width on every side, or MXNet's ``pad_width`` for all four axes.
    **kwargs
        prefix, params.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.gluon.nn.ReflectionPad2D(1)(mx.nd.ones((1, 1, 3, 3))).shape
    (1, 1, 5, 5)
    """

    def __init__(self, padding: int | tuple[int, ...] = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if isinstance(padding, (int, np.integer)):
            padding = (0, 0, 0, 0, padding, padding, padding, padding)
        if len(padding) != 8:
            raise error(AssertionError, f"ReflectionPad2D: padding must be an int or 8 of them, got {padding}")
        self._padding = padding

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.pad(x, mode="reflect", pad_width=self._padding)
