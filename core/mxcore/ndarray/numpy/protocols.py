"""What others ask arrays of ``mx.np`` for: NumPy its functions, the array API standard its namespace.

NumPy's own functions are those of ``mx.np`` where it has them, so that gradients flow.
"""

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


#: Versions of the array API standard that the namespace keeps to: each has all of the one before.
_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def array_namespace(self: Any, /, *, api_version: str | None = None) -> Any:
    """The namespace of the Python array API standard, whose functions take this array.

    Parameters
    ----------
    api_version : str, optional
        A version of the standard, '2024.12' at most.

    Returns
    -------
    module

    Raises
    ------
    MXNetError
        (also ValueError) for another version.

    Examples
    --------
    >>> from mxcore import np
    >>> np.array([1.0]).__array_namespace__().__array_api_version__
    '2024.12'
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise error(
            ValueError, f"array API version {api_version!r} is not there; one of {', '.join(_VERSIONS)} is, or None"
        )
    from . import array_api

    return array_api


ndarray.__array_namespace__ = array_namespace
ndarray.__array_ufunc__ = array_ufunc
ndarray.__array_function__ = array_function
