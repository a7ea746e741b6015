"""Connectionist temporal classification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mxcore.plugin import Call, Params, Spec

from .common import Array, Outs, binds, helpers, inputs_by_name, is_float, kernel_for
from .softmax import normalize


def _alignable(op: str) -> Callable[..., bool]:
    def fits(p: Params, *specs: Spec) -> bool:
        given = inputs_by_name(op, p, specs)
        data, label, dy = given["data"], given["label"], given.get("dy")
        return (
            is_float(data.dtype)
            and (dy is None or dy.dtype == data.dtype)
            and data.size > 0
            and label.size > 0
            and data.shape[0] * data.shape[1] < 2**31
        )

    return fits


class _Problem:
    """What the kernels take: logarithms of probabilities in float32 at least, labels, and memory for the paths."""

    def __init__(self, k: Call, p: Params, given: dict[str, Array]) -> None:
        data = given["data"]
        self.k, self.dtype = k, np.promote_types(data.dtype, np.float32)
        self.times, self.samples, self.classes = data.shape
        lengths = given.get("data_lengths"), given.get("label_lengths")
        # It waits for the labels: one that is no class is an error.
        blank, *arrays = helpers("CTCLoss").read_labels(
            k.xp, data.shape, given["label"], *lengths, p.blank_label == "first"
        )
        width = arrays[0].shape[1]
        self.room = 2 * width + 1
        self.labels = (*map(k.xp.ascontiguousarray, arrays), self.times, self.classes, width, blank)
        self.logs = self.empty(*data.shape)
        normalize(k, self.wide(data), self.logs, -1, logarithm=True)
        self.alpha = self.empty(self.samples, self.times, self.room)

    def empty(self, *shape: int) -> Array:
        return self.k.device.empty(shape, self.dtype, self.k.ctx.device_id)

    def wide(self, a: Array) -> Array:
        return a if a.dtype == self.dtype else a.astype(self.dtype)

    def run(self, name: str, blocks: int, length: int, *values: Any) -> None:
        """Launch blocks of as many threads as there is to do at once."""
        threads = min(max(-(-length // 32) * 32, 64), 256)
        kernel_for(self.k, "ctc", name, self.dtype).blocks(blocks, *values, *self.labels, threads=threads)

    def forward(self, totals: Array | None, losses: Array | None) -> None:
        self.run("ctc_forward", self.samples, self.room, self.logs, self.alpha, totals, losses)


@binds("CTCLoss", dtypes=None, when=_alignable("CTCLoss"))
def _ctc_loss(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
    problem = _Problem(k, p, inputs_by_name("CTCLoss", p, ins))
    losses = outs[0] if outs[0].dtype == problem.dtype else problem.empty(problem.samples)
    problem.forward(None, losses)
    if losses is not outs[0]:
        outs[0][...] = losses


@binds("_backward_ctc_loss", dtypes=None, when=_alignable("_backward_ctc_loss"))
def _backward_ctc_loss(k: Call, p: Params, outs: Outs, *ins: Array) -> None:
    given = inputs_by_name("_backward_ctc_loss", p, ins)
    problem = _Problem(k, p, given)
    totals = problem.empty(problem.samples)
    problem.forward(totals, None)
    beta = problem.empty(problem.samples, 2, problem.room)
    problem.run("ctc_shares", problem.samples, problem.room, problem.logs, problem.alpha, totals, beta)
    dx = outs[0] if outs[0].dtype == problem.dtype else problem.empty(*outs[0].shape)
    n, rows = problem.samples, problem.samples * problem.times
    dy = k.xp.ascontiguousarray(problem.wide(given["dy"]))
    problem.run("ctc_backward", rows, max(problem.classes, problem.room), problem.logs, problem.alpha, dy, dx, n)
    if dx is not outs[0]:
        outs[0][...] = dx
