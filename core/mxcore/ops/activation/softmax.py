"""The softmax family: along an axis, with a temperature, over the first of each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum, Float, Int
from ...typing import Array, Call, Operators
from ..common.bodies import wide
from ..common.rules import axis_of, floating, size_of

__all__ = ["BACKWARD_PARAMS", "over_temperature", "soft"]


class _NotZero(Float):
    """A number to divide by."""

    def check(self, x: Any) -> Any:
        if x == 0:
            raise ValueError(f"must be a float other than 0, got {x}")
        return x


_SOFT = dict(
    axis=Int(-1),
    temperature=_NotZero(None),
    dtype=Enum("float16 float32 float64", None),
    use_length=Bool(False, optional=True),
)


def soft(xp: Any, x: Any, axis: int) -> Any:
    """Softmax of logits along an axis; overwrites nothing."""
    if not x.size:
        return x.copy()
    e = x - x.max(axis, keepdims=True)
    xp.exp(e, out=e)
    e /= e.sum(axis, keepdims=True)
    return e


def _logits(p: Params, data: Any, sign: int = 1) -> Any:
    """The data as floats of at least single precision, divided by the temperature."""
    if p.dtype == "float64" or data.dtype.kind != "f":
        x = data.astype(p.dtype)
    else:
        x = wide(data)
    t = sign * (1.0 if p.temperature is None else p.temperature)
    return x if t == 1 else x / t


def _soft_dtype(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if len(ins) == 2 and ins[1] is not None and ins[1].kind not in "iu":
        raise TypeError(f"length must be of an integer dtype, got {ins[1].name}")
    if p.dtype is not None:
        return ins, [np.dtype(p.dtype)]
    t = ins[0] or outs[0]
    if t is not None and t.kind in "iub":
        raise TypeError(f"data of dtype {t.name} needs parameter dtype, one of float16, float32, float64")
    return [t, *ins[1:]], [t]


def _soft_shape(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if p.use_length and len(ins) == 1:
        raise ValueError("use_length is for softmax; this operator has no input for lengths")
    data = merge_shape(ins[0], outs[0])
    if data is None:
        return ins, outs
    axis = axis_of(p.axis, len(data))
    return [data, data[:axis] + data[axis + 1 :]][: len(ins)], [data]


def _to_input(F: Operators, p: Params, g: Any, like: Any) -> Any:
    return g if p.dtype is None else F._cast_like(g, like)


@op(
    "softmax",
    inputs="data length[use_length]",
    labels="inputs outputs",
    **_SOFT,
    grad=lambda F, p, dy, like_data, y: (
        _to_input(F, p, F._backward_softmax(dy, y, axis=p.axis, temperature=p.temperature), like_data),
        None,
    )[: 1 + p.use_length],
)
def softmax(k: Call, p: Params, data: Array, length: Array = None) -> Array:
    """Exponentials that sum to one along an axis.

    Parameters
    ----------
    data : array
        Logits, any shape.
    length : array of int
        With `use_length`: how many entries along the axis count; the others get zero. Shaped as data without the axis.
    axis : int
    temperature : float, optional
        Divides the logits first (1).
    dtype : {'float16', 'float32', 'float64'}, optional
        Of the result; that of `data` unless told.
    use_length : bool
        There is an input `length`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``softmax``.
    """
    xp, x = k.xp, _logits(p, data)
    axis = axis_of(p.axis, x.ndim)
    if length is None:
        return soft(xp, x, axis)
    place = xp.arange(x.shape[axis]).reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim)))
    inside = place < xp.expand_dims(length, axis)
    if not x.size:
        return x.copy()
    top = xp.where(inside, x, -np.inf).max(axis, keepdims=True)
    e = xp.where(inside, xp.exp(xp.where(inside, x - top, 0.0)), 0.0)
    return xp.where(inside, e / e.sum(axis, keepdims=True), 0.0)


@op(
    "softmin",
    inputs="data",
    labels="outputs",
    **_SOFT,
    grad=lambda F, p, dy, like_data, y: _to_input(
        F, p, F._backward_softmax(-dy, y, axis=p.axis, temperature=p.temperature), like_data
    ),
)
def softmin(k: Call, p: Params, data: Array) -> Array:
    """Softmax of the negative.

    Parameters
    ----------
    data : array
        Any shape.
    axis : int
    temperature : float, optional
        Divides the values first (1).
    dtype : {'float16', 'float32', 'float64'}, optional
        Of the result; that of `data` unless told.
    use_length : bool
        Must be False: only `softmax` has an input for lengths.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``softmin``.
    """
    return soft(k.xp, _logits(p, data, -1), axis_of(p.axis, data.ndim))


@op(
    "log_softmax",
    inputs="data",
    labels="inputs",
    **_SOFT,
    grad=lambda F, p, dy, like_data, y: _to_input(
        F, p, F._backward_log_softmax(dy, y, axis=p.axis, temperature=p.temperature), like_data
    ),
)
def log_softmax(k: Call, p: Params, data: Array) -> Array:
    """Logarithm of the softmax, computed without overflow.

    Parameters
    ----------
    data : array
        Logits, any shape.
    axis : int
    temperature : float, optional
        Divides the logits first (1).
    dtype : {'float16', 'float32', 'float64'}, optional
        Of the result; that of `data` unless told.
    use_length : bool
        Must be False: only `softmax` has an input for lengths.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``log_softmax``.
    """
    xp, x = k.xp, _logits(p, data)
    axis = axis_of(p.axis, x.ndim)
    if not x.size:
        return x.copy()
    d = x - x.max(axis, keepdims=True)
    d -= xp.log(xp.exp(d).sum(axis, keepdims=True))
    return d


BACKWARD_PARAMS = dict(axis=Int(-1), temperature=_NotZero(None))


def over_temperature(p: Params, g: Any) -> Any:
    """A gradient divided by the temperature, if there is one."""
    return g if p.temperature is None or p.temperature == 1 else g / p.temperature


@op(
    "SoftmaxActivation",
    inputs="data",
    labels="outputs",
    mode=Enum("channel instance", "instance"),
    grad=lambda F, p, dy, y: F._backward_softmax(dy, y, axis=1 if p.mode == "channel" else -1),
)
def softmax_activation(k: Call, p: Params, data: Array) -> Array:
    """Softmax over the last axis, or over the channels.

    Parameters
    ----------
    data : array
        Shape (N, C) or (N, C, ...).
    mode : {'instance', 'channel'}
        The last axis, or axis 1.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``SoftmaxActivation`` (deprecated there in favour of ``softmax``), except that the
    gradient of mode ``instance`` belongs to the forward pass in more than two dimensions too.
    """
    return soft(k.xp, wide(data), axis_of(1 if p.mode == "channel" else -1, data.ndim))


def _activation_shape(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data = merge_shape(ins[0], outs[0])
    if data is not None and len(data) < (2 if p.mode == "channel" else 1):
        raise ValueError(f"mode {p.mode} needs data of more dimensions than {data}")
    return [data], [data]


for _op in (softmax, softmin, log_softmax):
    _op.shape(_soft_shape)
    _op.dtype(_soft_dtype)
softmax_activation.shape(_activation_shape)
softmax_activation.dtype(floating())
for _op in (softmax, softmin, log_softmax, softmax_activation):
    _op.cost(lambda p, ins, outs: size_of(ins[0]) * 8)
