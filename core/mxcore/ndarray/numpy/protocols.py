"""NumPy's own functions over arrays of ``mx.np``: those of ``mx.np`` where it has them, so that gradients flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.errors import error
from ...np_functions.fallback import by_numpy
from .face import arrays
from .multiarray import ndarray

__all__: list[str] = []

#: Modules of NumPy whose functions ``mx.np`` has.
_BELOW = {"numpy": arrays, "numpy.linalg": arrays.linalg}


def _refuse_numpys(name: str, args: Any) -> None:
    """Refuse NumPy's arrays beside ours, as MXNet does: nobody knows where the result should live."""
    for x in args:
        if isinstance(x, np.ndarray) and x.ndim:
            raise error(
                TypeError,
                f"numpy.{name}: an array of NumPy beside one of mx.np; np.array(x, ctx=…) makes one of mx.np of it, "
                "x.asnumpy() the other way round",
            )


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """``numpy.exp(x)``, ``numpy.float32(2) * x``: the function of ``mx.np`` of that name, else NumPy on a copy."""
    name = ufunc.__name__
    _refuse_numpys(name, inputs)
    inputs = tuple(x.item() if isinstance(x, (np.generic, np.ndarray)) else x for x in inputs)
    if method == "__call__" and name in arrays.names:
        out = kwargs.pop("out", None)
        if out is not None:
            kwargs["out"] = out[0]
        return getattr(arrays, name)(*inputs, **kwargs)
    return by_numpy(
        arrays, f"{name}{'' if method == '__call__' else f'.{method}'}", getattr(ufunc, method), inputs, kwargs
    )


def array_function(
    self: Any, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``numpy.mean(x)``: the function of ``mx.np`` of that name, else NumPy on a copy."""
    name = func.__name__
    face = _BELOW.get(func.__module__)
    listed = [y for x in args for y in (x if isinstance(x, (list, tuple)) else (x,))]
    _refuse_numpys(name, listed)
    if face is not None and name in face.names:
        return getattr(face, name)(*args, **kwargs)
    return by_numpy(arrays, name, func, args, kwargs)


ndarray.__array_ufunc__ = array_ufunc
ndarray.__array_function__ = array_function
