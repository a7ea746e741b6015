"""Random changes of colour."""

from __future__ import annotations

from typing import Any

from .....base import error, finite
from .base import ImageHybridBlock

__all__ = ["RandomBrightness", "RandomColorJitter", "RandomContrast", "RandomHue", "RandomLighting", "RandomSaturation"]


class _RandomFactor(ImageHybridBlock):
    """A change by a random factor between ``1 - amount`` and ``1 + amount``."""

    def __init__(self, amount: float) -> None:
        super().__init__()
        if finite(amount, f"{type(self).__name__}: the amount") < 0:
            raise error(ValueError, f"{type(self).__name__}: the amount must be 0 or more, got {amount}")
        self._range = (max(0, 1 - amount), 1 + amount)


class RandomBrightness(_RandomFactor):
    """Make an image brighter or darker.

    Parameters
    ----------
    brightness : float
        Colours are multiplied by a number between ``1 - brightness`` (0 at least) and ``1 + brightness``.
    """

    def __init__(self, brightness: float) -> None:
        super().__init__(brightness)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_brightness(x, *self._range)


class RandomContrast(_RandomFactor):
    """Raise or lower the contrast of an image.

    Parameters
    ----------
    contrast : float
        Differences from the mean are multiplied by a number between ``1 - contrast`` (0 at least) and
        ``1 + contrast``.
    """

    def __init__(self, contrast: float) -> None:
        super().__init__(contrast)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_contrast(x, *self._range)


class RandomSaturation(_RandomFactor):
    """Make the colours of an image stronger or paler.

    Parameters
    ----------
    saturation : float
        Differences from grey are multiplied by a number between ``1 - saturation`` (0 at least) and
        ``1 + saturation``.

    Notes
    -----
    MXNet 1.9.1 takes 0.114 times the blue channel for the grey of a pixel; here it is the pixel's luminance.
    """

    def __init__(self, saturation: float) -> None:
        super().__init__(saturation)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_saturation(x, *self._range)


class RandomHue(_RandomFactor):
    """Turn the colours of an image about the colour wheel.

    Parameters
    ----------
    hue : float
        Largest turn in either direction, in whole turns.
    """

    def __init__(self, hue: float) -> None:
        super().__init__(hue)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_hue(x, *self._range)


class RandomColorJitter(ImageHybridBlock):
    """Change brightness, contrast, saturation and hue, in random order.

    Parameters
    ----------
    brightness, contrast, saturation, hue : float, default 0
        As for `RandomBrightness`, `RandomContrast`, `RandomSaturation` and `RandomHue`.
    """

    def __init__(self, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0) -> None:
        super().__init__()
        self._args = (brightness, contrast, saturation, hue)
        for amount in self._args:
            finite(amount, "RandomColorJitter: an amount")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_color_jitter(x, *self._args)


class RandomLighting(ImageHybridBlock):
    """Add noise along the principal components of colours (Krizhevsky et al., 2012).

    Parameters
    ----------
    alpha : float
        Standard deviation of the noise.
    """

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self._alpha = finite(alpha, "RandomLighting: alpha")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_lighting(x, self._alpha)
