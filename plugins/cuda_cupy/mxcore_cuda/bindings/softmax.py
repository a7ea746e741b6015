"""Softmax and the losses after it."""

from __future__ import annotations

from typing import Any

from mxcore.layouts import spread
from mxcore.plugin import Call, Params, Spec

from ..launching import Kernel
from .common import Array, Outs, binds, kernel_for, wide


def _plain(p: Params, *specs: Spec) -> bool:
    return p.dtype is None and len(specs) == 1


def _forward(k: Call, data: Array, out: Array, axis: int, temperature: float, logarithm: bool) -> None:
    if not data.size:
        return
    outer, n, inner = spread(data.shape, axis)
    run = kernel_for(k, "softmax", "softmax", data.dtype)
    _launch(run, wide(data.dtype).itemsize, outer * inner, n, inner, data, out, temperature, logarithm)


def _launch(run: Kernel, itemsize: int, rows: int, n: int, inner: int, *values: Any) -> None:
    """Launch over rows, whose threads keep `itemsize` bytes for each of their numbers, if these lie side by side."""
    *arrays, temperature, logarithm = values
    given = *arrays, rows, n, inner, temperature, logarithm
    if inner == 1:
        run.kept_rows(rows, n, itemsize, *given)
    else:
        run.rows(rows, n, *given)


@binds("softmax", when=_plain)
def _softmax(k: Call, p: Params, outs: Outs, data: Array) -> None:
    _forward(k, data, outs[0], p.axis, p.temperature or 1.0, False)


@binds("softmin", when=_plain)
def _softmin(k: Call, p: Params, outs: Outs, data: Array) -> None:
    _forward(k, data, outs[0], p.axis, -(p.temperature or 1.0), False)


@binds("log_softmax", when=_plain)
def _log_softmax(k: Call, p: Params, outs: Outs, data: Array) -> None:
    _forward(k, data, outs[0], p.axis, p.temperature or 1.0, True)


@binds("SoftmaxActivation")
def _softmax_activation(k: Call, p: Params, outs: Outs, data: Array) -> None:
    _forward(k, data, outs[0], 1 if p.mode == "channel" else -1, 1.0, False)


def _bind_backward(op: str, logarithm: bool) -> None:
    @binds(op)
    def backward(k: Call, p: Params, outs: Outs, dy: Array, out: Array) -> None:
        if not out.size:
            return
        outer, n, inner = spread(out.shape, p.axis)
        run = kernel_for(k, "softmax", "softmax_backward", out.dtype)
        _launch(
            run,
            2 * wide(out.dtype).itemsize,
            outer * inner,
            n,
            inner,
            dy,
            out,
            outs[0],
            p.temperature or 1.0,
            logarithm,
        )


_bind_backward("_backward_softmax", False)
_bind_backward("_backward_log_softmax", True)


def _class_rows(p: Params, data: Spec, *rest: Spec) -> bool:
    return data.ndim == 2 and not p.multi_output


@binds("SoftmaxOutput", when=_class_rows)
def _softmax_output(k: Call, p: Params, outs: Outs, data: Array, label: Array) -> None:
    _forward(k, data, outs[0], -1, 1.0, False)


@binds(
    "_backward_SoftmaxOutput",
    when=lambda p, out, label, *dy: _class_rows(p, out) and label.ndim == 1 and not p.out_grad,
)
def _backward_softmax_output(k: Call, p: Params, outs: Outs, out: Array, label: Array) -> None:
    if not out.size:
        return
    rows, n = out.shape
    count, scale = None, p.grad_scale
    if p.normalization == "valid":
        wide = "float64" if out.dtype == "float64" else "float32"
        count = k.device.empty((1,), wide, k.ctx.device_id)
        counted = kernel_for(k, "softmax", "count_labels", out.dtype)
        counted.blocks(1, label, count, rows, p.ignore_label)
    elif p.normalization == "batch":
        scale /= rows
    run = kernel_for(k, "softmax", "softmax_output_backward", out.dtype)
    ignores = p.use_ignore, p.ignore_label, p.smooth_alpha
    run.each(out.size, out, label, count, outs[0], out.size, n, scale, *ignores)
