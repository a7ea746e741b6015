"""Softmax along an axis, and its gradient."""

from __future__ import annotations

from typing import Any

from mxcore.layouts import spread
from mxcore.plugin import Call, Params, Spec

from ..dtypes import name_of
from ..places import INDICES, index
from .common import Array, Outs, binds, is_float, kernel_for

__all__ = ["along", "normalize"]

#: Rows for each of their numbers from which on a thread takes one by itself, where they lie side by side.
_MANY = 64


def _plain(p: Params, data: Spec, *length: Spec) -> bool:
    return is_float(data.dtype) and p.dtype in (None, data.dtype) and all(name_of(s.dtype) in INDICES for s in length)


def normalize(k: Call, data: Array, out: Array, axis: int, temperature: float = 1.0, logarithm: bool = False) -> None:
    """Softmax along an axis, or its logarithm."""
    along(k, data, out, spread(data.shape, axis), temperature, logarithm)


def along(
    k: Call,
    data: Array,
    out: Array,
    lengths: tuple[int, int, int],
    temperature: float = 1.0,
    logarithm: bool = False,
    length: Array | None = None,
) -> None:
    """Softmax along the middle one of three dimensions; with `length`, of so many numbers of each row."""
    some = (None, 0) if length is None else index(length)
    _launch(k, "", [data, out], some, lengths, temperature, logarithm)


def _launch(
    k: Call, how: str, arrays: Outs, more: tuple[Any, ...], lengths: tuple[int, int, int], *numbers: float
) -> None:
    """Launch over the rows; what is read of rows whose numbers lie side by side is kept."""
    data = arrays[0]
    if not data.size:
        return
    outer, n, inner = lengths
    rows = outer * inner
    many = inner >= 32 and rows >= _MANY * n
    name = "softmax_columns" if many else "softmax"
    run = kernel_for(k, "softmax", name + how, data.dtype)
    given = *arrays, *more, rows, n, inner, *numbers
    if many:
        run.each(rows, *given)
    elif inner == 1:
        run.kept_rows(rows, n, len(arrays) - 1, *given)  # the last one is written
    else:
        run.rows(rows, n, *given)


def _bind(op: str, sign: float, logarithm: bool) -> None:
    @binds(op, dtypes=None, when=_plain)
    def forward(k: Call, p: Params, outs: Outs, data: Array, length: Array | None = None) -> None:
        along(k, data, outs[0], spread(data.shape, p.axis), sign * (p.temperature or 1.0), logarithm, length)


def _bind_backward(op: str, logarithm: bool) -> None:
    @binds(op)
    def backward(k: Call, p: Params, outs: Outs, dy: Array, out: Array) -> None:
        arrays, lengths = [dy, out, outs[0]], spread(dy.shape, p.axis)
        _launch(k, "_backward", arrays, (), lengths, p.temperature or 1.0, logarithm)


_bind("softmax", 1.0, False)
_bind("softmin", -1.0, False)
_bind("log_softmax", 1.0, True)
_bind_backward("_backward_softmax", False)
_bind_backward("_backward_log_softmax", True)


@binds("SoftmaxActivation")
def _softmax_activation(k: Call, p: Params, outs: Outs, data: Array) -> None:
    normalize(k, data, outs[0], 1 if p.mode == "channel" else -1)
