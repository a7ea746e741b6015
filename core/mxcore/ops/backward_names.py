"""Backward operators that MXNet shows by name, beside those that stand with their operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.op import op
from ..parameters import Bool, Int, Shape
from .rules import axis_of

__all__: list[str] = []


@op(
    "_contrib_backward_index_copy",
    inputs="dy index_vector",
    outputs="old_tensor new_tensor",
    grad=lambda F, d_old_tensor, d_new_tensor, index_vector: (
        F._contrib_index_copy(d_old_tensor, index_vector, d_new_tensor),
        None,
    ),
)
def backward_index_copy(k, p, dy_, index_vector):
    """The gradients of `index_copy`: zero where rows were replaced, and those rows.

    Parameters
    ----------
    dy : array
    index_vector : array, 1-D
        Which rows were replaced.
    """
    at = index_vector.astype(np.int64)
    old = dy_.copy()
    old[at] = 0
    return old, dy_[at]


backward_index_copy.shape(lambda p, ins: [ins[0], (*ins[1], *ins[0][1:])])
backward_index_copy.dtype(lambda p, ins, outs: (ins, [ins[0], ins[0]]))


def _joined(p: Any, ins: Any) -> Any:
    first = ins[0]
    if p.squeeze_axis:
        axis = axis_of(p.axis, len(first) + 1, " of the result")
        return [(*first[:axis], len(ins), *first[axis:])]
    axis = axis_of(p.axis, len(first))
    if any(s[:axis] + s[axis + 1 :] != first[:axis] + first[axis + 1 :] for s in ins):
        raise ValueError(f"the parts {', '.join(map(str, ins))} differ in other axes than {p.axis}")
    return [(*first[:axis], sum(s[axis] for s in ins), *first[axis + 1 :])]


@op(
    "_split_v2_backward",
    inputs="dys*",
    indices=Shape(()),
    axis=Int(1),
    squeeze_axis=Bool(False),
    sections=Int(0),
    grad=lambda F, p, dy, like_dys: [_parts(F, p, dy, len(like_dys))],
)
def split_v2_backward(k, p, *dys):
    """The gradient of `split_v2`: its parts joined.

    Parameters
    ----------
    dys : arrays
        Gradients of the parts.
    num_args : int
        How many; counted for you.
    indices, axis, squeeze_axis, sections
        As in `split_v2`.
    """
    axis = axis_of(p.axis, dys[0].ndim + p.squeeze_axis)
    return k.xp.stack(dys, axis) if p.squeeze_axis else k.xp.concatenate(dys, axis)


split_v2_backward.shape(_joined)


def _parts(F: Any, p: Any, dy: Any, n: int) -> list[Any]:
    parts = F._split_v2(dy, indices=p.indices, axis=p.axis, squeeze_axis=p.squeeze_axis, sections=p.sections)
    return list(parts) if isinstance(parts, (list, tuple)) else [parts]
