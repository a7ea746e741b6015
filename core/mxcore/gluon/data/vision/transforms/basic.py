"""Types and ranges: Cast, ToTensor, Normalize."""

from __future__ import annotations

from typing import Any

from .....base import error
from ....block import HybridBlock
from .base import ImageHybridBlock

__all__ = ["Cast", "Normalize", "ToTensor"]


class Cast(HybridBlock):
    """Cast to a dtype.

    Parameters
    ----------
    dtype : str, default 'float32'
    """

    def __init__(self, dtype: Any = "float32") -> None:
        super().__init__()
        self._dtype = dtype

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.cast(x, dtype=self._dtype)


class ToTensor(ImageHybridBlock):
    """An image of values from 0 to 255 to a float32 tensor of values from 0 to 1, channels first.

    ``(height, width, channels)`` becomes ``(channels, height, width)``. Batches, with one axis more in front,
    are taken too.

    Examples
    --------
    >>> import mxcore as mx
    >>> x = mx.nd.array([[[0, 127.5, 255]]], dtype='float32')
    >>> mx.gluon.data.vision.transforms.ToTensor()(x).asnumpy().ravel().tolist()
    [0.0, 0.5, 1.0]
    """

    _batches = True

    def __init__(self) -> None:
        super().__init__()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.to_tensor(x)


class Normalize(ImageHybridBlock):
    """``(x - mean) / std``, a mean and a standard deviation a channel.

    Takes tensors ``(channels, height, width)`` or batches of them, as `ToTensor` makes them.

    Parameters
    ----------
    mean, std : float or tuple of float, default 0.0 and 1.0

    Examples
    --------
    >>> import mxcore as mx
    >>> x = mx.nd.ones((3, 1, 1))
    >>> mx.gluon.data.vision.transforms.Normalize(0.5, (1, 0.5, 0.25))(x).asnumpy().ravel().tolist()
    [0.5, 1.0, 2.0]
    """

    def __init__(self, mean: float | tuple[float, ...] = 0.0, std: float | tuple[float, ...] = 1.0) -> None:
        super().__init__()
        self._mean = mean
        self._std = std

    def _check_image(self, image: Any) -> None:
        shape = image.shape
        if len(shape) not in (3, 4) or shape[-3] not in (1, 3):
            raise error(
                ValueError,
                f"Normalize takes a tensor (channels, height, width) of 1 or 3 channels, got an array of shape {shape}",
            )

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.normalize(x, self._mean, self._std)
