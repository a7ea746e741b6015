"""The functions of ``mx.np.random``.

Each draws from the keys of :func:`mxcore.random.seed`, which are equal on every device. What is a function of its
parameters and of noise has gradients for arrays of parameters: `normal`, `lognormal`, `logistic`, `gumbel`,
`exponential`, `rayleigh`, `weibull`, `pareto`, `multivariate_normal`. The others have zeros.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._core.array import Array
from .._core.errors import error
from .arguments import default_float, drawn_float
from .options import refuse

__all__ = [
    "beta",
    "chisquare",
    "choice",
    "exponential",
    "gamma",
    "gumbel",
    "logistic",
    "lognormal",
    "multinomial",
    "multivariate_normal",
    "normal",
    "pareto",
    "power",
    "rand",
    "randint",
    "randn",
    "rayleigh",
    "shuffle",
    "uniform",
    "weibull",
]


def parameters(F: Any, name: str, **given: Any) -> tuple[list[Any], dict[str, Any]]:
    """Parameters that are arrays, in order, and all by name: numbers, and "None" for arrays."""
    arrays: list[Any] = []
    by_name: dict[str, Any] = {}
    for key, value in given.items():
        if F.is_value(value):
            arrays.append(value)
            by_name[key] = "None"
        elif isinstance(value, numbers.Real):
            by_name[key] = value
        else:
            raise error(
                TypeError,
                f"{name}: {key} must be a number or an array of mx.np, got {type(value).__name__}"
                + (
                    "; x.as_np_ndarray() shares its memory"
                    if hasattr(value, "as_np_ndarray")
                    else "; np.array makes one"
                ),
            )
    return arrays, by_name


def sized(name: str, size: Any) -> Any:
    """The parameter `size` of operators: None for a single value."""
    if size is None:
        return None
    try:
        given = (size,) if isinstance(size, numbers.Integral) else tuple(size)
        found = tuple(int(n) if isinstance(n, numbers.Integral) else _no_length(n) for n in given)
    except TypeError:
        raise error(TypeError, f"{name}: size must be a whole number, or a tuple of them, got {size!r}") from None
    if any(n < 0 for n in found):
        raise error(ValueError, f"{name}: lengths are not negative, got size {size!r}")
    return size if found else None


def _no_length(n: Any) -> int:
    raise TypeError(n)


def drawn(F: Any, op: str, name: str, given: dict[str, Any], size: Any, ctx: Any, out: Any = None, **more: Any) -> Any:
    """What a random operator draws for parameters that are numbers or arrays."""
    arrays, by_name = parameters(F, name, **given)
    # Arrays are somewhere already, and what is drawn for them is there.
    if arrays and ctx is not None and F.eager and str(ctx) != str(arrays[0].ctx):
        raise error(ValueError, f"{name}: its parameters are on {arrays[0].ctx}, so it draws there; got ctx={ctx}")
    place = {} if arrays or ctx is None else {"ctx": ctx}
    return F.call(op, *arrays, out=out, size=sized(name, size), **by_name, **more, **place)


def _cast(F: Any, x: Any, dtype: Any) -> Any:
    return F.call("Cast", x, dtype=dtype)


def normal(
    F: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draw from the normal distribution; the gradient flows to `loc` and `scale`.

    Parameters
    ----------
    loc, scale : float or ndarray
        Mean and standard deviation (0 or more).
    size : int or tuple of int, optional
        Shape of the result; that of the parameters unless told, of no dimensions for numbers.
    dtype : {'float32', 'float64', 'float16'}, optional
        float32 unless told.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for values that are no parameters of the distribution, or a `size` that does not fit them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.normal(0, 1, size=(2, 3)).shape
    (2, 3)
    """
    return drawn(
        F, "_npi_normal", "np.random.normal", {"loc": loc, "scale": scale}, size, ctx, out, dtype=drawn_float(dtype)
    )


def uniform(
    F: Any, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draw from the uniform distribution on [low, high).

    Parameters
    ----------
    low, high : float or ndarray
        The interval.
    size : int or tuple of int, optional
        Shape of the result; that of the parameters unless told, of no dimensions for numbers.
    dtype : {'float32', 'float64', 'float16'}, optional
        float32 unless told.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for values that are no parameters of the distribution, or a `size` that does not fit them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.uniform(2, 3, size=2).shape
    (2,)
    """
    return drawn(
        F, "_npi_uniform", "np.random.uniform", {"low": low, "high": high}, size, ctx, out, dtype=drawn_float(dtype)
    )


def gumbel(F: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Draw from the Gumbel distribution; the gradient flows to `loc` and `scale`.

    Parameters
    ----------
    loc, scale : float or ndarray
        Mode and scale (0 or more).
    size : int or tuple of int, optional
        Shape of the result; that of the parameters unless told, of no dimensions for numbers.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for values that are no parameters of the distribution, or a `size` that does not fit them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.gumbel(np.zeros(3), 2.0).shape
    (3,)
    """
    return drawn(F, "_npi_gumbel", "np.random.gumbel", {"loc": loc, "scale": scale}, size, ctx, out)


def logistic(F: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Draw from the logistic distribution; the gradient flows to `loc` and `scale`.

    Parameters
    ----------
    loc, scale : float or ndarray
        Mean and scale (0 or more).
    size : int or tuple of int, optional
        Shape of the result; that of the parameters unless told, of no dimensions for numbers.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for values that are no parameters of the distribution, or a `size` that does not fit them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.logistic(0, np.ones(3)).shape
    (3,)
    """
    return drawn(F, "_npi_logistic", "np.random.logistic", {"loc": loc, "scale": scale}, size, ctx, out)


def lognormal(
    F: Any, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draw from the log-normal distribution; the gradient flows to `mean` and `sigma`.

    Parameters
    ----------
    mean, sigma : float or ndarray
        Mean and standard deviation (0 or more) of the logarithm.
    size : int or tuple of int, optional
        Shape of the result; that of the parameters unless told, of no dimensions for numbers.
    dtype : {'float32', 'float64', 'float16'}, optional
        float32 unless told.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for values that are no parameters of the distribution, or a `size` that does not fit them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.lognormal(size=2).shape
    (2,)
    """
    found = F.random.normal(mean, sigma, size=size, dtype=dtype, ctx=ctx)
    return F.exp(found, out=out)


def exponential(F: Any, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Draw from the exponential distribution; the gradient flows to `scale`.

    Parameters
    ----------
    scale : float or ndarray
        The mean, 0 or more.
    size : int or tuple of int, optional
        Shape of the result; that of the parameters unless told, of no dimensions for numbers.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for values that are no parameters of the distribution, or a `size` that does not fit them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.exponential(2.0, size=2).shape
    (2,)
    """
    return drawn(F, "_npi_exponential", "np.random.exponential", {"scale": scale}, size, ctx, out)


def rayleigh(F: Any, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Draw from the Rayleigh distribution; the gradient flows to `scale`.

    Parameters
    ----------
    scale : float or ndarray
        The mode, 0 or more.
    size : int or tuple of int, optional
        Shape of the result; that of the parameters unless told, of no dimensions for numbers.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for values that are no parameters of the distribution, or a `size` that does not fit them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.rayleigh(2.0, size=2).shape
    (2,)
    """
    return drawn(F, "_npi_rayleigh", "np.random.rayleigh", {"scale": scale}, size, ctx, out)


def weibull(F: Any, a: Any, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Draw from the Weibull distribution of scale 1; the gradient flows to `a`.

    Parameters
    ----------
    a : float or ndarray
        The shape, above 0.
    size : int or tuple of int, optional
        Shape of the result; that of the parameters unless told, of no dimensions for numbers.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for values that are no parameters of the distribution, or a `size` that does not fit them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.weibull(2.0, size=2).shape
    (2,)
    """
    return drawn(F, "_npi_weibull", "np.random.weibull", {"a": a}, size, ctx, out)


def pareto(F: Any, a: Any, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Draw from the Pareto distribution (Lomax), from 0 up; the gradient flows to `a`.

    Parameters
    ----------
    a : float or ndarray
        The shape, above 0.
    size : int or tuple of int, optional
        Shape of the result; that of the parameters unless told, of no dimensions for numbers.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for values that are no parameters of the distribution, or a `size` that does not fit them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.pareto(2.0, size=2).shape
    (2,)
    """
    return drawn(F, "_npi_pareto", "np.random.pareto", {"a": a}, size, ctx, out)


def power(F: Any, a: Any, size: Any = None) -> Any:
    """Draw from the distribution on [0, 1] whose density is the power `a` - 1.

    Parameters
    ----------
    a : float or ndarray
        Above 0.
    size : int or tuple of int, optional
        Shape of the result; that of the parameters unless told, of no dimensions for numbers.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for values that are no parameters of the distribution, or a `size` that does not fit them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.power(2.0, size=2).shape
    (2,)
    """
    return drawn(F, "_npi_powerd", "np.random.power", {"a": a}, size, None)


def gamma(
    F: Any, shape: Any, scale: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draw from the gamma distribution.

    Parameters
    ----------
    shape, scale : float or ndarray
        Above 0.
    size : int or tuple of int, optional
        Shape of the result; that of the parameters unless told, of no dimensions for numbers.
    dtype : {'float32', 'float64', 'float16'}, optional
        float32 unless told.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for values that are no parameters of the distribution, or a `size` that does not fit them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.gamma(2.0, 1.0, size=2).shape
    (2,)
    """
    return drawn(
        F, "_npi_gamma", "np.random.gamma", {"shape": shape, "scale": scale}, size, ctx, out, dtype=drawn_float(dtype)
    )


def beta(F: Any, a: Any, b: Any, size: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Draw from the beta distribution.

    Parameters
    ----------
    a, b : float or ndarray
        Above 0.
    size : int or tuple of int, optional
        Shape of the result; that of the parameters unless told, of no dimensions for numbers.
    dtype : {'float32', 'float64', 'float16'}, optional
        float32 unless told.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for values that are no parameters of the distribution, or a `size` that does not fit them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.beta(2.0, 3.0, size=2).shape
    (2,)
    """
    # From gamma variates; in float64, where those of small shapes are not all zero.
    size = _common(F, size, a, b)
    x, y = (F.random.gamma(v, 1.0, size=size, dtype="float64", ctx=ctx) for v in (a, b))
    found = F.call("broadcast_div", x, F.call("broadcast_add", x, y))
    return _cast(F, found, default_float(dtype))


def chisquare(F: Any, df: Any, size: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Draw from the chi-square distribution.

    Parameters
    ----------
    df : float or ndarray
        Degrees of freedom, above 0.
    size : int or tuple of int, optional
        Shape of the result; that of the parameters unless told, of no dimensions for numbers.
    dtype : {'float32', 'float64', 'float16'}, optional
        float32 unless told.
    ctx : Context, optional
        Where to draw, if the parameters are numbers; the current context unless told.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for values that are no parameters of the distribution, or a `size` that does not fit them.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.chisquare(3.0, size=2).shape
    (2,)
    """
    half = F.call("_div_scalar", df, scalar=2.0) if F.is_value(df) else df / 2
    return F.random.gamma(half, 2.0, size=size, dtype=dtype, ctx=ctx)


def randint(
    F: Any, low: Any, high: Any = None, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draw whole numbers from [low, high), all equally likely.

    Parameters
    ----------
    low, high : int
        Without `high`, from [0, low).
    size : int or tuple of int, optional
        Shape of the result; of no dimensions unless told.
    dtype : {'int64', 'int32'}, optional
        int64 unless told; other whole numbers, too.
    ctx : Context, optional
        Where to draw; the current context unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for a range without numbers, or with such as the dtype does not hold.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.randint(5, size=(2, 3)).shape
    (2, 3)
    """
    if high is None:
        low, high = 0, low
    size = sized("np.random.randint", size)
    dtype = "int64" if dtype is None or dtype is int or dtype == "int" else dtype
    place = {} if ctx is None else {"ctx": ctx}
    return F.call(
        "_random_randint", out=out, low=low, high=high, shape=() if size is None else size, dtype=dtype, **place
    )


def rand(F: Any, *size: int, **kwargs: Any) -> Any:
    """Draw from the uniform distribution on [0, 1).

    Parameters
    ----------
    *size : int
        Lengths of the result.
    **kwargs
        `dtype`, `ctx` and `out` of `uniform`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.rand(2, 3).shape
    (2, 3)
    """
    return F.random.uniform(0, 1, size=size, **kwargs)


def randn(F: Any, *size: int, **kwargs: Any) -> Any:
    """Draw from the standard normal distribution.

    Parameters
    ----------
    *size : int
        Lengths of the result.
    **kwargs
        `dtype`, `ctx` and `out` of `normal`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.randn(2, 3).shape
    (2, 3)
    """
    return F.random.normal(0, 1, size=size, **kwargs)


def multinomial(F: Any, n: int, pvals: Any, size: Any = None, **kwargs: Any) -> Any:
    """Draw how often each of several outcomes comes in `n` trials.

    Parameters
    ----------
    n : int
        How many trials.
    pvals : ndarray (k,) or sequence of float
        The probabilities of the outcomes; what is missing to 1 goes to the last.
    size : int or tuple of int, optional
        How many draws; one unless told.
    **kwargs
        None is known.

    Returns
    -------
    ndarray
        (*size, k), int64.

    Raises
    ------
    MXNetError
        (also ValueError) for probabilities below 0 or of a sum above 1.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.multinomial(10, [0.0, 1.0, 0.0])
    array([ 0, 10,  0], dtype=int64)
    """
    if kwargs:
        raise error(TypeError, f"np.random.multinomial has no argument '{next(iter(kwargs))}'; it takes n, pvals, size")
    size = sized("np.random.multinomial", size)
    if F.is_value(pvals):
        return F.call("_npi_multinomial", pvals, n=n, pvals="None", size=size)
    try:
        values = tuple(float(v) for v in pvals)
    except (TypeError, ValueError):
        raise error(
            TypeError, f"np.random.multinomial: pvals must be an array of mx.np, or numbers, got {pvals!r}"
        ) from None
    return F.call("_npi_multinomial", n=n, pvals=values, size=size)


def choice(
    F: Any, a: Any, size: Any = None, replace: bool = True, p: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draw elements of a vector, or whole numbers below a limit.

    Parameters
    ----------
    a : ndarray (n,) or int
        What to draw from; of a number, from [0, a).
    size : int or tuple of int, optional
        Shape of the result; of no dimensions unless told.
    replace : bool
        Whether one may come again.
    p : ndarray (n,), optional
        The probability of each; all are equally likely unless told.
    ctx : Context, optional
        Where to draw, if there are no arrays; the current context unless told.
    out : ndarray, optional
        Where to write: of the shape and dtype of the result.

    Returns
    -------
    ndarray
        Of the dtype of `a`, or int64.

    Raises
    ------
    MXNetError
        (also ValueError) if there are not as many different ones, or for probabilities below 0, or whose sum is not 1.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.choice(5, size=3).shape
    (3,)
    >>> np.random.choice(np.array([2.0, 3.0]), size=2, p=np.array([0.0, 1.0]))
    array([3., 3.])
    """
    of_array = F.is_value(a)
    if not of_array and not isinstance(a, numbers.Integral):
        raise error(
            TypeError, f"np.random.choice: a must be a vector of mx.np or a whole number, got {type(a).__name__}"
        )
    if p is not None and not F.is_value(p):
        raise error(
            TypeError, f"np.random.choice: p must be an array of mx.np, got {type(p).__name__}; np.array makes one"
        )
    inputs = [*([a] if of_array else []), *([] if p is None else [p])]
    index = F.call(
        "_npi_choice",
        *inputs,
        out=None if of_array else out,
        a="None" if of_array else int(a),
        size=sized("np.random.choice", size),
        replace=bool(replace),
        weighted=p is not None,
        **({} if inputs or ctx is None else {"ctx": ctx}),
    )
    return F.call("take", a, index, out=out) if of_array else index


def multivariate_normal(F: Any, mean: Any, cov: Any, size: Any = None, check_valid: Any = None, tol: Any = None) -> Any:
    """Draw from the normal distribution of several variables; the gradient flows to `mean` and `cov`.

    Parameters
    ----------
    mean : ndarray, (..., n)
    cov : ndarray, (..., n, n)
        Symmetric and positive definite; only its lower triangle is read. Stacks are broadcast.
    size : int or tuple of int, optional
        How many draws for each; one unless told.
    check_valid, tol
        NumPy's: refused.

    Returns
    -------
    ndarray, (*size, ..., n)

    Raises
    ------
    MXNetError
        (also ValueError) for a matrix that is not positive definite.

    Examples
    --------
    >>> from mxcore import np
    >>> np.random.multivariate_normal(np.zeros(2), np.eye(2), size=3).shape
    (3, 2)
    """
    for key, value in (("check_valid", check_valid), ("tol", tol)):
        if value is not None:
            raise refuse("random.multivariate_normal", key, value, None)
    noise = F.call("_mvn_noise", mean, cov, size=sized("np.random.multivariate_normal", size))
    return F.call("broadcast_add", mean, F.call("_matvec", F.call("_npi_cholesky", cov), noise))


def shuffle(F: Any, x: Any) -> None:
    """Put the rows of an array in random order, in place.

    Parameters
    ----------
    x : ndarray
        Symbols, which hold nothing, are refused.

    Examples
    --------
    >>> from mxcore import np
    >>> x = np.arange(5)
    >>> np.random.shuffle(x)
    >>> float(x.sum())
    10.0
    """
    if not isinstance(x, Array):
        raise error(TypeError, f"np.random.shuffle takes an array of mx.np, which it changes, got {type(x).__name__}")
    if not x.shape:
        raise error(TypeError, "np.random.shuffle: an array of no dimensions has no order")
    F.call("_shuffle", x, out=x)


def _common(F: Any, size: Any, *values: Any) -> Any:
    """The size of what is drawn apart for each of several parameters, and combined."""
    shapes = [x.shape for x in values if isinstance(x, Array)]
    if size is not None and size != () or not shapes:
        return size
    return np.broadcast_shapes(*shapes) or None
