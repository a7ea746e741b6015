"""Turning images about their centre."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..base import error
from ..gluon.data.vision import images
from ..ndarray import NDArray

__all__ = ["imrotate", "random_rotate"]


def imrotate(src: NDArray, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False) -> NDArray:
    """Turn images about their centre, bilinearly, with zeros around them.

    Parameters
    ----------
    src : NDArray of float32
        An image ``(channels, height, width)``, or images ``(images, channels, height, width)``.
    rotation_degrees : float or NDArray
        Counter-clockwise; for several images, a number for each is possible.
    zoom_in : bool
        Enlarge until no corner is empty.
    zoom_out : bool
        Shrink until nothing is cut off.

    Returns
    -------
    NDArray of float32
        Of the shape of `src`.

    Raises
    ------
    MXNetError
        (also TypeError or ValueError) for other types, shapes and numbers of angles.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.image.imrotate``.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.image.imrotate(mx.nd.array([[[1, 2], [3, 4]]]), 90).asnumpy().round(3).tolist()
    [[[2.0, 4.0], [1.0, 3.0]]]
    """
    _check(src, "imrotate")
    if zoom_in and zoom_out:
        raise error(ValueError, "imrotate: zoom_in and zoom_out exclude one another")
    one = isinstance(rotation_degrees, numbers.Number)
    if src.ndim == 3 and not one:
        raise error(TypeError, f"imrotate: one image is turned by one number, got {type(rotation_degrees).__name__}")
    if one:
        turned = images.rotate(src.asnumpy(), rotation_degrees, zoom_in, zoom_out)
    else:
        angles = (
            rotation_degrees.asnumpy()
            if isinstance(rotation_degrees, nd.NDArray)
            else np.asarray(rotation_degrees, "float32")
        )
        if angles.shape != src.shape[:1]:
            raise error(ValueError, f"imrotate: {src.shape[0]} images need as many angles, got {angles.shape}")
        turned = np.stack([images.rotate(x, float(a), zoom_in, zoom_out) for x, a in zip(src.asnumpy(), angles)])
    return nd.array(turned, ctx=src.context)


def random_rotate(
    src: NDArray, angle_limits: tuple[float, float], zoom_in: bool = False, zoom_out: bool = False
) -> NDArray:
    """Turn images by angles taken by chance, each by its own; see `imrotate`.

    Parameters
    ----------
    src : NDArray of float32
        An image ``(channels, height, width)``, or images ``(images, channels, height, width)``.
    angle_limits : (float, float)
        The least and the largest angle, in degrees.
    zoom_in, zoom_out : bool
        See `imrotate`.

    Notes
    -----
    Chance is ``numpy.random``, as in MXNet: seed that.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.image.random_rotate(mx.nd.ones((2, 3, 8, 8)), (-10, 10), zoom_in=True).shape
    (2, 3, 8, 8)
    """
    _check(src, "random_rotate")
    try:
        least, most = angle_limits
    except (TypeError, ValueError):
        raise error(TypeError, f"random_rotate: angle_limits must be two numbers, got {angle_limits!r}") from None
    return imrotate(
        src,
        float(np.random.uniform(least, most)) if src.ndim == 3 else nd.array(np.random.uniform(least, most, len(src))),
        zoom_in,
        zoom_out,
    )


def _check(src: NDArray, function: str) -> None:
    if not isinstance(src, nd.NDArray) or src.dtype != np.float32:
        raise error(
            TypeError,
            f"{function}: src must be float32 images in an NDArray, got {getattr(src, 'dtype', type(src).__name__)}",
        )
    if src.ndim not in (3, 4):
        raise error(
            ValueError,
            f"{function}: src must be (channels, height, width) or (images, channels, height, width), got {src.shape}",
        )
