"""Random arrays (``mx.nd.random``): numbers or arrays as parameters of the distributions."""

from __future__ import annotations

import numbers
from typing import Any

from .._core import tables
from .._core.array import Array
from .._core.errors import error
from .._op_functions import eager_function, namespace
from ..ops.common.python_operators import composes
from . import checks
from .ndarray import NDArray, invoke, run

__all__ = [
    "uniform",
    "normal",
    "randn",
    "poisson",
    "exponential",
    "gamma",
    "multinomial",
    "negative_binomial",
    "generalized_negative_binomial",
    "shuffle",
    "randint",
]

#: function -> (parameters of the distribution: name here, name in _random_X, name in _sample_X, default)
DISTRIBUTIONS: dict[str, tuple[tuple[str, str, str, float], ...]] = {
    "uniform": (("low", "low", "low", 0.0), ("high", "high", "high", 1.0)),
    "normal": (("loc", "loc", "mu", 0.0), ("scale", "scale", "sigma", 1.0)),
    "poisson": (("lam", "lam", "lam", 1.0),),
    "exponential": (("scale", "lam", "lam", 1.0),),
    "gamma": (("alpha", "alpha", "alpha", 1.0), ("beta", "beta", "beta", 1.0)),
    "negative_binomial": (("k", "k", "k", 1), ("p", "p", "p", 1.0)),
    "generalized_negative_binomial": (("mu", "mu", "mu", 1.0), ("alpha", "alpha", "alpha", 1.0)),
}


def rate_of(scale: Any) -> Any:
    """What the operators of the exponential distribution take instead of the scale that the functions take."""
    if isinstance(scale, numbers.Real):
        if not float(scale) > 0:
            raise error(ValueError, f"random.exponential: scale must be above 0, got {scale}")
    elif not isinstance(scale, Array) and not composes(scale):
        raise error(
            TypeError, f"random.exponential: scale must be a number, an NDArray or a Symbol, got {type(scale).__name__}"
        )
    return 1.0 / scale


def randn_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that `randn` is called with, if it is."""
    if not shape:
        raise error(TypeError, "random.randn: a shape is needed, such as randn(2, 3)")
    return shape


def _draw(name: str, values: list[Any], shape: Any, dtype: Any, ctx: Any, out: Any) -> NDArray:
    specs = DISTRIBUTIONS[name]
    if name == "exponential":
        values = [rate_of(values[0])]
    given = [isinstance(v, Array) for v in values]
    if all(given):
        op = tables.ops.get(f"_sample_{name}")
        params = {} if shape is None or isinstance(shape, (tuple, list)) and not shape else {"shape": shape}
        if dtype is not None:
            params["dtype"] = dtype
        return run(op, *values, **params, out=out)
    if any(given):
        raise error(
            TypeError,
            f"random.{name}: parameters must be all numbers or all arrays, "
            f"got {', '.join(type(v).__name__ for v in values)}",
        )
    op = tables.ops.get(f"_random_{name}")
    if out is not None:
        checks.arrays(op.name, out=out)
    kwargs: dict[str, Any] = {s[1]: v for s, v in zip(specs, values)}
    if shape is None:
        shape = out.shape if out is not None else (1,)
    kwargs["shape"] = shape
    if dtype is not None or out is not None:
        kwargs["dtype"] = out.dtype if dtype is None else dtype
    return invoke(op, (), op.parse(kwargs), out, cls=NDArray, ctx=checks.place(op.name, ctx, out))


def uniform(
    low: Any = 0, high: Any = 1, shape: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None, **kwargs: Any
) -> NDArray:
    """Draw from the uniform distribution on [low, high).

    Parameters
    ----------
    low, high : float or NDArray
        Arrays give one distribution per element; `shape` values are then drawn for each.
    shape : int or tuple of int
        (1,) unless told.
    dtype : dtype, optional
        float32 unless told.
    ctx : Context, optional
    out : NDArray, optional
    """
    return _draw("uniform", [low, high], shape, dtype, ctx, out)


def normal(
    loc: Any = 0, scale: Any = 1, shape: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None, **kwargs: Any
) -> NDArray:
    """Draw from the normal distribution with mean `loc` and standard deviation `scale`; rest as in `uniform`."""
    return _draw("normal", [loc, scale], shape, dtype, ctx, out)


def randn(*shape: int, **kwargs: Any) -> NDArray:
    """Draw an array of the given shape from the normal distribution; keywords loc, scale, dtype, ctx, out."""
    return normal(kwargs.pop("loc", 0), kwargs.pop("scale", 1), randn_shape(shape), **kwargs)


def poisson(
    lam: Any = 1, shape: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None, **kwargs: Any
) -> NDArray:
    """Draw from the Poisson distribution with rate `lam`; rest as in `uniform`."""
    return _draw("poisson", [lam], shape, dtype, ctx, out)


def exponential(
    scale: Any = 1, shape: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None, **kwargs: Any
) -> NDArray:
    """Draw from the exponential distribution with mean `scale`; rest as in `uniform`."""
    return _draw("exponential", [scale], shape, dtype, ctx, out)


def gamma(
    alpha: Any = 1, beta: Any = 1, shape: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None, **kwargs: Any
) -> NDArray:
    """Draw from the gamma distribution with shape `alpha` and scale `beta`; rest as in `uniform`."""
    return _draw("gamma", [alpha, beta], shape, dtype, ctx, out)


def negative_binomial(
    k: Any = 1, p: Any = 1, shape: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None, **kwargs: Any
) -> NDArray:
    """Draw the number of failures before the `k`-th success of probability `p`; rest as in `uniform`."""
    return _draw("negative_binomial", [k, p], shape, dtype, ctx, out)


def generalized_negative_binomial(
    mu: Any = 1, alpha: Any = 1, shape: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None, **kwargs: Any
) -> NDArray:
    """Draw from the negative binomial distribution of mean `mu` and dispersion `alpha`; rest as in `uniform`."""
    return _draw("generalized_negative_binomial", [mu, alpha], shape, dtype, ctx, out)


def multinomial(
    data: NDArray, shape: Any = (), get_prob: bool = False, out: Any = None, dtype: Any = "int32", **kwargs: Any
) -> Any:
    """Draw indices from the distributions in the last axis of `data`; with their log-probabilities if `get_prob`.

    Parameters
    ----------
    data : NDArray, (k,) or (n, k)
        Each row sums to 1.
    shape : int or tuple of int
        How many to draw from each row: the result has shape ``(n, *shape)``, without it (n,).
    get_prob : bool
    out : NDArray
        Where the indices go; with `get_prob` a list, for the log-probabilities too.
    dtype : dtype
        Of the indices.
    """
    return tables.ops.get("_sample_multinomial")(data, shape=shape, get_prob=get_prob, out=out, dtype=dtype, **kwargs)


def shuffle(data: NDArray, **kwargs: Any) -> NDArray:
    """The rows of `data` in random order."""
    return run(tables.ops.get("_shuffle"), data, **kwargs)


def randint(
    low: int, high: Any = None, shape: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None, **kwargs: Any
) -> NDArray:
    """Draw integers from [low, high), int32 unless told; rest as in `uniform`."""
    op = tables.ops.get("_random_randint")
    if out is not None:
        checks.arrays(op.name, out=out)
    params = {
        "low": low,
        "high": high,
        "shape": (out.shape if out is not None else (1,)) if shape is None else shape,
        "dtype": dtype or (out.dtype if out is not None else "int32"),
    }
    return invoke(op, (), op.parse(params), out, cls=NDArray, ctx=checks.place("_random_randint", ctx, out))


__getattr__, __dir__ = namespace(globals(), "random", eager_function)
