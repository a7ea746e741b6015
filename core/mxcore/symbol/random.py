"""Random symbols (``mx.sym.random``): numbers or symbols as parameters of the distributions."""

from __future__ import annotations

import numbers
from typing import Any

from .._core.errors import error
from .._op_functions import namespace
from ..ndarray.random import DISTRIBUTIONS, randn_shape, rate_of
from .function import symbol_function
from .symbol import Symbol, compose

__all__ = [
    "exponential",
    "gamma",
    "generalized_negative_binomial",
    "multinomial",
    "negative_binomial",
    "normal",
    "poisson",
    "randint",
    "randn",
    "shuffle",
    "uniform",
]


def _draw(name: str, values: list[Any], shape: Any, dtype: Any, kwargs: dict[str, Any]) -> Symbol:
    if shape is not None:
        kwargs["shape"] = shape
    if dtype is not None:
        kwargs["dtype"] = dtype
    if all(isinstance(v, Symbol) for v in values):
        return compose(f"_sample_{name}", values, kwargs)
    if not all(isinstance(v, numbers.Real) for v in values):
        raise error(
            TypeError,
            f"random.{name}: parameters must be all numbers or all Symbols, got "
            f"{', '.join(type(v).__name__ for v in values)}",
        )
    return compose(f"_random_{name}", (), {**{s[1]: v for s, v in zip(DISTRIBUTIONS[name], values)}, **kwargs})


def uniform(low: Any = 0, high: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Draw from the uniform distribution on [low, high).

    Parameters
    ----------
    low, high : float or Symbol
        Symbols give one distribution per element; `shape` values are then drawn for each.
    shape : int or tuple of int
        (1,) unless told.
    dtype : dtype, optional
        float32 unless told.
    **kwargs
        ``name``, ``attr``.

    Raises
    ------
    MXNetError
        If some parameters are numbers and others are symbols.
    """
    return _draw("uniform", [low, high], shape, dtype, kwargs)


def normal(loc: Any = 0, scale: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Draw from the normal distribution with mean `loc` and standard deviation `scale`; rest as in `uniform`."""
    return _draw("normal", [loc, scale], shape, dtype, kwargs)


def randn(*shape: int, **kwargs: Any) -> Symbol:
    """Draw an array of the given shape from the normal distribution; keywords loc, scale, dtype, name."""
    return normal(kwargs.pop("loc", 0), kwargs.pop("scale", 1), randn_shape(shape), kwargs.pop("dtype", None), **kwargs)


def poisson(lam: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Draw from the Poisson distribution with rate `lam`; rest as in `uniform`."""
    return _draw("poisson", [lam], shape, dtype, kwargs)


def exponential(scale: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Draw from the exponential distribution with mean `scale`; rest as in `uniform`."""
    return _draw("exponential", [rate_of(scale)], shape, dtype, kwargs)


def gamma(alpha: Any = 1, beta: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Draw from the gamma distribution with shape `alpha` and scale `beta`; rest as in `uniform`."""
    return _draw("gamma", [alpha, beta], shape, dtype, kwargs)


def negative_binomial(k: Any = 1, p: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Draw the number of failures before the `k`-th success of probability `p`; rest as in `uniform`."""
    return _draw("negative_binomial", [k, p], shape, dtype, kwargs)


def generalized_negative_binomial(
    mu: Any = 1, alpha: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any
) -> Symbol:
    """Draw from the negative binomial distribution of mean `mu` and dispersion `alpha`; rest as in `uniform`."""
    return _draw("generalized_negative_binomial", [mu, alpha], shape, dtype, kwargs)


def multinomial(data: Symbol, shape: Any = None, get_prob: bool = True, dtype: Any = "int32", **kwargs: Any) -> Symbol:
    """Draw indices from the distributions in the last axis of `data`; with their log-probabilities if `get_prob`."""
    if shape is not None:
        kwargs["shape"] = shape
    return compose("_sample_multinomial", (data,), {"get_prob": get_prob, "dtype": dtype, **kwargs})


def shuffle(data: Symbol, **kwargs: Any) -> Symbol:
    """The rows of `data` in random order."""
    return compose("_shuffle", (data,), kwargs)


def randint(low: int, high: Any = None, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Draw integers from [low, high), int32 unless told; rest as in `uniform`."""
    given = {k: v for k, v in (("shape", shape), ("dtype", dtype)) if v is not None}
    return compose("_random_randint", (), {"low": low, "high": high, **given, **kwargs})


__getattr__, __dir__ = namespace(globals(), "random", symbol_function)
