"""Facts about arrays: shape, size, whether all is finite, histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.infer import known
from .._core.op import op
from ..parameters import Bool, Float, Floats, Int
from ..testing.sample import Ints, Sample
from .rules import size_of

__all__ = ["even_edges"]

_INF, _NAN = float("inf"), float("nan")
_INT64, _F32 = np.dtype("int64"), np.dtype("float32")


_ANY = [
    Sample((2, 3), grad=False, dtypes="float16 float32 float64"),
    Sample((5,), grad=False),
    Sample((2, 1, 3, 2), grad=False),
    Sample((0, 3), grad=False),
    Sample(Ints((4, 3), 0, 9), dtypes="uint8 int8 int32 int64"),
]


@op("shape_array", inputs="data~", grad=None, samples=_ANY)
def shape_array(k, p, data):
    """The shape, as an array of int64.

    Parameters
    ----------
    data : array
        Only its shape is used.
    """
    return k.xp.asarray(data.shape, dtype=np.int64)


shape_array.shape(lambda p, ins: [(len(ins[0]),)])
shape_array.dtype(lambda p, ins, outs: (ins, [_INT64]))


@op("size_array", inputs="data~", grad=None, samples=_ANY)
def size_array(k, p, data):
    """The number of elements, as an array of int64.

    Parameters
    ----------
    data : array
        Only its shape is used.
    """
    return k.xp.full((1,), size_of(data.shape), np.int64)


size_array.shape(lambda p, ins, outs: (ins, [(1,)]))
size_array.dtype(lambda p, ins, outs: (ins, [_INT64]))


def _finite(xp: Any, arrays: Any) -> Any:
    good = xp.ones((1,), np.bool_)
    for a in arrays:
        good = good & xp.isfinite(a).all()
    return good


@op(
    "all_finite",
    inputs="data",
    init_output=Bool(True),
    grad=None,
    samples=[
        Sample((2, 3), grad=False),
        Sample([[1.0, float("nan")]], grad=False),
        Sample([[1.0, float("inf")]], grad=False),
        Sample((2, 3), params={"init_output": False}, grad=False, mxnet="the result depends on what the output held"),
        Sample([-float("inf")], params={"init_output": "1"}, grad=False),
        Sample((2, 3), grad=False, dtypes="float16"),
        Sample([65504.0, -65504.0], grad=False),
        Sample((2, 3, 2), params={"init_output": True}, grad=False),
        Sample((0, 3), grad=False),
    ],
)
def all_finite(k, p, data):
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
    samples=[
        Sample((2, 3), (4,), params={"num_arrays": 2}, grad=False),
        Sample((2,), [float("inf")], params={"num_arrays": 2}, grad=False),
        Sample((3, 1), params={"num_arrays": "1"}, grad=False, dtypes="float16 float32 float64"),
        Sample((3,), (2,), (1, 4), params={"num_arrays": 3, "init_output": "True"}, grad=False),
        Sample((2,), [1.0, float("nan")], (3,), params={"num_arrays": 3}, grad=False),
        Sample((0, 3), (2,), params={"num_arrays": 2}, grad=False),
        Sample(
            (2,),
            (2,),
            params={"num_arrays": 2, "init_output": False},
            grad=False,
            mxnet="the result depends on what the output held",
        ),
    ],
)
def multi_all_finite(k, p, *data):
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


@op(
    "_contrib_allclose",
    inputs="a b",
    rtol=Float(1e-5),
    atol=Float(1e-8),
    equal_nan=Bool(True),
    grad=None,
    samples=[
        Sample(
            *v, params=q, grad=False, mxnet="MXNet finds opposite infinities close" if v[0] == [_INF, -_INF] else True
        )
        for v, q in (
            (((2, 3), (2, 3)), {}),
            (([1.0, 2.0], [1.0, 2.0]), {}),
            (([1.0, 2.0], [1.001, 2.001]), {"rtol": 1e-2}),
            (([1.0, 2.0], [1.001, 2.001]), {"rtol": "0", "atol": "0.01"}),
            (([1.0, _NAN], [1.0, _NAN]), {}),
            (([1.0, _NAN], [1.0, _NAN]), {"equal_nan": False}),
            (([_INF, -_INF], [_INF, _INF]), {}),
            (((0, 3), (0, 3)), {}),
        )
    ],
)
def allclose(k, p, a, b):
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
def _(p, ins):
    if ins[0] != ins[1]:
        raise ValueError(f"a {ins[0]} and b {ins[1]} must have one shape")
    return [(1,)]


allclose.dtype(lambda p, ins, outs: (ins, [np.dtype("uint8")]))


def even_edges(xp: Any, low: float, high: float, bins: int) -> tuple[float, float, Any]:
    """Both ends of a histogram's range, which is never empty, and the edges of its bins in float64; both ends among
    them are exact.
    """
    if low == high:
        low, high = low - 0.5, high + 0.5
    place = xp.arange(bins + 1)
    return low, high, (low * (bins - place) + high * place) / bins


@op(
    "_histogram",
    inputs="data bins[bin_cnt is None]",
    labels="numbers",
    bin_cnt=Int(None, ge=1),
    range=Floats(None),
    outputs="count edges",
    grad=None,
    helpers={"even_edges": even_edges},
    samples=[
        Sample([0.5, 1.0, 2.0, 2.0, 3.0, 9.0, -1.0], params={"bin_cnt": 3, "range": (0, 3)}, grad=False),
        Sample([0.5, 1.0, 2.0, 2.0, 3.0, 9.0, -1.0], [0.0, 1.0, 2.5, 3.0], grad=False),
        Sample((3, 9), params={"bin_cnt": 7, "range": (-1.5, 1.25)}, grad=False),
        Sample((25,), params={"bin_cnt": "1", "range": "(-1, 1)"}, grad=False),
        Sample(
            Ints((4, 5), 0, 12),
            params={"bin_cnt": 4, "range": (0, 10)},
            dtypes="int32 int64 float32 float64",
            grad=False,
        ),
        Sample((5, 5), [-3.0, 3.0], grad=False),
        Sample([1.0, 1.0, 1.0], params={"bin_cnt": 3, "range": (1, 2)}, grad=False),
        Sample([0.7, 1.0, 1.3], params={"bin_cnt": 2, "range": (1, 1)}, grad=False),
        Sample([3.0, 4.0, 5.0, 6.5], [3.0, 4.0, 4.5, 5.0, 6.5], grad=False),
        Sample(Ints((9,), 0, 6), np.array([0.0, 2.0, 4.0]).astype(np.int32), dtypes="int32", grad=False),
        *[
            Sample(
                np.linspace(low, high, 4 * n + 1),
                params={"bin_cnt": n, "range": (low, high)},
                dtypes="float64",
                grad=False,
            )
            for low, high, n in ((0, 1, 10), (-1, 1, 7), (-0.3, 0.7, 10), (0.1, 0.9, 13))
        ],
        Sample(Ints((40,), -9, 9), params={"bin_cnt": 7, "range": (-8.5, 7.2)}, dtypes="int8 int32 int64", grad=False),
    ],
)
def histogram(k, p, data, bins=None):
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
def _(p, ins, outs):
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
def _(p, ins, outs):
    return [ins[0] or ins[-1]] * len(ins), [_INT64, ins[0]]
