"""Fourier transforms of the last axis, and count sketches, which such transforms multiply."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Int
from ...stypes import add_rows
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.rules import size_of, within_limits

__all__: list[str] = []


_SIZE = {"compute_size": Int(128, ge=1)}


def _rows(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) not in (2, 4):
        raise ValueError(f"{name} must be (n, d) or (n1, n2, n3, d), got {shape}")


def _interleaved(xp: Any, z: Any, dtype: Any) -> Any:
    """Complex numbers as pairs along the last axis."""
    z = xp.ascontiguousarray(z)
    return z.view(np.float64 if z.dtype.itemsize == 16 else np.float32).astype(dtype)


def _complex(xp: Any, x: Any) -> Any:
    """Pairs along the last axis as complex numbers."""
    x = xp.ascontiguousarray(wide(x))
    return x.view("complex128" if x.dtype.itemsize == 8 else "complex64")


def _floats(p: Params, ins: Any, outs: Any) -> Any:
    t = ins[0] if ins[0] is not None else outs[0]
    if t is not None and t.kind != "f":
        raise TypeError(f"data must be float16, float32 or float64, got {t.name}")
    return [t] * len(ins), [t] * len(outs)


# The transform of real numbers and the real part of the one back are each other's transpose, so each is the other's
# gradient.
@op("_contrib_fft", inputs="data", labels="outputs", **_SIZE, grad=lambda F, dy: F._contrib_ifft(dy))
@silent
def fft(k: Call, p: Params, data: Array) -> Array:
    """The discrete Fourier transform of real numbers along the last axis.

    Parameters
    ----------
    data : array, (n, d) or (n1, n2, n3, d)
        Floats.
    compute_size : int
        How many rows MXNet transforms at a time; has no effect.

    Returns
    -------
    array, (..., 2 * d)
        Real and imaginary parts in turn.

    Notes
    -----
    Behaviour matched: the documentation of MXNet 1.9.1 ``fft``, which runs on GPUs only.
    """
    xp = k.xp
    if not data.size:
        return xp.zeros((*data.shape[:-1], 2 * data.shape[-1]), data.dtype)
    return _interleaved(xp, xp.fft.fft(wide(data)), data.dtype)


@fft.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    _rows("data", ins[0])
    return [(*ins[0][:-1], 2 * ins[0][-1])]


@op("_contrib_ifft", inputs="data", labels="outputs", **_SIZE, grad=lambda F, dy: F._contrib_fft(dy))
@silent
def ifft(k: Call, p: Params, data: Array) -> Array:
    """The real part of the inverse discrete Fourier transform along the last axis, not divided by the length.

    Parameters
    ----------
    data : array, (n, 2 * d) or (n1, n2, n3, 2 * d)
        Floats, real and imaginary parts in turn.
    compute_size : int
        How many rows MXNet transforms at a time; has no effect.

    Returns
    -------
    array, (..., d)

    Notes
    -----
    Behaviour matched: the documentation of MXNet 1.9.1 ``ifft``, which runs on GPUs only, by cuFFT; that does not
    divide by the length, so ``ifft(fft(x))`` is ``d * x``.
    """
    xp = k.xp
    d = data.shape[-1] // 2
    if not data.size:
        return xp.zeros((*data.shape[:-1], d), data.dtype)
    # The real part of the unscaled inverse is that of the forward transform of the conjugate.
    return _interleaved(xp, xp.fft.fft(_complex(xp, data).conj()), data.dtype)[..., ::2].copy()


@ifft.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    _rows("data", ins[0])
    if ins[0][-1] % 2:
        raise ValueError(f"data {ins[0]} must have an even last axis: real and imaginary parts in turn")
    return [(*ins[0][:-1], ins[0][-1] // 2)]


SKETCH_PARAMS = {"out_dim": Int(ge=1), "processing_batch_size": Int(32, ge=1)}


def _hashes(p: Params, d: int, h: Any, s: Any) -> None:
    for name, shape in (("h", h), ("s", s)):
        if size_of(shape) != d or shape[-1] != d:
            raise ValueError(f"{name} must be (1, {d}) or ({d},), a number for each column of data, got {shape}")


def sketch_columns(k: Call, p: Params, h: Any) -> Any:
    """The columns as indices; out of range they are an error, or clipped where nobody may look."""
    at = h.reshape(-1).astype(np.int64)
    if not k.device.async_:
        within_limits("h", at, 0, p.out_dim - 1, "a column", IndexError)
    return k.xp.clip(at, 0, p.out_dim - 1)


@op(
    "_contrib_count_sketch",
    inputs="data h s",
    labels="outputs",
    **SKETCH_PARAMS,
    grad=lambda F, p, dy, h, s: (F._backward_count_sketch(dy, h, s, out_dim=p.out_dim), None, None),
)
def count_sketch(k: Call, p: Params, data: Array, h: Array, s: Array) -> Array:
    """Rows projected to fewer columns: ``out[:, h[i]] += s[i] * data[:, i]``.

    Parameters
    ----------
    data : array, (n, d)
    h : array, (1, d) or (d,)
        The column that each column goes to, from 0 to ``out_dim - 1``.
    s : array, (1, d) or (d,)
        1 or -1 for each column.
    out_dim : int
        Number of columns of the result.
    processing_batch_size : int
        How many rows MXNet works on at a time; has no effect.

    Returns
    -------
    array, (n, out_dim)

    Notes
    -----
    Behaviour matched: the documentation of MXNet 1.9.1 ``count_sketch``, which runs on GPUs only. Source: Pham and
    Pagh, "Fast and scalable polynomial kernels via explicit feature maps", 2013.
    """
    xp = k.xp
    at = sketch_columns(k, p, h)
    columns = (wide(data) * wide(s).reshape(1, -1)).T
    return add_rows(xp, (p.out_dim, data.shape[0]), at, columns).T


@count_sketch.shape
def _(p: Params, ins: list[Any]) -> list[Any]:
    if len(ins[0]) != 2:
        raise ValueError(f"data must be (n, d), got {ins[0]}")
    _hashes(p, ins[0][1], *ins[1:])
    return [(ins[0][0], p.out_dim)]


for _op in (fft, ifft):
    _op.dtype(_floats)
    _op.cost(lambda p, ins, outs: 16 * size_of(ins[0]))
for _op in (count_sketch,):
    # The hashes may come in a dtype of their own.
    _op.dtype(lambda p, ins, outs: ([ins[0] or outs[0], ins[1] or ins[0], ins[2] or ins[0]], [ins[0] or outs[0]]))
