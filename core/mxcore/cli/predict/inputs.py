"""What a model is run on: images, arrays, records, prepared as it was trained with."""

from __future__ import annotations

import io as std_io
import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import io
from ..._io_files import read_whole
from ..._npy import read_header
from ...base import error
from ...gluon.data.vision import images
from ...urls import archived, ending

if TYPE_CHECKING:
    from ...typing import Array
    from ..model import Model

__all__ = ["Prepare", "records", "samples"]


class Prepare:
    """Shape and range of the samples that a model gets.

    Parameters
    ----------
    model : Model
    shape : tuple of int or None
        Of one sample, or of a batch of images.
    mean, std : tuple of float
        One number, or one a channel.
    scale : float

    Raises
    ------
    MXNetError
        (also ValueError) if mean or std have another number of channels than the shape.
    """

    def __init__(
        self, model: Model, shape: tuple[int, ...] | None, mean: tuple[float, ...], std: tuple[float, ...], scale: float
    ) -> None:
        self.shape = shape[-3:] if shape is not None and len(shape) == 4 else shape
        self.mean, self.std, self.scale = mean, std, scale
        self.channels = self.shape[0] if self.shape is not None and len(self.shape) == 3 else model.channels()
        for what, values in (("--mean", mean), ("--std", std)):
            if len(values) not in (1, self.channels or len(values)):
                raise error(ValueError, f"{what} has {len(values)} numbers, the input {self.channels} channel(s)")
            if what == "--std" and 0 in values:
                raise error(ValueError, "--std must not be 0")

    def image(self, path: str) -> Array:
        """Read an image: an array (1, channels, height, width)."""
        if self.shape is not None and len(self.shape) != 3:
            raise error(ValueError, f"{path}: an image needs --shape CHANNELS,HEIGHT,WIDTH, got {self.shape}")
        if self.channels not in (1, 3, None):
            raise error(
                ValueError,
                f"{path}: the network takes {self.channels} channels, an image has 1 or 3; give an .npy file",
            )
        pixels = images.read(path, 0 if self.channels == 1 else 1)
        if self.shape is not None:
            pixels = _fitted(pixels, *self.shape[1:])
        return self.normal(np.moveaxis(pixels, -1, 0)[None].astype("float32"))

    def array(self, path: str) -> Array:
        """Read an array of one sample or a batch of them: an array with the batch first."""
        x = npy(path)
        if self.shape is not None:
            if x.shape != self.shape and x.shape[1:] != self.shape:
                raise error(
                    ValueError, f"{path} has shape {x.shape}; --shape {self.shape} needs that, or a batch of it"
                )
            x = x if x.shape[1:] == self.shape else x[None]
        elif x.ndim == 3 and x.shape[0] == self.channels:
            x = x[None]
        with np.errstate(over="ignore", invalid="ignore"):  # infinities are numbers, signalling NaNs stay NaNs
            return self.normal(x.astype("float32", copy=False))

    def normal(self, x: Array) -> Array:
        """``(x - mean) / std * scale`` of a batch, by channel."""
        if self.mean == (0.0,) and self.std == (1.0,) and self.scale == 1:
            return x
        if x.ndim < 2 or any(len(v) not in (1, x.shape[1]) for v in (self.mean, self.std)):
            raise error(
                ValueError,
                f"--mean and --std have {max(len(self.mean), len(self.std))} numbers, the input is {x.shape}",
            )
        places = (-1, *(1,) * (x.ndim - 2))
        mean, std = (np.asarray(v, "float32").reshape(places) for v in (self.mean, self.std))
        return (x - mean) / std * np.float32(self.scale)


def npy(path: str) -> Array:
    """The array of an .npy file: numbers, with a dimension at least.

    Raises
    ------
    MXNetError
        (also ValueError) naming the file, if it is none, or holds more or less than its header tells.
    """
    data = read_whole(path, what=".npy file", begins=lambda first: first.startswith(b"\x93NUMPY"))
    file = std_io.BytesIO(data)
    try:
        shape, fortran, dtype = read_header(file)
    except ValueError as e:
        raise error(ValueError, f"{path} is no .npy file: {e}") from None
    if dtype.kind not in "fiub" or not shape:
        raise error(ValueError, f"{path} holds {dtype} of shape {shape}, not an array of numbers")
    at = file.tell()
    if (
        not all(type(d) is int and 0 <= d < 1 << 59 for d in shape)
        or len(data) - at != math.prod(shape) * dtype.itemsize
    ):
        raise error(
            ValueError,
            f"{path}: its header tells of shape {shape} and {dtype}, "
            f"and {len(data) - at} bytes follow; it is cut or damaged",
        )
    try:
        return np.frombuffer(data, dtype, offset=at).reshape(shape, order="F" if fortran else "C")
    except ValueError as e:
        raise error(ValueError, f"{path}: its header tells of a shape that cannot be held: {e}") from None


def _fitted(pixels: Array, height: int, width: int) -> Array:
    """An image scaled until it just covers a window, and cut to it at the centre."""
    h, w = pixels.shape[:2]
    factor = max(height / h, width / w)
    if factor != 1:
        pixels = images.resize(
            pixels, max(width, round(w * factor)), max(height, round(h * factor)), 2 if factor > 1 else 3
        )
    h, w = pixels.shape[:2]
    return images.crop(pixels, (w - width) // 2, (h - height) // 2, width, height)


def samples(path: str, prepare: Prepare) -> Iterator[tuple[str, Array]]:
    """The samples of a file, one by one: (what to call it, array with a batch of one)."""
    name = os.path.basename(path.partition("::")[0] if archived(path) else path)
    if ending(path) == ".npy":
        batch = prepare.array(path)
        for i in range(len(batch)):
            yield (name if len(batch) == 1 else f"{name}[{i}]"), batch[i : i + 1]
    else:
        yield name, prepare.image(path)


def records(path: str, prepare: Prepare, batch_size: int) -> Any:
    """The batches of a record file.

    Returns
    -------
    ImageRecordIter
    """
    if prepare.shape is None or len(prepare.shape) != 3:
        raise error(ValueError, f"{path}: records need --shape CHANNELS,HEIGHT,WIDTH")
    by_channel: dict[str, float] = {}
    for what, values in (("mean", prepare.mean), ("std", prepare.std)):
        values = values * prepare.shape[0] if len(values) == 1 else values
        by_channel.update((f"{what}_{c}", v) for c, v in zip("rgba", values))
    return io.ImageRecordIter(
        path_imgrec=path,
        data_shape=prepare.shape,
        batch_size=batch_size,
        resize=max(prepare.shape[1:]),
        scale=prepare.scale,
        round_batch=False,
        preprocess_threads=2,
        verbose=False,
        **by_channel,
    )
