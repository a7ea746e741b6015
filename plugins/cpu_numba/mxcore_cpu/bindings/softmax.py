"""Softmax and the losses after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mxcore.plugin import Call, Params, Spec

from ..kernels import ctc, softmax
from ..kernels._arrays import flat
from ..typing import Array, Outs
from .common import FLOATS, cpu, helpers, inputs_by_name


def _plain_softmax(p: Params, *specs: Spec) -> bool:
    # The kernel takes the largest logit as that of the largest datum.
    return p.dtype is None and (p.temperature is None or p.temperature > 0)


def _softmax_that_fits(p: Params, data: Spec, *length: Spec) -> bool:
    return (
        _plain_softmax(p)
        and data.dtype in (np.float32, np.float64)
        and all(s.dtype.kind in "iu" and p.axis in (-1, data.ndim - 1) for s in length)
    )


@cpu.kernel("softmax", when=_softmax_that_fits, out=True)
def _softmax(k: Call, p: Params, outs: Outs, data: Array, length: Array | None = None) -> None:
    if length is None:
        softmax.softmax(data, outs[0], p.axis, p.temperature)
    else:
        softmax.softmax_of_lengths(data, length, outs[0], p.temperature)


@cpu.kernel("softmin", dtypes=FLOATS, when=_plain_softmax, out=True)
def _softmin(k: Call, p: Params, outs: Outs, data: Array) -> None:
    softmax.softmax(data, outs[0], p.axis, -(p.temperature or 1.0))


@cpu.kernel("log_softmax", dtypes=FLOATS, when=_plain_softmax, out=True)
def _log_softmax(k: Call, p: Params, outs: Outs, data: Array) -> None:
    softmax.log_softmax(data, outs[0], p.axis, p.temperature)


@cpu.kernel("SoftmaxActivation", dtypes=FLOATS, out=True)
def _softmax_activation(k: Call, p: Params, outs: Outs, data: Array) -> None:
    softmax.softmax(data, outs[0], 1 if p.mode == "channel" else -1)


for _op in ("softmax", "log_softmax"):

    def _backwards(op: str = _op) -> None:
        backward = getattr(softmax, op + "_backward")

        @cpu.kernel("_backward_" + op, dtypes=FLOATS, out=True)
        def kernel_backward(k: Call, p: Params, outs: Outs, dy: Array, out: Array) -> None:
            backward(dy, out, outs[0], p.axis, p.temperature)

    _backwards()


def _pickable(p: Params, data: Spec, index: Spec, *rest: Spec) -> bool:
    return (
        data.size > 0
        and data.dtype in (np.float32, np.float64)
        and index.dtype.kind in "fiu"
        and index.dtype.itemsize >= 4
        and all(s.dtype == data.dtype for s in rest)
    )


@cpu.kernel("_pick_log_softmax", when=_pickable, out=True)
def _pick_log_softmax(k: Call, p: Params, outs: Outs, data: Array, index: Array) -> None:
    out, largest, total = (np.empty(data.shape[:-1], data.dtype) if o is None else o for o in outs)
    softmax.pick_log_softmax(data, index, out, largest, total, p.scalar)


@cpu.kernel(
    "_backward_pick_log_softmax",
    when=lambda p, dy, data, index, *found: _pickable(p, data, index, dy, *found),
    out=True,
)
def _backward_pick_log_softmax(
    k: Call, p: Params, outs: Outs, dy: Array, data: Array, index: Array, largest: Array, total: Array
) -> None:
    softmax.pick_log_softmax_backward(dy, data, index, largest, total, outs[0], p.scalar)


def _standing_pick(k: Call, p: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], None]:
    """The same in a program, whose outputs are whole."""
    kernel, n, scalar = softmax.picked, ins[0].shape[-1], p.scalar
    rows = ins[0].size // n
    unread = np.empty(rows, ins[0].dtype)

    def call() -> None:
        data, index = ins
        places = [unread if o is None else o.reshape(-1) for o in outs]
        kernel.run(kernel.workers(data.size), rows, n, scalar, flat(data), flat(index), *places)

    return call


def _standing_pick_gradient(k: Call, p: Params, ins: Sequence[Any], outs: Sequence[Any]) -> Callable[[], None]:
    kernel, n, scalar = softmax.picked_gradient, ins[1].shape[-1], p.scalar
    rows = ins[1].size // n

    def call() -> None:
        kernel.run(kernel.workers(ins[1].size), rows, n, scalar, *map(flat, ins), outs[0].reshape(-1))

    return call


_pick_log_softmax.binds = _standing_pick  # type: ignore[attr-defined]
_backward_pick_log_softmax.binds = _standing_pick_gradient  # type: ignore[attr-defined]


def _class_rows(p: Params, data: Spec, *rest: Spec) -> bool:
    return data.ndim == 2 and not p.multi_output


@cpu.kernel("SoftmaxOutput", dtypes=FLOATS, when=_class_rows, out=True)
def _softmax_output(k: Call, p: Params, outs: Outs, data: Array, label: Array) -> None:
    softmax.softmax(data, outs[0])


@cpu.kernel(
    "_backward_SoftmaxOutput",
    dtypes=FLOATS,
    out=True,
    when=lambda p, out, label, *dy: _class_rows(p, out) and label.ndim == 1 and not p.out_grad,
)
def _backward_softmax_output(k: Call, p: Params, outs: Outs, out: Array, label: Array) -> None:
    softmax.softmax_output_backward(
        out,
        label,
        outs[0],
        grad_scale=p.grad_scale,
        use_ignore=p.use_ignore,
        ignore_label=p.ignore_label,
        normalization=p.normalization,
        smooth_alpha=p.smooth_alpha,
    )


def _alignable(op: str) -> Callable[..., bool]:
    """A condition: whether the logits, which follow the gradient in backward, are such as the kernel takes."""

    def fits(p: Params, *specs: Spec) -> bool:
        given = inputs_by_name(op, p, specs)
        data, label = given["data"], given["label"]
        if data.ndim != 3 or label.ndim != 2 or data.dtype not in (np.float32, np.float64):
            return False
        each = [s for name, s in given.items() if name not in ("data", "label", "dy")]
        return (
            data.size > 0
            and label.size > 0
            and label.shape[0] == data.shape[1]
            and all(s.shape == (data.shape[1],) for s in each)
            and bool(given.get("dy", data).dtype == data.dtype)
        )

    return fits


def _labels(p: Params, given: dict[str, Array]) -> Sequence[Any]:
    lengths = given.get("data_lengths"), given.get("label_lengths")
    labels: Sequence[Any] = helpers("CTCLoss").read_labels(
        np, given["data"].shape, given["label"], *lengths, p.blank_label == "first"
    )
    return labels


@cpu.kernel("CTCLoss", when=_alignable("CTCLoss"), out=True)
def _ctc_loss(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
    given = inputs_by_name("CTCLoss", p, ins)
    ctc.loss(given["data"], _labels(p, given), outs[0])


@cpu.kernel("_backward_ctc_loss", when=_alignable("_backward_ctc_loss"), out=True)
def _backward_ctc_loss(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
    given = inputs_by_name("_backward_ctc_loss", p, ins)
    ctc.loss_backward(given["dy"], given["data"], _labels(p, given), outs[0])
