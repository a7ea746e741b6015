"""Of boxes that overlap, the best; of pairs, the best in which nobody comes twice."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Float, Int
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.rules import floating, size_of
from .boxes import FORMAT, Boxes, boxes_of, converted, intersection

__all__ = ["NMS_PARAMS", "Meeting", "best_first", "survivors"]

_INT64 = np.dtype(np.int64)


def best_first(xp: Any, score: Any, valid: Any) -> Any:
    """The order of scores (B, N) from the highest, equal ones as they come, those that are not valid last."""
    return xp.argsort(xp.where(valid, -score, score.dtype.type(np.inf)), axis=1, kind="stable")


class Meeting(NamedTuple):
    """When a box suppresses another one.

    Attributes
    ----------
    threshold : float
        They overlap by more than this.
    inclusive : bool
        Or by as much.
    longer : int
        Sides are longer by this: 1 where corners are pixels.
    """

    threshold: float
    inclusive: bool = False
    longer: int = 0

    def met(self, xp: Any, a: Boxes, b: Boxes) -> Any:
        """Whether boxes are suppressed by others."""
        zero, limit = a.area.dtype.type(0), a.area.dtype.type(self.threshold)
        common = intersection(xp, a, b, self.longer)
        together = a.area + b.area - common
        part = xp.where(together <= 0, zero, common / together)
        return part >= limit if self.inclusive else part > limit


def survivors(xp: Any, alive: Any, boxes: Boxes, classes: Any, meeting: Meeting, most: int | None = None) -> Any:
    """Which boxes (B, N), the best first, none of the better ones suppresses.

    Parameters
    ----------
    alive : array of bool
        Which take part.
    boxes : Boxes
    classes : array or None
        Numbers of classes, if only boxes of one class suppress one another.
    meeting : Meeting
    most : int, optional
        How many are wanted.
    """
    n = alive.shape[1]
    kept, place = xp.zeros_like(alive), xp.broadcast_to(xp.arange(n), alive.shape)
    batch, count = xp.arange(alive.shape[0])[:, None], xp.zeros((alive.shape[0], 1), _INT64)
    # Some of the best that are left at a time: which of them stay, and which of the others they leave.
    while left := int(xp.max(xp.sum(alive, axis=1)).item()) if alive.size else 0:
        first = xp.argsort((~alive).astype(np.int8), axis=1, kind="stable")[:, :left]
        alive, place, boxes = (
            xp.take_along_axis(alive, first, 1),
            xp.take_along_axis(place, first, 1),
            boxes.at(xp, first),
        )
        classes = None if classes is None else xp.take_along_axis(classes, first, 1)
        some = min(left, max(_PAIRS // (alive.shape[0] * left), _FEWEST))
        met = meeting.met(xp, Boxes(*(v[:, :some, None] for v in boxes)), Boxes(*(v[:, None] for v in boxes)))
        if classes is not None:
            met = met & (classes[:, :some, None] == classes[:, None])
        best = _unsuppressed(xp, alive[:, :some], met[:, :, :some])
        kept[batch, place[:, :some]] = best
        count = count + xp.sum(best, axis=1, keepdims=True)
        if most is not None:
            alive = alive & (count < most)
        alive = (alive & ~xp.any(met & best[:, :, None], axis=1))[:, some:]
        place, boxes = place[:, some:], Boxes(*(v[:, some:] for v in boxes))
        classes = None if classes is None else classes[:, some:]
    return kept if most is None else kept & (xp.cumsum(kept, axis=1) <= most)


#: How many pairs are looked at in one step, for the memory's sake, and boxes at least.
_PAIRS, _FEWEST = 1 << 21, 16


def _unsuppressed(xp: Any, alive: Any, met: Any) -> Any:
    """Which boxes (B, K) stay of those alive, where `met` (B, K, K) tells which ones suppress which.

    Whether a box stays follows from the better ones: each pass settles at least one more of them.
    """
    later = xp.arange(alive.shape[1])
    met = met & (later[:, None] < later)
    kept = alive
    while True:
        found = alive & ~xp.any(met & kept[:, :, None], axis=1)
        if not (found != kept).any().item():
            return kept
        kept = found


# -- box_nms --------------------------------------------------------------------------------------------------------

NMS_PARAMS = dict(
    overlap_thresh=Float(0.5),
    valid_thresh=Float(0.0),
    topk=Int(-1),
    coord_start=Int(2, ge=0),
    score_index=Int(1, ge=0),
    id_index=Int(-1),
    background_id=Int(-1),
    force_suppress=Bool(False),
    in_format=FORMAT,
    out_format=FORMAT,
)


def _check_columns(p: Params, width: int) -> None:
    """Raise ValueError unless boxes, scores and classes are among `width` numbers."""
    for name, first, last in (
        ("coord_start", p.coord_start, p.coord_start + 3),
        ("score_index", p.score_index, p.score_index),
        ("id_index", max(p.id_index, 0), p.id_index),
    ):
        if last >= width:
            raise ValueError(f"{name}={first} wants at least {last + 1} numbers for each box; the data has {width}")


@silent
def _box_nms(xp: Any, p: Params, data: Any, survivors: Any) -> Any:
    """What `box_nms` gives, by any way to find survivors."""
    n, width = data.shape[-2:]
    x = wide(data).reshape(size_of(data.shape[:-2]), n, width)
    first = n if p.topk < 0 else min(n, p.topk)
    if first == 0 or not x.size:
        return x.reshape(data.shape), xp.broadcast_to(xp.arange(n), data.shape[:-1]).copy()
    score, real = x[:, :, p.score_index], x.dtype.type
    valid = score > real(p.valid_thresh)
    if p.id_index >= 0:
        valid = valid & (x[:, :, p.id_index] != real(p.background_id))
    order = best_first(xp, score, valid)[:, :first]
    seen = xp.take_along_axis(x, order[:, :, None], 1)
    boxes = boxes_of(xp, seen[:, :, p.coord_start : p.coord_start + 4], p.in_format)

    classes = None if p.id_index < 0 or p.force_suppress else seen[:, :, p.id_index]
    kept = survivors(xp, xp.take_along_axis(valid, order, 1), boxes, classes, Meeting(p.overlap_thresh))
    place = xp.argsort((~kept).astype(np.int8), axis=1, kind="stable")
    index = xp.full(x.shape[:2], -1, _INT64)
    index[:, :first] = xp.where(xp.take_along_axis(kept, place, 1), xp.take_along_axis(order, place, 1), -1)
    found = xp.take_along_axis(x, xp.maximum(index, 0)[:, :, None], 1)
    at = slice(p.coord_start, p.coord_start + 4)
    found[:, :, at] = converted(xp, found[:, :, at].copy(), p.in_format, p.out_format)
    found = xp.where(index[:, :, None] >= 0, found, real(-1))
    return found.reshape(data.shape), index.reshape(data.shape[:-1])


@op(
    "_contrib_box_nms",
    "_contrib_box_non_maximum_suppression",
    inputs="data",
    outputs="output0 output1",
    visible=1,
    **NMS_PARAMS,
    grad=lambda F, p, dy, out_output1: F._backward_box_nms(dy, out_output1),
    helpers={"computed": _box_nms},
)
def box_nms(k: Call, p: Params, data: Array) -> Any:
    """Boxes from the best on, but for those that overlap with a better one: non-maximum suppression.

    Parameters
    ----------
    data : array
        Shape (\\*batch, N, numbers): for each box four numbers for where it is, a score, maybe a class, and others.
    overlap_thresh : float
        A box that overlaps with a better one by more than this part of what they cover together goes.
    valid_thresh : float
        Only boxes with scores above this are looked at.
    topk : int
        Only so many of the best boxes are looked at; all if below zero, none (the data is the result) for zero.
    coord_start : int
        Where the four numbers of a box begin.
    score_index : int
        Where its score is.
    id_index : int
        Where its class is; below zero, there are no classes.
    background_id : int
        The class of boxes that are not looked at.
    force_suppress : bool
        Boxes of other classes suppress one another, too.
    in_format, out_format : {'corner', 'center'}
        Of the boxes in the data, and in the result.

    Returns
    -------
    array
        Of the data's shape: the boxes that are left, by falling scores, equal ones in the order of the data; then -1.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.box_nms``; gradients go to the boxes that are left, as they came: without
    regard to the formats. A box that is NaN or inside out neither suppresses nor is suppressed; one whose score is NaN
    is not looked at. Source: Neubeck and Van Gool, "Efficient non-maximum suppression", 2006.

    Examples
    --------
    >>> import mxcore as mx
    >>> boxes = mx.nd.array([[0, 0.5, 0, 0, 2, 2], [0, 0.9, 0, 0, 2, 3], [0, 0.7, 5, 5, 6, 6]])
    >>> mx.nd.contrib.box_nms(boxes).asnumpy()[:, 1:]
    array([[ 0.9,  0. ,  0. ,  2. ,  3. ],
           [ 0.7,  5. ,  5. ,  6. ,  6. ],
           [-1. , -1. , -1. , -1. , -1. ]], dtype=float32)
    """
    return _box_nms(k.xp, p, data, survivors)


@box_nms.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data = merge_shape(ins[0], outs[0])
    if data is None:
        return ins, outs
    if len(data) < 2:
        raise ValueError(f"data has shape {data}; wanted are rows of numbers, one for each box, or a batch of it")
    if data[-1] != -1:
        _check_columns(p, data[-1])
    return [data], [data, data[:-1]]


@box_nms.dtype
@floating
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[0] or outs[0]
    return [t], [t, _INT64]


# -- matching -------------------------------------------------------------------------------------------------------


@op(
    "_contrib_bipartite_matching",
    inputs="data",
    outputs="output0 output1",
    is_ascend=Bool(False),
    threshold=Float(),
    topk=Int(-1),
    grad=None,
)
@silent
def bipartite_matching(k: Call, p: Params, data: Array) -> Any:
    """Pairs of rows and columns from the best score on, in which no row and no column comes twice.

    Parameters
    ----------
    data : array
        Scores, shape (\\*batch, N, M).
    is_ascend : bool
        Low scores are the good ones.
    threshold : float
        Only pairs with scores above (with `is_ascend`, below) this are matched.
    topk : int
        After this many pairs one more is matched, and no others; without bound unless above zero.

    Returns
    -------
    output0 : array
        Shape (\\*batch, N): the column that each row is matched with, or -1.
    output1 : array
        Shape (\\*batch, M): the row of each column.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.bipartite_matching``, its `topk` included; its gradient is zero. Of equal
    scores the first counts, row by row; what is NaN is matched with nobody.

    Examples
    --------
    >>> import mxcore as mx
    >>> rows, columns = mx.nd.contrib.bipartite_matching(mx.nd.array([[0.5, 0.6], [0.1, 0.2], [0.3, 0.4]]), threshold=0)
    >>> rows.asnumpy(), columns.asnumpy()
    (array([ 1., -1.,  0.], dtype=float32), array([2., 0.], dtype=float32))
    """
    xp = k.xp
    n, m = data.shape[-2:]
    x = wide(data).reshape(size_of(data.shape[:-2]), n * m)
    real, batch = x.dtype.type, xp.arange(x.shape[0])
    nothing = real(-np.inf)
    x = xp.where(xp.isnan(x), nothing, -x if p.is_ascend else x)
    limit = real(-p.threshold if p.is_ascend else p.threshold)
    rows, columns = xp.full((x.shape[0], n), -1, x.dtype), xp.full((x.shape[0], m), -1, x.dtype)
    row_of, column_of = xp.arange(n * m) // max(m, 1), xp.arange(n * m) % max(m, 1)
    for _ in range(min(n, m, p.topk + 1 if p.topk > 0 else n) if x.size else 0):
        at = xp.argmax(x, axis=1)
        good = x[batch, at] > limit
        if not good.any().item():
            break
        row, column = at // m, at % m
        rows[batch, row] = xp.where(good, column.astype(x.dtype), rows[batch, row])
        columns[batch, column] = xp.where(good, row.astype(x.dtype), columns[batch, column])
        x = xp.where((row_of == row[:, None]) | (column_of == column[:, None]) | ~good[:, None], nothing, x)
    return rows.reshape(data.shape[:-1]), columns.reshape(*data.shape[:-2], m)


@bipartite_matching.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    [data] = ins
    if len(data) < 2:
        raise ValueError(f"data has shape {data}; wanted are scores of pairs, (rows, columns) or a batch of it")
    return [data[:-1], (*data[:-2], data[-1])]


bipartite_matching.dtype(floating())
box_nms.cost(lambda p, ins, outs: 8 * size_of(ins[0]) * max(ins[0][-2], 1) // max(ins[0][-1], 1))
bipartite_matching.cost(lambda p, ins, outs: 4 * size_of(ins[0]) * min(ins[0][-2:]))
