"""Operators that make arrays from nothing."""

from __future__ import annotations

import numpy as np

from .. import builtin
from .._core.op import op
from ..families import wrapped
from ..parameters import Bool, DType, Float, Int, Shape, Str
from ..testing.sample import Ints, Sample
from .rules import axis_of, size_of
from .silent import silent

__all__: list[str] = []

_F32 = np.dtype("float32")
_WHERE = dict(ctx=Str(None), dtype=DType(_F32))


def _asked(p, ins, outs):
    return ins, [p.dtype]


def _make(name, aliases, body, **more):
    o = op(
        name,
        *aliases,
        inputs="",
        shape=Shape(()),
        **_WHERE,
        grad=None,
        samples=[
            Sample(params={**q, **dict.fromkeys(more, 2.5)}, grad=False)
            for q in (
                {"shape": (2, 3)},
                {"shape": (5,), "dtype": "float64"},
                {"shape": "(2, 1, 3)", "dtype": "int32"},
                {"shape": 3, "dtype": "float16"},
                {"shape": (2, 2), "dtype": "uint8"},
                {"shape": [3, 1], "dtype": "int64"},
                {"shape": (4,), "dtype": "int8"},
            )
        ]
        + [
            Sample(params={"shape": (2,), "dtype": t, **dict.fromkeys(more, v)}, grad=False)
            for v in (-3, "1e10", float("inf"))
            if more
            for t in ("float32", "int64")[: 1 + (v != float("inf"))]
        ],
        **more,
    )(body)
    o.shape(_shape)
    o.dtype(_asked)
    return o


def _shape(p, ins, outs):
    """A zero in the shape is a length that a graph's consumer decides, as in ``zeros(shape=(0, 5)) + d``."""
    return ins, [tuple(-1 if d == 0 else d for d in p.shape)]


def _decided(k, p):
    """The shape to make: the one inferred in a graph, else the one asked for, zeros being lengths of zero."""
    if k.shapes:
        return k.shapes[0]
    if any(d < 0 for d in p.shape):
        raise ValueError(f"parameter 'shape' {p.shape} holds a length below 0")
    return p.shape


def zeros_(k, p):
    """An array of zeros.

    Parameters
    ----------
    shape : tuple of int
        In a graph, 0 is a length that the consumer decides.
    ctx : str
    dtype : dtype
    """
    return k.xp.zeros(_decided(k, p), p.dtype)


def ones_(k, p):
    """An array of ones.

    Parameters
    ----------
    shape : tuple of int
        In a graph, 0 is a length that the consumer decides.
    ctx : str
    dtype : dtype
    """
    return k.xp.ones(_decided(k, p), p.dtype)


def full_(k, p):
    """An array of one value.

    Parameters
    ----------
    shape : tuple of int
        In a graph, 0 is a length that the consumer decides.
    ctx : str
    dtype : dtype
    value : float
    """
    return k.xp.full(_decided(k, p), p.value if p.dtype.kind not in "iub" else wrapped(p.value, p.dtype), p.dtype)


zeros = _make("_zeros", (), zeros_)
ones = _make("_ones", (), ones_)
full = _make("_full", (), full_, value=Float())


def _open(p) -> bool:
    """Whether the consumer decides how many."""
    return p.infer_range and p.stop is None


def _first(p) -> float:
    return 0.0 if p.stop is None and not p.infer_range else p.start


def _count(p) -> int:
    stop = p.start if p.stop is None else p.stop
    if not all(map(np.isfinite, (_first(p), stop, p.step))):
        raise ValueError(f"start={p.start}, stop={p.stop}, step={p.step}: all must be finite")
    if not p.step:
        raise ValueError("step=0 leads nowhere; it must be above or below 0")
    return max(int(np.ceil((stop - _first(p)) / p.step)), 0) * p.repeat


@op(
    "_arange",
    inputs="",
    start=Float(),
    stop=Float(None),
    step=Float(1.0),
    repeat=Int(1, ge=1),
    infer_range=Bool(False),
    **_WHERE,
    grad=None,
    samples=[
        Sample(params={"start": 1.0, "stop": 6.0, "step": 1.5}, grad=False),
        Sample(params={"start": 0.0, "stop": 3.0, "repeat": 2}, grad=False),
        Sample(params={"start": 0.7, "stop": 5.0, "step": 1.5, "dtype": "int32"}, grad=False),
    ]
    + [
        Sample(params=q, grad=False)
        for q in (
            {"start": 5},
            {"start": "5", "stop": "None", "dtype": "float64"},
            {"start": 3.0, "stop": -2.0, "step": -0.75},
            {"start": 0, "stop": 4, "dtype": "int64"},
            {"start": 0, "stop": 2, "step": 0.1},
            {"start": -1, "stop": 5, "step": 2, "dtype": "float16"},
            {"start": 1, "stop": 4, "dtype": "uint8"},
            {"start": 2, "stop": 7, "step": 2, "repeat": 3, "dtype": "int32"},
            {"start": 0, "stop": 1, "step": 5},
            {"start": 1, "stop": 4, "infer_range": False},
        )
    ]
    + [
        Sample(
            params={"start": -1.5, "stop": 1.5, "step": 0.5, "dtype": "float16"},
            grad=False,
            mxnet="float16 is counted in whole numbers",
        )
    ],
)
def arange(k, p):
    """Evenly spaced values.

    Parameters
    ----------
    start, stop, step : float
        Without `stop` from 0 up to `start`. Of an integer `dtype`, start and step are cut to integers once the length
        is known.
    repeat : int
        How often each value occurs.
    infer_range : bool
        Without `stop` take the length from the consumer, and begin at `start`.
    ctx : str
    dtype : dtype
    """
    if _open(p) and not k.shapes:
        raise ValueError("with infer_range the consumer's shape is needed, which only a graph knows; give stop")
    n = k.shapes[0][0] if _open(p) else _count(p)
    first, step = _first(p), float(p.step)
    if p.dtype.kind in "iub":  # as MXNet: both are cut before they are added, so that steps below 1 do not count
        first, step = int(first), int(step)
    return (first + k.xp.arange(n) // p.repeat * step).astype(p.dtype)


arange.shape(lambda p, ins, outs: (ins, [outs[0] if _open(p) else (_count(p),)]))
arange.dtype(_asked)

# The core brings these itself, but knows no samples.
_HALVES, _WHOLE, _ALONE = "float16 float32 float64", "uint8 int8 int32 int64", "inside its engine only"
builtin.ones_like.samples = builtin.zeros_like.samples = [
    Sample((2, 3), grad=False, dtypes=_HALVES),
    Sample((0, 3), grad=False),
    Sample((1, 5), grad=False),
    Sample(Ints((2, 3), 0, 9), dtypes=_WHOLE),
    Sample([[float("nan"), float("inf")]], grad=False),
]
builtin.grad_add.samples = [
    Sample((2, 3), (2, 3), dtypes=_HALVES),
    Sample((0, 3), (0, 3)),
    Sample(Ints((4,), 0, 9), Ints((4,), 0, 9), dtypes=_WHOLE),
]
builtin.copyto.samples = [
    Sample((2, 3), dtypes=_HALVES, mxnet=_ALONE),
    Sample((2, 0), mxnet=_ALONE),
    Sample(Ints((4,), 0, 9), dtypes=_WHOLE, mxnet=_ALONE),
]


@op(
    "_eye",
    inputs="",
    N=Int(ge=0),
    M=Int(0),
    k=Int(0),
    **_WHERE,
    grad=None,
    samples=[Sample(params={"N": 3}, grad=False), Sample(params={"N": 2, "M": 4, "k": 1, "dtype": "int32"}, grad=False)]
    + [
        Sample(params=q, grad=False)
        for q in (
            {"N": 4, "M": 2, "k": -2, "dtype": "float64"},
            {"N": "3", "M": "3", "k": "-1"},
            {"N": 2, "M": 3, "k": 5, "dtype": "uint8"},
            {"N": 3, "k": -7, "dtype": "float16"},
            {"N": 1, "M": 5, "k": 4, "dtype": "int64"},
        )
    ],
)
def eye(k, p):
    """A matrix with ones on a diagonal.

    Parameters
    ----------
    N, M : int
        Rows and columns; as many columns as rows if M is not above 0.
    k : int
        Which diagonal: above the main one if positive.
    ctx : str
    dtype : dtype
    """
    return k.xp.eye(p.N, p.M if p.M > 0 else p.N, p.k, dtype=p.dtype)


eye.shape(lambda p, ins, outs: (ins, [(p.N, p.M if p.M > 0 else p.N)]))
eye.dtype(_asked)


@op(
    "_linspace",
    inputs="",
    start=Float(),
    stop=Float(),
    num=Int(ge=0),
    endpoint=Bool(True),
    **_WHERE,
    grad=None,
    samples=[
        Sample(params={"start": 0.0, "stop": 1.0, "num": 5}, grad=False),
        Sample(params={"start": 1.0, "stop": 2.0, "num": 4, "endpoint": False}, grad=False),
    ]
    + [
        Sample(params=q, grad=False)
        for q in (
            {"start": 3, "stop": -1, "num": 9, "dtype": "float64"},
            {"start": 2.5, "stop": 9, "num": 1},
            {"start": "0", "stop": "7", "num": "3", "dtype": "int32"},
            {"start": -2, "stop": 2, "num": 7, "dtype": "float16", "endpoint": "0"},
            {"start": 1, "stop": 1, "num": 3},
            {"start": 1, "stop": 9.5, "num": 4, "dtype": "int64"},
        )
    ],
)
@silent
def linspace(k, p):
    """A given number of evenly spaced values.

    Parameters
    ----------
    start, stop : float
    num : int
    endpoint : bool
        Whether `stop` is the last value.
    ctx : str
    dtype : dtype
    """
    return k.xp.linspace(p.start, p.stop, p.num, endpoint=p.endpoint)


linspace.shape(lambda p, ins, outs: (ins, [(p.num,)]))
linspace.dtype(_asked)


@op(
    "_contrib_arange_like",
    inputs="data~",
    start=Float(0.0),
    step=Float(1.0),
    repeat=Int(1, ge=1),
    ctx=Str(None),
    axis=Int(None),
    grad=None,
    samples=[
        Sample((2, 3), grad=False),
        Sample((2, 3), params={"axis": 1, "start": 2.0, "step": 0.5}, grad=False),
        Sample((2, 3), params={"repeat": 2}, grad=False),
        Sample((2, 3), params={"axis": -1, "repeat": 1}, grad=False),
        Sample((4, 3), params={"axis": 0, "repeat": 2}, grad=False),
        Sample((7,), params={"step": -0.5, "start": "3", "axis": "None"}, grad=False),
        Sample((7,), params={"step": 2}, grad=False, dtypes="float16"),
        Sample(Ints((2, 3), 0, 9), params={"start": 1.9, "step": 2.5}, dtypes="int32 int64"),
        Sample((2, 1, 3), params={"axis": 1}, grad=False),
        Sample((0, 3), grad=False),
        Sample((0, 3), params={"axis": 1}, grad=False),
    ],
)
def arange_like(k, p, data):
    """Evenly spaced values, as many as an array has elements or as long as one of its axes.

    Parameters
    ----------
    data : array
        Only its shape and dtype are used.
    start, step : float
        Cut to integers for an array of integers.
    repeat : int
        How often each value occurs.
    ctx : str
        Has no effect.
    axis : int, optional
        The axis; all elements unless told.
    """
    shape = _like_axis(p, tuple(data.shape))
    places = k.xp.arange(size_of(shape)) // p.repeat
    whole = data.dtype.kind in "iub"  # as in `_arange`, both are cut before they are added
    return ((int(p.start) if whole else p.start) + places * (int(p.step) if whole else p.step)).reshape(shape)


def _like_axis(p, shape):
    return shape if p.axis is None else (shape[axis_of(p.axis, len(shape))],)


arange_like.shape(lambda p, ins: [_like_axis(p, ins[0])])


@op(
    "_zeros_without_dtype",
    inputs="",
    shape=Shape(None),
    ctx=Str(None),
    dtype=Int(-1),
    grad=None,
    samples=[Sample(params={"shape": (2, 3)}, grad=False, mxnet="inside graphs only")],
)
def zeros_without_dtype(k, p):
    """Zeros whose dtype a graph's consumer decides; float32 if nobody does.

    Parameters
    ----------
    shape : tuple of int
    ctx : str
    dtype : int
        MXNet's number of a dtype; -1 for unknown.
    """
    return k.xp.zeros(k.shapes[0] if k.shapes else p.shape or (), _numbered(p))


_NUMBERS = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")


def _numbered(p):
    return np.dtype(_NUMBERS[p.dtype]) if 0 <= p.dtype < len(_NUMBERS) else _F32


zeros_without_dtype.shape(lambda p, ins, outs: (ins, [tuple(-1 if d == 0 else d for d in p.shape or ())]))
zeros_without_dtype.dtype(
    lambda p, ins, outs: (ins, [outs[0] if outs[0] is not None and p.dtype < 0 else _numbered(p)])
)
