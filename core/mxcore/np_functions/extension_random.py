"""The functions of ``mx.npx.random``."""

from __future__ import annotations

import numbers
from typing import Any

from .._core import rng
from .._core.context import Context
from .._core.errors import error
from .random import drawn, parameters, sized

__all__ = ["bernoulli", "normal_n", "seed", "uniform_n"]


def bernoulli(
    F: Any, prob: Any = None, logit: Any = None, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draw 1 with a probability, else 0.

    Parameters
    ----------
    prob : float or ndarray, optional
        The probability; or, instead of it,
    logit : float or ndarray, optional
        its log-odds.
    size : int or tuple of int, optional
        Shape of the result; that of the probabilities unless told.
    dtype : {'float32', 'float64', 'float16', 'bool', 'int32', 'uint8'}, optional
        float32 unless told.
    ctx : Context, optional
        Where to draw, for a number; the current context unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for both or neither of them, or a probability that is none.

    Examples
    --------
    >>> from mxcore import npx
    >>> npx.random.bernoulli(1.0, size=3)
    array([1., 1., 1.])
    """
    if (prob is None) == (logit is None):
        raise error(ValueError, f"npx.random.bernoulli takes prob or logit, got prob={prob!r} and logit={logit!r}")
    name = "logit" if prob is None else "prob"
    arrays, given = parameters(F, "npx.random.bernoulli", **{name: logit if prob is None else prob})
    return F.call(
        "_npi_bernoulli",
        *arrays,
        out=out,
        **{"prob": "None", "logit": "None", **given},
        is_logit=prob is None,
        size=sized("npx.random.bernoulli", size),
        dtype=dtype,
        **({} if arrays or ctx is None else {"ctx": ctx}),
    )


def normal_n(
    F: Any, loc: Any = 0.0, scale: Any = 1.0, batch_shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Draw from the normal distribution, several values for each element of the parameters.

    Parameters
    ----------
    loc, scale : float or ndarray
        Mean and standard deviation (0 or more); the gradient flows to them.
    batch_shape : int or tuple of int, optional
        Shape of what is drawn for each element; one value unless told.
    dtype : {'float32', 'float64', 'float16'}, optional
        float32 unless told.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.

    Returns
    -------
    ndarray
        Of `batch_shape`, then the shape of the parameters.

    Examples
    --------
    >>> from mxcore import np, npx
    >>> npx.random.normal_n(np.zeros(3), 1.0, batch_shape=(2,)).shape
    (2, 3)
    """
    return drawn(F, "_npi_normal_n", "npx.random.normal_n", {"loc": loc, "scale": scale}, batch_shape, ctx, dtype=dtype)


def uniform_n(
    F: Any, low: Any = 0.0, high: Any = 1.0, batch_shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Draw from the uniform distribution on [low, high), several values for each element of the parameters.

    Parameters
    ----------
    low, high : float or ndarray
        The interval.
    batch_shape : int or tuple of int, optional
        Shape of what is drawn for each element; one value unless told.
    dtype : {'float32', 'float64', 'float16'}, optional
        float32 unless told.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.

    Returns
    -------
    ndarray
        Of `batch_shape`, then the shape of the parameters.

    Examples
    --------
    >>> from mxcore import np, npx
    >>> npx.random.uniform_n(np.zeros(3), 1.0, batch_shape=(2,)).shape
    (2, 3)
    """
    return drawn(F, "_npi_uniform_n", "npx.random.uniform_n", {"low": low, "high": high}, batch_shape, ctx, dtype=dtype)


def seed(F: Any, seed: int, ctx: Any = "all") -> None:
    """Seed the random functions.

    Parameters
    ----------
    seed : int
    ctx : Context or 'all'
        Seed one context, or all of them.

    Examples
    --------
    >>> from mxcore import np, npx
    >>> npx.random.seed(1)
    >>> x = np.random.normal(size=2)
    >>> npx.random.seed(1)
    >>> bool((x.asnumpy() == np.random.normal(size=2).asnumpy()).all())
    True
    """
    if not isinstance(seed, numbers.Integral):
        raise error(TypeError, f"npx.random.seed: seed must be an int, got {seed!r}")
    if isinstance(ctx, str) and ctx != "all":
        raise error(ValueError, f"npx.random.seed: ctx must be a Context or 'all', got {ctx!r}")
    rng.seed(int(seed), None if isinstance(ctx, str) else Context(ctx))
