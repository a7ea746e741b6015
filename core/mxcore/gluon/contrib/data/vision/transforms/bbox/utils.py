"""Boxes of objects: arrays ``(N, 4 or more)`` of left, top, right and bottom in pixels, then what stays.

The functions take NumPy arrays and return new ones. Chance is Python's ``random``.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .......base import error

__all__ = [
    "bbox_clip_xyxy",
    "bbox_crop",
    "bbox_flip",
    "bbox_iou",
    "bbox_random_crop_with_constraints",
    "bbox_resize",
    "bbox_translate",
    "bbox_xywh_to_xyxy",
    "bbox_xyxy_to_xywh",
]

#: (least, most) overlap of every box with the window: those of Liu et al.
_CONSTRAINTS = ((0.1, None), (0.3, None), (0.5, None), (0.7, None), (0.9, None), (None, 1))


def _check_bbox_shape(bbox: np.ndarray[Any, Any]) -> None:
    """Raise unless boxes have the shape (N, 4 or more)."""
    if len(bbox.shape) != 2 or bbox.shape[1] < 4:
        raise error(AssertionError, f"boxes must be an array (N, 4 or more), got one of shape {tuple(bbox.shape)}")


def _pair(size: Any, name: str) -> Any:
    if len(size) != 2:
        raise error(ValueError, f"{name} must be (width, height), got {tuple(size)}")
    return size


def bbox_crop(
    bbox: np.ndarray[Any, Any], crop_box: Sequence[float | None] | None = None, allow_outside_center: bool = True
) -> np.ndarray[Any, Any]:
    """Cut boxes to a window, and measure them from its corner.

    Parameters
    ----------
    bbox : numpy.ndarray
        ``(N, 4 or more)``.
    crop_box : (left, top, width, height), optional
        None or 0 stands for no limit.
    allow_outside_center : bool, default True
        Keep boxes whose centre lies outside, too.

    Returns
    -------
    numpy.ndarray
        ``(M, 4 or more)``: without boxes of which nothing is left.

    Examples
    --------
    >>> import numpy as np
    >>> bbox_crop(np.array([[0, 0, 8, 4, 7], [0, 0, 2, 2, 8]]), (4, 1, 10, 10)).tolist()
    [[0, 0, 4, 3, 7]]
    """
    _check_bbox_shape(bbox)
    if crop_box is None:
        return np.copy(bbox)
    if len(crop_box) != 4:
        raise error(ValueError, f"bbox_crop: crop_box must be (left, top, width, height), got {tuple(crop_box)}")
    left, top, width, height = (0 if v is None else v for v in crop_box)
    low = np.array([left, top])
    high = np.array([left + width if width else np.inf, top + height if height else np.inf])
    centres = (bbox[:, :2] + bbox[:, 2:4]) / 2
    out: np.ndarray[Any, Any] = np.copy(bbox)
    out[:, :2] = np.maximum(bbox[:, :2], low) - low
    out[:, 2:4] = np.minimum(bbox[:, 2:4], high) - low
    kept = (out[:, :2] < out[:, 2:4]).all(1)
    if not allow_outside_center:
        kept &= ((low <= centres) & (centres < high)).all(1)
    return out[kept]


def bbox_flip(
    bbox: np.ndarray[Any, Any], size: Sequence[float], flip_x: bool = False, flip_y: bool = False
) -> np.ndarray[Any, Any]:
    """Mirror boxes with their image.

    Parameters
    ----------
    bbox : numpy.ndarray
        ``(N, 4 or more)``.
    size : (width, height)
        Of the image.
    flip_x, flip_y : bool, default False
        Left to right, top to bottom.

    Examples
    --------
    >>> import numpy as np
    >>> bbox_flip(np.array([[1, 0, 3, 2]]), (10, 10), flip_x=True).tolist()
    [[7, 0, 9, 2]]
    """
    _check_bbox_shape(bbox)
    out: np.ndarray[Any, Any] = np.copy(bbox)
    for axis, (length, flip) in enumerate(zip(_pair(size, "bbox_flip: size"), (flip_x, flip_y))):
        if flip:
            out[:, [axis, axis + 2]] = length - bbox[:, [axis + 2, axis]]
    return out


def bbox_resize(
    bbox: np.ndarray[Any, Any], in_size: Sequence[float], out_size: Sequence[float]
) -> np.ndarray[Any, Any]:
    """Scale boxes with their image, as float64.

    Parameters
    ----------
    bbox : numpy.ndarray
        ``(N, 4 or more)``.
    in_size, out_size : (width, height)
        Of the image before and after.

    Examples
    --------
    >>> import numpy as np
    >>> bbox_resize(np.array([[1, 1, 3, 2]]), (10, 10), (20, 5)).tolist()
    [[2.0, 0.5, 6.0, 1.0]]
    """
    _check_bbox_shape(bbox)
    old, new = _pair(in_size, "bbox_resize: in_size"), _pair(out_size, "bbox_resize: out_size")
    out = bbox.astype("float64")
    out[:, :4] *= [new[0] / old[0], new[1] / old[1]] * 2
    return out


def bbox_translate(bbox: np.ndarray[Any, Any], x_offset: float = 0, y_offset: float = 0) -> np.ndarray[Any, Any]:
    """Move boxes.

    Parameters
    ----------
    bbox : numpy.ndarray
        ``(N, 4 or more)``.
    x_offset, y_offset : float, default 0
    """
    _check_bbox_shape(bbox)
    out: np.ndarray[Any, Any] = np.copy(bbox)
    out[:, :4] = bbox[:, :4] + np.array([x_offset, y_offset] * 2)
    return out


def bbox_iou(bbox_a: np.ndarray[Any, Any], bbox_b: np.ndarray[Any, Any], offset: float = 0) -> np.ndarray[Any, Any]:
    """How far boxes overlap: the area of intersections divided by that of unions.

    Parameters
    ----------
    bbox_a : numpy.ndarray
        ``(N, 4 or more)``.
    bbox_b : numpy.ndarray
        ``(M, 4 or more)``.
    offset : float, default 0
        Added to widths and heights: 1 where right and bottom are the last pixels inside.

    Returns
    -------
    numpy.ndarray
        ``(N, M)``; 0 for two boxes without area.

    Examples
    --------
    >>> import numpy as np
    >>> bbox_iou(np.array([[0, 0, 2, 2]]), np.array([[0, 0, 2, 1], [1, 1, 3, 3]])).round(3).tolist()
    [[0.5, 0.143]]
    """
    for boxes in (bbox_a, bbox_b):
        if len(boxes.shape) != 2 or boxes.shape[1] < 4:
            raise error(IndexError, f"bbox_iou: boxes must be an array (N, 4 or more), got one of shape {boxes.shape}")

    def area(low: Any, high: Any) -> Any:
        return np.prod(np.maximum(high - low + offset, 0), axis=-1, dtype="float64")

    low = np.maximum(bbox_a[:, None, :2], bbox_b[:, :2])
    high = np.minimum(bbox_a[:, None, 2:4], bbox_b[:, 2:4])
    both = area(low, high) * (low < high).all(-1)
    either = area(bbox_a[:, :2], bbox_a[:, 2:4])[:, None] + area(bbox_b[:, :2], bbox_b[:, 2:4]) - both
    overlap: np.ndarray[Any, Any] = np.divide(both, either, out=np.zeros_like(both), where=either > 0)
    return overlap


def _of_boxes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of arrays (N, 4) take a single box, too, a list or tuple that becomes a tuple."""

    @functools.wraps(function)
    def convert(boxes: Any, *args: Any, **kwargs: Any) -> Any:
        single = isinstance(boxes, (list, tuple))
        if not single and not isinstance(boxes, np.ndarray):
            raise error(
                TypeError,
                f"{function.__name__}: a box is a list or tuple, boxes a numpy.ndarray, got {type(boxes).__name__}",
            )
        array = np.asarray(boxes)
        if array.size % 4 or single and array.shape != (4,):
            raise error(IndexError, f"{function.__name__}: a box has 4 numbers, got shape {array.shape}")
        out = function(array.reshape(-1, 4), *args, **kwargs)
        return tuple(out[0].tolist()) if single else out

    return convert


@_of_boxes
def bbox_xywh_to_xyxy(xywh: Any) -> Any:
    """From (left, top, width, height) to (left, top, right, bottom), the last pixels inside.

    Parameters
    ----------
    xywh : list, tuple or numpy.ndarray
        One box, or boxes ``(N, 4)``.

    Examples
    --------
    >>> bbox_xywh_to_xyxy((1, 2, 10, 5))
    (1, 2, 10, 6)
    """
    return np.hstack([xywh[:, :2], xywh[:, :2] + np.maximum(xywh[:, 2:] - 1, 0)])


@_of_boxes
def bbox_xyxy_to_xywh(xyxy: Any) -> Any:
    """From (left, top, right, bottom), the last pixels inside, to (left, top, width, height).

    Parameters
    ----------
    xyxy : list, tuple or numpy.ndarray
        One box, or boxes ``(N, 4)``.

    Examples
    --------
    >>> bbox_xyxy_to_xywh((1, 2, 10, 6))
    (1, 2, 10, 5)
    """
    return np.hstack([xyxy[:, :2], xyxy[:, 2:] - xyxy[:, :2] + 1])


@_of_boxes
def bbox_clip_xyxy(xyxy: Any, width: float, height: float) -> Any:
    """Cut boxes to the pixels of an image.

    Parameters
    ----------
    xyxy : list, tuple or numpy.ndarray
        One box, or boxes ``(N, 4)``.
    width, height : float
        Of the image: the last pixels are ``width - 1`` and ``height - 1``.

    Examples
    --------
    >>> bbox_clip_xyxy((-3, 2, 10, 60), 8, 20)
    (0, 2, 7, 19)
    """
    return np.clip(xyxy, 0, np.array([width - 1, height - 1] * 2))


def _overlaps(rows: list[list[float]], window: tuple[int, int, int, int]) -> Iterator[float]:
    """`bbox_iou` of boxes, as lists, with a window: for a few boxes NumPy's calls would take longest."""
    left, top, width, height = window
    for x0, y0, x1, y1 in rows:
        across, down = min(x1, left + width) - max(x0, left), min(y1, top + height) - max(y0, top)
        both = across * down if across > 0 and down > 0 else 0.0
        either = max(x1 - x0, 0) * max(y1 - y0, 0) + width * height - both
        yield both / either


def bbox_random_crop_with_constraints(
    bbox: np.ndarray[Any, Any],
    size: tuple[int, int],
    min_scale: float = 0.3,
    max_scale: float = 1,
    max_aspect_ratio: float = 2,
    constraints: Iterable[tuple[float | None, float | None]] | None = None,
    max_trial: int = 50,
) -> tuple[np.ndarray[Any, Any], tuple[int, int, int, int]]:
    """A window by chance that meets boxes far enough (Liu et al., SSD: Single Shot MultiBox Detector, 2016).

    Parameters
    ----------
    bbox : numpy.ndarray
        ``(N, 4 or more)``.
    size : (width, height)
        Of the image.
    min_scale, max_scale : float, default 0.3 and 1
        The root of the window's share of the image.
    max_aspect_ratio : float, default 2
        How much its proportions differ from the image's.
    constraints : iterable of (float or None, float or None), optional
        Least and most overlap (`bbox_iou`) of every box with the window, None for no limit. A window is sought for
        each, and one of those that are found is taken, or the whole image.
    max_trial : int, default 50
        Windows that are tried for each.

    Returns
    -------
    numpy.ndarray
        ``(M, 4 or more)``: the boxes whose centre lies in the window.
    (left, top, width, height)
        The window, which holds a box if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> boxes, (left, top, width, height) = bbox_random_crop_with_constraints(np.array([[20, 20, 40, 40]]), (100, 80))
    >>> len(boxes), 0 <= left <= left + width <= 100
    (1, True)
    """
    _check_bbox_shape(bbox)
    width, height = _pair(size, "bbox_random_crop_with_constraints: size")

    def window() -> tuple[int, int, int, int]:
        scale = random.uniform(min_scale, max_scale)
        ratio = math.sqrt(random.uniform(max(1 / max_aspect_ratio, scale**2), min(max_aspect_ratio, 1 / scale**2)))
        # Rounding must leave at least a pixel and no more than there are.
        w, h = (
            min(max(int(length * share), 1), length)
            for length, share in ((width, scale * ratio), (height, scale / ratio))
        )
        return random.randint(0, width - w), random.randint(0, height - h), w, h

    if not len(bbox):
        return bbox.copy(), window()
    found, rows = [(0, 0, width, height)], bbox[:, :4].tolist()
    for least, most in _CONSTRAINTS if constraints is None else constraints:
        low, high = -math.inf if least is None else least, math.inf if most is None else most
        for _ in range(max_trial):
            crop = window()
            if all(low <= share <= high for share in _overlaps(rows, crop)):
                found.append(crop)
                break
    random.shuffle(found)
    for crop in found:
        boxes = bbox_crop(bbox, crop, allow_outside_center=False)
        if len(boxes):
            return boxes, crop
    return bbox.copy(), (0, 0, width, height)
