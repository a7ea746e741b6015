"""Operators that make arrays from nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...elementwise import held
from ...parameters import Bool, DType, Float, Int, Shape, Str
from ...typing import Array, Call
from ..common.bodies import silent
from ..common.rules import axis_of, size_of

__all__: list[str] = []


_F32 = np.dtype("float32")
_WHERE = dict(ctx=Str(None), dtype=DType(_F32))


def _asked(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    return ins, [p.dtype]


def _make(name: str, aliases: Any, body: Any, **more: Any) -> Any:
    o = op(name, *aliases, inputs="", shape=Shape(()), **_WHERE, grad=None, **more)(body)
    o.shape(_shape)
    o.dtype(_asked)
    return o


def _shape(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    """A zero in the shape is a length that a graph's consumer decides, as in ``zeros(shape=(0, 5)) + d``."""
    return ins, [tuple(-1 if d == 0 else d for d in p.shape)]


def _decided(k: Call, p: Params) -> Any:
    """The shape to make: the one inferred in a graph, else the one asked for, zeros being lengths of zero."""
    if k.shapes:
        return k.shapes[0]
    if any(d < 0 for d in p.shape):
        raise ValueError(f"parameter 'shape' {p.shape} holds a length below 0")
    return p.shape


def zeros_(k: Call, p: Params) -> Any:
    """An array of zeros.

    Parameters
    ----------
    shape : tuple of int
        In a graph, 0 is a length that the consumer decides.
    ctx : str
    dtype : dtype
    """
    return k.xp.zeros(_decided(k, p), p.dtype)


def ones_(k: Call, p: Params) -> Any:
    """An array of ones.

    Parameters
    ----------
    shape : tuple of int
        In a graph, 0 is a length that the consumer decides.
    ctx : str
    dtype : dtype
    """
    return k.xp.ones(_decided(k, p), p.dtype)


def full_(k: Call, p: Params) -> Any:
    """An array of one value.

    Parameters
    ----------
    shape : tuple of int
        In a graph, 0 is a length that the consumer decides.
    ctx : str
    dtype : dtype
    value : float
    """
    return k.xp.full(_decided(k, p), held(p.value, p.dtype), p.dtype)


zeros = _make("_zeros", (), zeros_)
ones = _make("_ones", (), ones_)
full = _make("_full", (), full_, value=Float())


def _open(p: Params) -> bool:
    """Whether the consumer decides how many."""
    return p.infer_range and p.stop is None


def _first(p: Params) -> float:
    return 0.0 if p.stop is None and not p.infer_range else p.start


def _count(p: Params) -> Any:
    stop = p.start if p.stop is None else p.stop
    if not all(map(np.isfinite, (_first(p), stop, p.step))):
        raise ValueError(f"start={p.start}, stop={p.stop}, step={p.step}: all must be finite")
    if not p.step:
        raise ValueError("step=0 leads nowhere; it must be above or below 0")
    return max(int(np.ceil((stop - _first(p)) / p.step)), 0) * p.repeat


def _up_to(p: Params, shape: tuple[int, ...]) -> dict[str, Any]:
    """What gives as many values; the half keeps rounding away."""
    return {"stop": _first(p) + (shape[0] / p.repeat - 0.5) * p.step, "infer_range": False}


@op(
    "_arange",
    inputs="",
    helpers={"decided": _up_to},
    start=Float(),
    stop=Float(None),
    step=Float(1.0),
    repeat=Int(1, ge=1),
    infer_range=Bool(False),
    **_WHERE,
    grad=None,
)
def arange(k: Call, p: Params) -> Array:
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
    n = k.shapes[0][0] if _open(p) else _count(p)  # type: ignore[index]
    first, step = _first(p), float(p.step)
    if p.dtype.kind in "iub":  # as MXNet: both are cut before they are added, so that steps below 1 do not count
        first, step = int(first), int(step)
    return (first + k.xp.arange(n) // p.repeat * step).astype(p.dtype)


arange.shape(lambda p, ins, outs: (ins, [outs[0] if _open(p) else (_count(p),)]))
arange.dtype(_asked)


@op("_eye", inputs="", N=Int(ge=0), M=Int(0), k=Int(0), **_WHERE, grad=None)
def eye(k: Call, p: Params) -> Array:
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


@op("_linspace", inputs="", start=Float(), stop=Float(), num=Int(ge=0), endpoint=Bool(True), **_WHERE, grad=None)
@silent
def linspace(k: Call, p: Params) -> Array:
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
)
def arange_like(k: Call, p: Params, data: Array) -> Array:
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


def _like_axis(p: Params, shape: Any) -> Any:
    return shape if p.axis is None else (shape[axis_of(p.axis, len(shape))],)


arange_like.shape(lambda p, ins: [_like_axis(p, ins[0])])


@op("_zeros_without_dtype", inputs="", shape=Shape(None), ctx=Str(None), dtype=Int(-1), grad=None)
def zeros_without_dtype(k: Call, p: Params) -> Array:
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


def _numbered(p: Params) -> Any:
    return np.dtype(_NUMBERS[p.dtype]) if 0 <= p.dtype < len(_NUMBERS) else _F32


zeros_without_dtype.shape(lambda p, ins, outs: (ins, [tuple(-1 if d == 0 else d for d in p.shape or ())]))
zeros_without_dtype.dtype(
    lambda p, ins, outs: (ins, [outs[0] if outs[0] is not None and p.dtype < 0 else _numbered(p)])
)
