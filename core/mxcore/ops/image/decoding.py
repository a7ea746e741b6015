"""Images by OpenCV, as ``mx.image`` uses it: decoding, resizing, borders."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Float, Floats, Int
from ...typing import Array, Call
from . import opencv
from .operators import resizable, resized

__all__: list[str] = []


_U1 = np.dtype("uint8")


def _image(shape: tuple[int, ...]) -> None:
    if len(shape) != 3:
        raise ValueError(f"src must be an image (height, width, channels), got {shape}")


@op("_cvimdecode", inputs="buf", flag=Int(1, ge=0), to_rgb=Bool(True), grad=None)
def imdecode(k: Call, p: Params, buf: Array) -> Array:
    """Decode an image file.

    Parameters
    ----------
    buf : array of uint8
        The bytes of the file: JPEG, PNG or whatever else OpenCV reads.
    flag : int
        1 colour, 0 grey; others are OpenCV's.
    to_rgb : bool
        Colours in the order red, green, blue; else blue first.

    Returns
    -------
    array of uint8, (height, width, channels)

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_cvimdecode``. OpenCV works on the host: on other devices the bytes are copied
    there, and the image back.
    """
    return k.xp.asarray(opencv.decode(k.device.to_host(buf), p.flag, "buf", p.to_rgb))


imdecode.shape(lambda p, ins: [None])


@imdecode.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if ins[0] is not None and ins[0] != _U1:
        raise TypeError(f"buf must be uint8, the bytes of a file, got {ins[0].name}")
    return [_U1], [_U1]


@op("_cvimresize", inputs="src", w=Int(ge=1), h=Int(ge=1), interp=Int(1, ge=0, le=4), grad=None)
def imresize(k: Call, p: Params, src: Array) -> Array:
    """Resize an image.

    Parameters
    ----------
    src : array, (height, width, channels)
        uint8, int16, uint16 or floats.
    w, h : int
        The new width and height.
    interp : int
        0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_cvimresize``.
    """
    return resized(k.xp, src, (p.h, p.w), p.interp)


@imresize.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    _image(ins[0])
    if 0 in ins[0]:
        raise ValueError(f"src {ins[0]} has no pixels")
    return [(p.h, p.w, ins[0][2])]


imresize.dtype(resizable("src"))

_MODES = ("constant", "edge", "symmetric", "wrap", "reflect")
_MARGINS = {n: Int(ge=0) for n in ("top", "bot", "left", "right")}


@op(
    "_cvcopyMakeBorder",
    inputs="src",
    params={**_MARGINS, "type": Int(0, ge=0, le=4), "value": Float(0.0), "values": Floats(())},
    grad=None,
)
def copy_make_border(k: Call, p: Params, src: Array) -> Array:
    """Add a border to an image.

    Parameters
    ----------
    src : array, (height, width, channels)
    top, bot, left, right : int
        Widths of the margins.
    type : int
        0 constant, 1 the nearest pixel, 2 mirrored, 3 repeated, 4 mirrored without its edge.
    value : float
        Fill of a constant border.
    values : tuple of float
        The same, a number for each channel; as in MXNet, only the first four count.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_cvcopyMakeBorder``.
    """
    xp = k.xp
    margins = ((p.top, p.bot), (p.left, p.right), (0, 0))
    if p.type:
        return xp.pad(src, margins, mode=_MODES[p.type])
    h, w, channels = src.shape
    fill = (*p.values[:4], *(0.0,) * channels)[:channels] if p.values else (p.value,) * channels
    out = xp.empty((h + p.top + p.bot, w + p.left + p.right, channels), src.dtype)
    out[p.top : p.top + h, p.left : p.left + w] = src
    colour = xp.asarray(np.asarray(fill).astype(src.dtype))
    for margin in (
        out[: p.top],
        out[p.top + h :],
        out[p.top : p.top + h, : p.left],
        out[p.top : p.top + h, p.left + w :],
    ):
        margin[...] = colour
    return out


@copy_make_border.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    _image(ins[0])
    h, w, channels = ins[0]
    if p.type and (not h or not w):
        raise ValueError(f"src {ins[0]} has no pixels to make a border of")
    return [(h + p.top + p.bot, w + p.left + p.right, channels)]
