"""Softmax and the losses after it."""

from __future__ import annotations

from mxcore.layouts import spread
from mxcore.plugin import Call, Params, Spec

from .common import Array, Outs, binds, kernel_for, wide


def _plain(p: Params, *specs: Spec) -> bool:
    return p.dtype is None and len(specs) == 1


def normalize(k: Call, data: Array, out: Array, axis: int, temperature: float = 1.0, logarithm: bool = False) -> None:
    """Softmax along an axis, or its logarithm."""
    _launch(k, "softmax", [data, out], axis, temperature, logarithm)


def _launch(k: Call, name: str, arrays: Outs, axis: int, temperature: float, logarithm: bool) -> None:
    """Launch over the rows along an axis; what is read of rows that lie side by side is kept."""
    data = arrays[0]
    if not data.size:
        return
    outer, n, inner = spread(data.shape, axis)
    run, rows = kernel_for(k, "softmax", name, data.dtype), outer * inner
    given = *arrays, rows, n, inner, temperature, logarithm
    if inner == 1:
        run.kept_rows(rows, n, len(arrays) - 1, *given)  # the last one is written
    else:
        run.rows(rows, n, *given)


@binds("softmax", when=_plain)
def _softmax(k: Call, p: Params, outs: Outs, data: Array) -> None:
    normalize(k, data, outs[0], p.axis, p.temperature or 1.0)


@binds("softmin", when=_plain)
def _softmin(k: Call, p: Params, outs: Outs, data: Array) -> None:
    normalize(k, data, outs[0], p.axis, -(p.temperature or 1.0))


@binds("log_softmax", when=_plain)
def _log_softmax(k: Call, p: Params, outs: Outs, data: Array) -> None:
    normalize(k, data, outs[0], p.axis, p.temperature or 1.0, True)


@binds("SoftmaxActivation")
def _softmax_activation(k: Call, p: Params, outs: Outs, data: Array) -> None:
    normalize(k, data, outs[0], 1 if p.mode == "channel" else -1)


def _bind_backward(op: str, logarithm: bool) -> None:
    @binds(op)
    def backward(k: Call, p: Params, outs: Outs, dy: Array, out: Array) -> None:
        _launch(k, "softmax_backward", [dy, out, outs[0]], p.axis, p.temperature or 1.0, logarithm)


_bind_backward("_backward_softmax", False)
_bind_backward("_backward_log_softmax", True)


def _class_rows(p: Params, data: Spec, *rest: Spec) -> bool:
    return data.ndim == 2 and not p.multi_output


@binds("SoftmaxOutput", when=_class_rows)
def _softmax_output(k: Call, p: Params, outs: Outs, data: Array, label: Array) -> None:
    normalize(k, data, outs[0], -1)


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
        count = k.device.empty((1,), wide(out.dtype), k.ctx.device_id)
        counted = kernel_for(k, "softmax", "count_labels", out.dtype)
        counted.blocks(1, label, count, rows, p.ignore_label)
    elif p.normalization == "batch":
        scale /= rows
    run = kernel_for(k, "softmax", "softmax_output_backward", out.dtype)
    ignores = p.use_ignore, p.ignore_label, p.smooth_alpha
    run.each(out.size, out, label, count, outs[0], out.size, n, scale, *ignores)
