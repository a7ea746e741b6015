"""Types and ranges: Cast, ToTensor, Normalize."""

from __future__ import annotations

import numpy as np

from ..... import autograd
from ..... import ndarray as nd
from .....base import error
from .base import ImageHybridBlock

__all__ = ["Cast", "Normalize", "ToTensor"]


class _Differentiable(ImageHybridBlock):
    """A transform that is also used inside networks: under ``autograd.record`` it runs as operators."""

    def _transform(self, x):
        return self.apply_operators(x) if autograd.is_recording() else super()._transform(x)

    def apply_operators(self, x):
        """Transform an NDArray by operators that have gradients."""
        raise error(NotImplementedError, f"{type(self).__name__} does not say which operators it is made of")


class Cast(_Differentiable):
    """Cast to a dtype.

    Parameters
    ----------
    dtype : str, default 'float32'
    """

    def __init__(self, dtype="float32"):
        super().__init__()
        self._dtype = dtype

    def apply_numpy(self, image):
        return image.astype(self._dtype)

    def apply_operators(self, x):
        return x.astype(self._dtype)

    def hybrid_forward(self, F, x):
        return F.cast(x, dtype=self._dtype)


class ToTensor(_Differentiable):
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

    def __init__(self):
        super().__init__()

    def apply_numpy(self, image):
        self._check_image(image, batch=True)
        out = np.empty(image.shape[:-3] + (image.shape[-1],) + image.shape[-3:-1], "float32")
        return np.multiply(np.moveaxis(image, -1, -3), np.float32(1 / 255), out=out, casting="unsafe")

    def apply_operators(self, x):
        axes = (2, 0, 1) if len(x.shape) == 3 else (0, 3, 1, 2)
        return x.astype("float32").transpose(axes) / 255

    def hybrid_forward(self, F, x):
        return F.image.to_tensor(x)


class Normalize(_Differentiable):
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

    def __init__(self, mean=0.0, std=1.0):
        super().__init__()
        self._mean = mean
        self._std = std

    def _both(self, shape):
        if len(shape) not in (3, 4) or shape[-3] not in (1, 3):
            raise error(
                ValueError,
                "Normalize takes a tensor (channels, height, width) of 1 or 3 channels, got an array of "
                f"shape {shape}",
            )
        return (np.asarray(v, "float32").reshape(-1, 1, 1) for v in (self._mean, self._std))

    def apply_numpy(self, image):
        mean, std = self._both(image.shape)
        return (image - mean) / std

    def apply_operators(self, x):
        mean, std = (
            nd.array(np.broadcast_to(v, (x.shape[-3], 1, 1)), ctx=x.context) for v in self._both(x.shape)
        )
        if len(x.shape) == 4:
            mean, std = mean.expand_dims(0), std.expand_dims(0)
        return nd.broadcast_div(nd.broadcast_sub(x, mean), std)

    def hybrid_forward(self, F, x):
        return F.image.normalize(x, self._mean, self._std)
