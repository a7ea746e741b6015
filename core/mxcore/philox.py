"""The random numbers that keys stand for.

Philox4x64-10 blocks, the same bits on every device, turned into distributions by array functions. So a CPU and a GPU
agree.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ._core.device import Device
from ._importing import load

__all__ = ["LaterKey", "Rng"]


@functools.cache
def _philox() -> Any:
    return load("numpy.random").Philox  # NumPy imports it when it is asked for


class LaterKey:
    """Stands for a key while calls are recorded (:meth:`mxcore.plugin.Device.capture`): each replay has another.

    It has no numbers and no hash, so that what needs the key itself fails, and is not recorded.

    Attributes
    ----------
    number : int
        Of the key among those that a replay is given.
    """

    __slots__ = ("number",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, number: int) -> None:
        self.number = number


class Rng:
    """The random numbers of one key. Each method draws the next numbers of the key's stream.

    A device overrides :meth:`bits` with its own Philox; the distributions follow from the bits.

    Parameters
    ----------
    device : Device
        Where the numbers go.
    key : (int, int, int), or LaterKey
        Seed, stream and counter; or what stands for them where a device records, which must override :meth:`bits`.
    index : int
        Index of the device.
    """

    def __init__(self, device: Device, key: Any, index: int) -> None:
        self.device, self.key, self.index = device, key, index
        self.drawn = 0
        self._host: Any = None

    def bits(self, n: int) -> Any:
        """`n` uint64 words: Philox4x64-10 with key (seed, stream) and counter (0, 0, counter, 0) onwards."""
        return self.device.from_host(self.host_bits(n), self.index)

    def host_bits(self, n: int) -> Any:
        """The same words in the host's memory, in an array that nobody else holds."""
        if self._host is None:
            self._host = _philox()(
                key=np.array(self.key[:2], np.uint64), counter=np.array([0, 0, self.key[2], 0], np.uint64)
            )
        return self._host.random_raw(n)

    @property
    def at_host(self) -> bool:
        """Whether words stay in the host's memory: the device has no numbers of 64 bits for them."""
        has = self.device.dtypes
        return has is not None and not {np.dtype(np.uint64), np.dtype(np.uint32)} <= {*has}

    def made(self, n: int, fn: Callable[[Any], Any]) -> Any:
        """What a function makes of `n` words, where words can be."""
        return self.device.from_host(fn(self.host_bits(n)), self.index) if self.at_host else fn(self.bits(n))

    def uniform(self, shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
        """Uniform on [0, 1), of `dtype` float32 (24 random bits) or float64 (53)."""
        n = int(np.prod(shape, dtype=np.int64))
        if np.dtype(dtype) == np.float64:
            return self.made(n, lambda words: ((words >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape))

        def narrow(words: Any) -> Any:
            words = words.view(np.uint32)[:n] >> np.uint32(8)  # the lower half of a word first
            return (words.astype(np.float32) * np.float32(2.0**-24)).astype(dtype, copy=False).reshape(shape)

        return self.made((n + 1) // 2, narrow)

    def normal(self, shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
        """Standard normal, by the Box–Muller transform."""
        xp = self.device.xp
        n = int(np.prod(shape, dtype=np.int64))
        half = (n + 1) // 2
        wide = np.float64 if np.dtype(dtype) == np.float64 else np.float32
        u = self.uniform((2, half), wide)
        r = xp.sqrt(-2 * xp.log1p(-u[0]))
        a = u[1] * wide(2 * np.pi)
        return xp.concatenate([r * xp.cos(a), r * xp.sin(a)])[:n].reshape(shape).astype(dtype)


Device.numbers = Rng
