"""Functions that NumPy computes on a copy in the host's memory: those of MXNet's list of fallbacks, and no others.

They take arrays of ``mx.np`` on any context, have no gradients, and say once each that they are no operators.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np

from .._core.errors import error
from .._core.state import state
from ..halves import is_half, wide

#: NumPy's names, as MXNet lists them.
_NAMES = """
allclose apply_along_axis apply_over_axes argpartition argwhere array_equal array_equiv choose compress corrcoef
correlate count_nonzero cov digitize divmod extract flatnonzero float_power frexp heaviside histogram2d
histogram_bin_edges histogramdd i0 interp intersect1d isclose isin ix_ lexsort min_scalar_type modf nanargmax nanargmin
nancumprod nancumsum nanmax nanmedian nanmin nanpercentile nanprod nanquantile ndim packbits partition piecewise poly
polyadd polydiv polyfit polyint polymul polysub positive promote_types ptp real result_type rollaxis roots searchsorted
select setdiff1d setxor1d signbit size spacing take_along_axis tril_indices_from trim_zeros triu_indices_from union1d
unpackbits unwrap vander
""".split()
#: Functions that NumPy 2 has under other names, or no longer.
_MOVED: dict[str, Callable[..., Any]] = {
    "in1d": lambda ar1, ar2, assume_unique=False, invert=False: np.isin(
        np.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert
    ),
    "msort": lambda a: np.sort(a, axis=0),
    "trapz": getattr(np, "trapezoid", None) or np.trapz,  # type: ignore[attr-defined]
}
#: Functions of finance, which NumPy handed to a library of their own.
_FINANCE = "mirr npv ppmt pv rate".split()
__all__ = [*_NAMES, *_MOVED, *_FINANCE]  # noqa: PLE0604

#: Arguments that functions had in MXNet's time -> what they are called now; None: they have had no effect since long.
_OLD: dict[str, dict[str, str | None]] = {
    "corrcoef": {"bias": None, "ddof": None},
    "histogram2d": {"normed": "density"},
    "histogramdd": {"normed": "density"},
    "nanpercentile": {"interpolation": "method"},
    "nanquantile": {"interpolation": "method"},
}

_log = logging.getLogger("mxcore.numpy")
_told: set[str] = set()
_FACTS = {"ndim", "size", "result_type", "promote_types", "min_scalar_type"}


def by_numpy(F: Any, name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function of NumPy gives for copies of arrays.

    Parameters
    ----------
    name : str
        What messages call it.
    fn : callable
    args, kwargs
        Its arguments; arrays may lie in lists, tuples and dicts.

    Returns
    -------
    object
        Arrays of ``mx.np`` where NumPy gives arrays, on the context of the first argument's; numbers as NumPy's.

    Raises
    ------
    MXNetError
        (also RuntimeError) while an argument's gradient is recorded, for the result has none; (also TypeError) for
        symbols.
    """
    found: list[Any] = []

    def host(x: Any) -> Any:
        if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
            return type(x)(map(host, x))
        if not F.is_value(x):
            return x
        found.append(x)
        return x.asnumpy()

    given = [host(a) for a in args]
    named = {k: host(v) for k, v in kwargs.items() if k != "out"}
    if state.record and any(x._entry is not None for x in found):
        raise error(
            RuntimeError,
            f"np.{name} is computed by NumPy on a copy, so its result has no gradient; compute it within "
            "autograd.pause(), or from x.detach()",
        )
    if name not in _told and name not in _FACTS:
        _told.add(name)
        _log.warning("np.%s is no operator: NumPy computes it on a copy in the host's memory", name)
    try:
        result = fn(*given, **named)
    except (ValueError, TypeError, IndexError) as e:
        raise error(type(e) if type(e) in (ValueError, TypeError, IndexError) else ValueError, f"np.{name}: {e}") from e
    out = kwargs.get("out")
    if out is not None:
        out[...] = result
        return out
    ctx = found[0].context if found else None

    def ours(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return F.array(x, dtype=x.dtype, ctx=ctx)
        return type(x)(map(ours, x)) if type(x) in (list, tuple) else x

    return ours(result)


def _made(name: str, numpys: Callable[..., Any]) -> Callable[..., Any]:
    old = _OLD.get(name, {})

    def fn(F: Any, *args: Any, **kwargs: Any) -> Any:
        for argument in [a for a in old if a in kwargs]:
            value, now = kwargs.pop(argument), old[argument]
            if now is not None and value is not None:
                kwargs.setdefault(now, value)
        return by_numpy(F, name, numpys, args, kwargs)

    fn.__name__ = fn.__qualname__ = name
    fn.__module__ = __name__
    fn.__doc__ = (
        f"NumPy's ``{name}``, which NumPy computes on a copy in the host's memory; it has no gradient.\n\n"
        f"See the documentation of ``numpy.{name}``."
    )
    try:
        own = inspect.signature(numpys)
    except (TypeError, ValueError):  # of some universal functions
        return fn
    kinds = inspect.Parameter
    face = kinds("F", kinds.POSITIONAL_ONLY)
    more = [kinds(a, kinds.KEYWORD_ONLY, default=None) for a in old if a not in own.parameters]
    fn.__signature__ = own.replace(parameters=[face, *own.parameters.values(), *more])  # type: ignore[attr-defined]
    return fn


def _widened(name: str) -> Callable[..., Any]:
    """A function of NumPy that adds up or multiplies: of half precision in float32, as operators do."""
    numpys = getattr(np, name)

    @wraps(numpys)
    def compute(a: Any, axis: Any = None, dtype: Any = None, *args: Any, **kwds: Any) -> Any:
        a = np.asarray(a)
        found = numpys(wide(a), axis, dtype, *args, **kwds)
        return found.astype(a.dtype, copy=False) if dtype is None and is_half(a.dtype) else found

    return compute


def _financial(name: str) -> Callable[..., Any]:
    def compute(*args: Any, **kwds: Any) -> Any:
        try:
            library = import_module("numpy_financial")
        except ImportError:
            raise error(
                ImportError, f"np.{name}: NumPy's functions of finance are a library now: pip install numpy-financial"
            ) from None
        return getattr(library, name)(*args, **kwds)

    return compute


globals().update({name: _made(name, getattr(np, name)) for name in _NAMES})
globals().update({name: _made(name, _widened(name)) for name in ("nancumprod", "nancumsum", "nanprod")})
globals().update({name: _made(name, fn) for name, fn in _MOVED.items()})
globals().update({name: _made(name, _financial(name)) for name in _FINANCE})
