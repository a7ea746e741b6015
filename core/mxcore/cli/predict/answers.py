"""What a network says, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import ndarray as nd
from ..._io_files import read_text
from ...base import error

if TYPE_CHECKING:
    from ...context import Context
    from ...executor import Executor
    from ...typing import Array
    from ..model import Model

__all__ = ["Runner", "one", "read_labels", "records"]


def read_labels(path: str | None) -> list[str] | None:
    """Names of the classes, a line each; None without a file."""
    if path is None:
        return None
    data = read_text(path, "list of classes")
    try:
        return data.decode().splitlines()
    except UnicodeDecodeError as e:
        raise error(ValueError, f"--labels: {path} is no text: {e}") from None


class Runner:
    """Runs a model, bound once a shape.

    Parameters
    ----------
    model : Model
    ctx : Context
    """

    def __init__(self, model: Model, ctx: Context) -> None:
        self.model, self.ctx = model, ctx
        self._bound: dict[tuple[int, ...], Executor] = {}

    def __call__(self, batch: Array) -> dict[str, Array]:
        """The outputs by name, as NumPy arrays."""
        bound = self._bound.get(batch.shape)
        if bound is None:
            bound = self._bound[batch.shape] = self.model.bind(self.ctx, batch.shape)
        outs = bound.forward(is_train=False, **{str(self.model.data): nd.array(batch, ctx=self.ctx)})
        return dict(zip(self.model.symbol.list_outputs(), (y.asnumpy() for y in outs)))


def _probabilities(outputs: dict[str, Array]) -> Array | None:
    """The first output as probabilities (batch, classes); None if it is something else."""
    y = next(iter(outputs.values())).astype("float64")
    if y.ndim != 2 or y.shape[1] < 2 or not len(y):
        return None
    if (y >= 0).all() and np.allclose(y.sum(1), 1, atol=1e-3):
        return y
    y = np.exp(y - y.max(1, keepdims=True))  # scores of a network without softmax
    return y / y.sum(1, keepdims=True)


def _name(labels: Sequence[str] | None, index: int, classes: int) -> str:
    if labels is None:
        return ""
    if len(labels) != classes:
        raise error(ValueError, f"--labels names {len(labels)} classes, the network tells {classes} apart")
    return "  " + labels[index]


def one(what: str, outputs: dict[str, Array], labels: Sequence[str] | None, top: int) -> None:
    """Print the likeliest classes of a sample, or what the outputs are if those are no classes."""
    print(what)
    found = _probabilities(outputs)
    if found is None:
        for name, y in outputs.items():
            some = " ".join(f"{v:g}" for v in y.ravel()[:8]) + (" …" if y.size > 8 else "")
            told = f"from {y.min():g} to {y.max():g}: {some}" if y.size else "nothing"
            print(f"  {name} {y.shape}, {told}")
        return
    for index in np.argsort(-found[0], kind="stable")[:top]:
        print(f"  {found[0, index]:.4f}  {index:4d}{_name(labels, index, found.shape[1])}")


def records(runner: Runner, batches: Any, labels: Sequence[str] | None) -> None:
    """Print the likeliest class of each record, and how often it is the record's label."""
    right = total = 0
    try:
        for batch in batches:
            n = batch.data[0].shape[0] - (batch.pad or 0)
            found = _probabilities(runner(batch.data[0].asnumpy()))
            if found is None:
                raise error(
                    ValueError, "the first output is no list of classes, so records have no answer; use .npy files"
                )
            if len(found) != len(batch.data[0]):
                raise error(
                    ValueError,
                    f"the first output has {len(found)} rows for {len(batch.data[0])} records, so that none has an "
                    "answer of its own; use .npy files",
                )
            truth = batch.label[0].asnumpy().reshape(len(found), -1)[:, 0]
            for p, label, number in zip(found[:n], truth, batch.index):
                index = int(p.argmax())
                print(f"record {number}: label {label:g}, {p[index]:.4f}  {index:4d}{_name(labels, index, len(p))}")
                right += index == label
                total += 1
    finally:
        batches.close()
    print(f"{right} of {total} right ({100 * right / max(total, 1):.2f} %)")
