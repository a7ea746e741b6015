"""What holds of all elements of an array: whether all is finite or close, histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import known
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Float, Floats, Int
from ...typing import Array, Call

__all__ = ["even_edges"]


_INF, _NAN = float("inf"), float("nan")
_INT64, _F32 = np.dtype("int64"), np.dtype("float32")


def _finite(xp: Any, arrays: Any) -> Any:
    good = xp.ones((1,), np.bool_)
    for a in arrays:
        good = good & xp.isfinite(a).all()
    return good


@op("all_finite", inputs="data", init_output=Bool(True), grad=None)
def all_finite(k: Call, p: Params, data: Array) -> Array:
    """1 if no element is infinite or NaN, else 0; an array of one float32.

    Parameters
    ----------
    data : array
    init_output : bool
        Has no effect: the result never depends on what `out` held.
    """
    return _finite(k.xp, [data])


@op(
    "multi_all_finite",
    inputs="data*",
    count="num_arrays",
    arg_names=lambda p: [f"array_{i}" for i in range(p.num_arrays)],
    init_output=Bool(True),
    params={"num_arrays": Int(1, ge=1)},
    grad=None,
)
def multi_all_finite(k: Call, p: Params, *data: Array) -> Array:
    """1 if no element of any array is infinite or NaN, else 0; an array of one float32.

    Parameters
    ----------
    data : arrays
    num_arrays : int
        How many; counted for you.
    init_output : bool
        Has no effect: the result never depends on what `out` held.
    """
    return _finite(k.xp, data)


for _op in (all_finite, multi_all_finite):
    _op.shape(lambda p, ins, outs: (ins, [(1,)]))
    _op.dtype(lambda p, ins, outs: (ins, [_F32]))


@op("_contrib_allclose", inputs="a b", rtol=Float(1e-5), atol=Float(1e-8), equal_nan=Bool(True), grad=None)
def allclose(k: Call, p: Params, a: Array, b: Array) -> Array:
    """1 if two arrays are equal within tolerances, else 0; an array of one uint8.

    Parameters
    ----------
    a, b : array
        Of one shape.
    rtol, atol : float
        Relative tolerance, to `b`, and absolute tolerance.
    equal_nan : bool
        Whether NaNs equal each other.
    """
    return k.xp.isclose(a, b, p.rtol, p.atol, p.equal_nan).all()


@allclose.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if ins[0] != ins[1]:
        raise ValueError(f"a {ins[0]} and b {ins[1]} must have one shape")
    return [(1,)]


allclose.dtype(lambda p, ins, outs: (ins, [np.dtype("uint8")]))


def even_edges(xp: Any, low: float, high: float, bins: int) -> tuple[float, float, Any]:
    """Both ends of a histogram's range, never empty, and the edges of its bins in float64, exact at the ends."""
    if low == high:
        low, high = low - 0.5, high + 0.5
    place = xp.arange(bins + 1)
    return low, high, (low * (bins - place) + high * place) / bins


@op(
    "_histogram",
    "_npi_histogram",
    inputs="data bins[bin_cnt is None]",
    labels="numbers",
    bin_cnt=Int(None, ge=1),
    range=Floats(None),
    outputs="count edges",
    grad=None,
    helpers={"even_edges": even_edges},
)
def histogram(k: Call, p: Params, data: Array, bins: Array = None) -> Any:
    """Counts of the values in bins, and the edges of the bins; the last bin includes its right edge.

    Parameters
    ----------
    data : array
    bins : array, 1-D
        The edges, if there is no `bin_cnt`.
    bin_cnt : int, optional
        Number of bins of one width over `range`.
    range : (float, float), optional
        First and last edge; of two equal ones half of one to either side.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_histogram``. Edge i of n is (low * (n - i) + high * i) / n in float64, so that
    both ends are exact. The edges have the dtype of the data, so those of integers are cut off, and a value counts in
    the bin between such edges, though no further than one from the bin that it would be in.
    """
    xp, x = k.xp, data.reshape(-1)
    if bins is not None:
        rise = bins[1:] >= bins[:-1]
        if not rise.all().item():
            at = rise.argmin().item()
            raise ValueError(
                f"the edges in bins must rise and not be NaN, got {bins[at].item()} and {bins[at + 1].item()} as "
                f"edges {at} and {at + 1}"
            )
        return xp.histogram(x, bins)
    (low, high), n = p.range, p.bin_cnt
    low, high, edges = even_edges(xp, low, high, n)
    edges = edges.astype(data.dtype)
    exact = x.astype(np.float64)  # the ends are not rounded to the dtype of the data
    inside = (exact >= low) & (exact <= high)
    x, exact = x[inside], exact[inside]
    at = xp.minimum(((exact - low) * n / (high - low)).astype(np.int64), n - 1)
    at = at - ((x < edges[at]) & (at > 0))
    at = at + ((x >= edges[at + 1]) & (at != n - 1))
    return xp.bincount(at, minlength=n), edges


@histogram.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if p.bin_cnt is None:
        if not known(ins[1]):
            return ins, outs
        if len(ins[1]) != 1 or ins[1][0] < 2:
            raise ValueError(f"bins {ins[1]} must be two or more edges")
        return ins, [(ins[1][0] - 1,), ins[1]]
    if p.range is None or len(p.range) != 2 or not 0 <= p.range[1] - p.range[0] < _INF:
        raise ValueError(f"bin_cnt needs a range (first, last) of finite, rising edges, got {p.range}")
    return ins, [(p.bin_cnt,), (p.bin_cnt + 1,)]


@histogram.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    return [ins[0] or ins[-1]] * len(ins), [_INT64, ins[0]]
