"""Random numbers: three operators per distribution, for numbers, for the shape of an array, for arrays of parameters.

The numbers come from ``k.rng``, so they follow the seed and are equal on every device.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.op import Op, op
from ..._core.params import Params
from ...parameters import Bool, DType, Float, Int, Shape, Str
from ...typing import Array, Call
from ..common.bodies import is_half, silent
from ..common.dtypes import Among
from . import variates
from .distributions import FLOAT32, FLOAT64, INT32, LAWS, wide_dtype

__all__ = ["DISTRIBUTIONS"]


def _parameters(law: Any, spec: Any = Float) -> Any:
    return {n: (Int(d, dynamic=True) if isinstance(d, int) else spec(d, dynamic=True)) for n, _, d, _ in law.parameters}


def _float_dtype(p: Params, name: str) -> Any:
    t = p.dtype or FLOAT32
    if t.kind != "f" and not is_half(t):
        raise TypeError(f"dtype must be float16, bfloat16, float32 or float64, got {t.name}")
    return t


def _shape_asked(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    """The shape of the parameters; a graph's consumer decides what is left open."""
    return ins, [outs[0] if p.shape is None else tuple(-1 if d == 0 else d for d in p.shape)]


def _decided(k: Call, p: Params) -> Any:
    if k.shapes:
        return k.shapes[0]
    if p.shape is None:
        raise ValueError("the shape is unknown: pass shape=, or out=")
    return p.shape


_ASKED_DOC = """shape : tuple of int
    Shape of the result.
ctx : str
    Where to draw.
dtype : dtype
    float32 unless told."""


def _doc(head: str, names: Any, rest: Any) -> Any:
    return "\n".join([head, "", "Parameters", "----------", *names, *rest.splitlines()])


def _numbers(name: str, law: Any) -> Any:
    """``_random_<name>``: parameters are numbers."""
    names = [n for n, *_ in law.parameters]

    def body(k: Call, p: Params) -> Any:
        return law.numbers(k, _decided(k, p), p.dtype or FLOAT32, [getattr(p, n) for n in names])

    o = Op(
        f"_random_{name}",
        body,
        inputs="",
        random=True,
        grad=None,
        helpers={"check": law.check},
        aliases=(f"random_{name}", *([name] if law.short else [])),
        params={**_parameters(law), "shape": Shape(None), "ctx": Str(""), "dtype": DType(None)},
        doc=_doc(f"Draw from {law.doc}.", [f"{n} : float" for n in names], _ASKED_DOC),
    )
    o.shape(_shape_asked)
    o.dtype(lambda p, ins, outs: (ins, [_float_dtype(p, name)]))
    return o


def _like(name: str, law: Any) -> Any:
    """``_random_<name>_like``: parameters are numbers, the shape is that of an array."""
    names = [n for n, *_ in law.parameters]

    def body(k: Call, p: Params, data: Array) -> Any:
        return law.numbers(k, tuple(data.shape), data.dtype, [getattr(p, n) for n in names])

    return Op(
        f"_random_{name}_like",
        body,
        inputs="data~",
        random=True,
        grad=None,
        helpers={"check": law.check},
        params=_parameters(law),
        doc=_doc(
            f"Draw from {law.doc}, in the shape and dtype of `data`.",
            [f"{n} : float" for n in names],
            "data : array\n    Only its shape and dtype are used.",
        ),
    )


def _arrays(name: str, law: Any) -> Any:
    """``_sample_<name>``: parameters are arrays, `shape` values are drawn for each element."""
    inputs = [m for _, m, *_ in law.parameters]

    def body(k: Call, p: Params, *values: Array) -> Any:
        more, t = p.shape, p.dtype or FLOAT32
        first = tuple(values[0].shape)
        ends = first + (1,) * len(more)
        if not k.device.async_:  # a look at the values would stop the queue
            law.check_arrays(values)
        drawn = law.draw(
            k.xp, k.rng, (*first, *more), wide_dtype(t), *[v.astype(wide_dtype(t)).reshape(ends) for v in values]
        )
        return drawn.astype(t)

    o = Op(
        f"_sample_{name}",
        body,
        inputs=" ".join(inputs),
        random=True,
        grad=None,
        helpers={"check": law.check_arrays},
        aliases=(f"sample_{name}",),
        params={"shape": Shape(()), "dtype": DType(None)},
        doc=_doc(
            f"Draw from {law.doc}; the parameters are arrays.",
            [f"{n} : array" for n in inputs],
            "    Of one shape.\nshape : tuple of int\n    Shape of what is drawn for each element, "
            "appended to that of the parameters.\ndtype : dtype\n    float32 unless told.",
        ),
    )

    @o.shape
    def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        shape = next((s for s in ins if s is not None), None)
        return [shape] * len(ins), [None if shape is None else (*shape, *p.shape)]

    o.dtype(lambda p, ins, outs: ([next((t for t in ins if t is not None), None)] * len(ins), [_float_dtype(p, name)]))
    return o


DISTRIBUTIONS = [make(name, law) for name, law in LAWS.items() for make in (_numbers, _like, _arrays)]


def _check_range(p: Params) -> None:
    """Raise ValueError for a range without numbers, or with such as the dtype does not hold."""
    if p.high <= p.low:
        raise ValueError(f"high must be above low, got low {p.low} and high {p.high}")
    t = p.dtype or INT32
    held = np.iinfo(t)
    if p.low < held.min or p.high - 1 > held.max:
        raise ValueError(f"{t.name} holds {held.min} to {held.max}, got low {p.low} and high {p.high}")


@op(
    "_random_randint",
    "random_randint",
    inputs="",
    random=True,
    grad=None,
    helpers={"check": _check_range},
    low=Int(dynamic=True),
    high=Int(dynamic=True),
    shape=Shape(None),
    ctx=Str(""),
    dtype=DType(None),
)
def randint(k: Call, p: Params) -> Array:
    """Draw whole numbers from [low, high), all equally likely.

    Parameters
    ----------
    low, high : int
    shape : tuple of int
    ctx : str
    dtype : dtype
        int32 unless told, or int64.
    """
    _check_range(p)
    return variates.integers(k.rng, p.low, p.high, _decided(k, p), p.dtype or INT32)


randint.shape(_shape_asked)


@randint.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = p.dtype or INT32
    if t.kind not in "iu":
        raise TypeError(f"dtype must be int32 or int64, got {t.name}")
    return ins, [t]


@op(
    "_sample_multinomial",
    "sample_multinomial",
    inputs="data",
    labels="numbers",
    outputs="output prob[get_prob]",
    random=True,
    shape=Shape(()),
    get_prob=Bool(False),
    dtype=Among("int32", names="uint8 int32 int64 float16 float32 float64"),
    grad=lambda F, p, dys, data, y: F._backward_sample_multinomial(dys[1], data, y) if p.get_prob else None,
)
@silent
def sample_multinomial(k: Call, p: Params, data: Array) -> Any:
    """Draw indices with the probabilities in the last axis of `data`.

    Parameters
    ----------
    data : array (..., k)
        Each row sums to 1.
    shape : tuple of int
        How many to draw from each row; the result has shape (..., \\*shape).
    get_prob : bool
        Also give the logarithms of the probabilities of what was drawn; the gradient flows through these.
    dtype : dtype
        Of the indices.
    """
    xp = k.xp
    rows = data.reshape(-1, data.shape[-1])
    n, width = rows.shape
    total = xp.cumsum(rows.astype(FLOAT64), axis=1)
    last = total[:, -1]
    good = (rows >= 0).all(1) & (last > 0) & (last < math.inf)
    if not k.device.async_ and not good.all().item():
        row = good.argmin().item()
        raise ValueError(
            "probabilities must be 0 or more, and those of a row have a finite sum above 0, "
            f"got {rows[row].min().item()} as the least and {last[row].item()} as the sum of row {row}"
        )
    # One search for all rows: row i lies on [i, i + 1).
    at = xp.arange(n).reshape(n, 1)
    u = k.rng.uniform((n, _size(p.shape)), FLOAT64) + at
    index = xp.searchsorted((total / total[:, -1:] + at).reshape(-1), u.reshape(-1), side="right").reshape(u.shape)
    index = xp.clip(index - at * width, 0, width - 1)
    drawn = index.reshape(_drawn_shape(data.shape, p.shape))
    if not p.get_prob:
        return drawn
    return drawn, xp.log(xp.take_along_axis(rows, index, 1)).reshape(drawn.shape)


def _size(shape: Any) -> Any:
    return int(np.prod(shape, dtype=np.int64))


def _drawn_shape(data: Any, more: Any) -> Any:
    return (*data[:-1], *more) or (1,)


@sample_multinomial.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if not ins[0] or not ins[0][-1]:
        raise ValueError(f"data must hold a probability at least, got shape {ins[0]}")
    return [_drawn_shape(ins[0], p.shape)] * (1 + p.get_prob)


@sample_multinomial.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if ins[0] is not None and ins[0].kind != "f":
        raise TypeError(f"data must be float16, float32 or float64, got {ins[0].name}")
    return ins, [p.dtype, ins[0]][: 1 + p.get_prob]


@op("_shuffle", "shuffle", inputs="data", random=True)
def shuffle(k: Call, p: Params, data: Array) -> Array:
    """Put the rows of `data` in random order.

    Parameters
    ----------
    data : array
    """
    return data[variates.permutation(k.rng, data.shape[0])]


@op(
    "_sample_unique_zipfian",
    inputs="",
    labels="numbers",
    outputs="samples num_tries",
    random=True,
    grad=None,
    range_max=Int(ge=1),
    shape=Shape(None),
)
def sample_unique_zipfian(k: Call, p: Params) -> Any:
    """Draw different whole numbers from [0, range_max), i with probability near 1 / (i + 1).

    Parameters
    ----------
    range_max : int
    shape : tuple of int
        (rows, numbers per row); the numbers of a row differ. The second output tells how many draws each row took.
    """
    xp = k.xp
    if p.shape is None or len(p.shape) != 2:
        raise ValueError(f"shape must be (rows, numbers per row), got {p.shape}")
    rows, count = p.shape
    if count > p.range_max:
        raise ValueError(f"{count} different numbers cannot be drawn below range_max {p.range_max}")
    numbers, tries = xp.zeros((rows, count), np.int64), xp.zeros(rows, np.int64)
    scale = float(np.log(p.range_max + 1))
    rng = k.rng  # one stream; every access to k.rng starts it anew
    for i in range(rows):
        drawn = xp.zeros(0, np.int64)
        while True:
            more = rng.uniform((2 * count + 16 + drawn.shape[0],), FLOAT64)
            more = xp.clip(xp.exp(more * scale).astype(np.int64) - 1, 0, p.range_max - 1)
            drawn = xp.concatenate([drawn, more])
            _, first = xp.unique(drawn, return_index=True)
            if first.shape[0] >= count:
                break
        first = xp.sort(first)[:count]
        numbers[i] = drawn[first]
        if count:
            tries[i] = first[count - 1] + 1
    return numbers, tries


sample_unique_zipfian.shape(lambda p, ins, outs: (ins, [p.shape, p.shape and p.shape[:1]]))
sample_unique_zipfian.dtype(lambda p, ins, outs: (ins, [np.dtype("int64")] * 2))
