"""Between float32 and whole numbers of eight bits, and from int32 to eight bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Enum
from ...typing import Array, Call
from ..common.bodies import silent
from .ranges import (
    CALIBRATED,
    EIGHT_BITS,
    FLOAT32,
    INT8,
    INT32,
    LEVELS,
    UINT8,
    is_calibrated,
    larger,
    nearest,
    output_dtype,
    ranges_of,
    scale_of,
    takes,
    with_ranges,
)

__all__: list[str] = []


_OUTPUTS = "output0 output1 output2"


def _quantize_plan(xp: Any, p: Params, low: Any, high: Any) -> list[Any]:
    """What the data is multiplied by, and the ends of the range of the result."""
    size = larger(xp, low, high)
    if p.out_type == "int8":
        return [scale_of(xp, 127, size), -size, size]
    return [scale_of(xp, 255, size), low.copy(), high.copy()]


@op(
    "_contrib_quantize",
    inputs="data min_range max_range",
    outputs=_OUTPUTS,
    out_type=Enum("int8 uint8", "uint8"),
    grad=None,
    helpers={"plan": _quantize_plan},
)
@silent
def quantize(k: Call, p: Params, data: Array, min_range: Array, max_range: Array) -> Any:
    """Quantise by a given range: to the nearest of the numbers -127 to 127 for ``int8``, 0 to 255 for ``uint8``.

    Parameters
    ----------
    data : array
        float32, any shape. What is beyond the range becomes the last number.
    min_range, max_range : array
        float32, shape (1,). Only the larger magnitude counts.
    out_type : {'int8', 'uint8'}

    Returns
    -------
    list of arrays
        The whole numbers, and their range: for ``int8`` symmetric around zero, for ``uint8`` as it was given.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_quantize``. An empty range gives zeros, where MXNet divides by zero.
    """
    scale, *ends = _quantize_plan(k.xp, p, min_range, max_range)
    return [nearest(k.xp, data * scale, np.dtype(p.out_type)), *ends]


quantize.shape(with_ranges(1))
quantize.dtype(takes([[FLOAT32]], lambda p, ins: [np.dtype(p.out_type), FLOAT32, FLOAT32]))


def _least_and_greatest(xp: Any, p: Params, data: Any) -> Any:
    """The range that was calibrated, or the one that the data has."""
    if is_calibrated(p):
        return ranges_of(xp, p.min_calib_range, p.max_calib_range)
    if not data.size:
        return ranges_of(xp, 0.0, 0.0)
    return [data.min().reshape(1), data.max().reshape(1)]


def _own_plan(xp: Any, p: Params, data: Any) -> list[Any]:
    """What the data is multiplied by, and the ends of the range of the result."""
    low, high = _least_and_greatest(xp, p, data)
    size, dtype = larger(xp, low, high), output_dtype(p)
    return [scale_of(xp, LEVELS[dtype], size), *((-size, size) if dtype == INT8 else (low, high))]


@op(
    "_contrib_quantize_v2",
    outputs=_OUTPUTS,
    helpers={"plan": _own_plan},
    out_type=Enum("auto int8 uint8", "int8"),
    **CALIBRATED,
    grad=None,
    calibrates="input",
)
@silent
def quantize_v2(k: Call, p: Params, data: Array) -> Any:
    """Quantise by a calibrated range, or by that of the data itself.

    Parameters
    ----------
    data : array
        float32, any shape; int8 and uint8 pass as they are.
    out_type : {'int8', 'uint8', 'auto'}
        ``auto`` is uint8 if `min_calib_range` is 0 or more; of data in eight bits, its own.
    min_calib_range, max_calib_range : float, optional
        The range; it counts if both are given.

    Returns
    -------
    list of arrays
        The whole numbers, and their range, each end of shape (1,).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_quantize_v2``, which reads data in other eight bits than `out_type` anew,
    so that it wraps around (here that is an error), and has 127.5 steps for int8 and 255.5 for uint8 on
    CPUs. An array of zeros gives zeros, where MXNet divides by zero.
    """
    xp, dtype = k.xp, output_dtype(p)
    if data.dtype in EIGHT_BITS:
        known = (p.min_calib_range, p.max_calib_range) if is_calibrated(p) else _own_range(data.dtype)
        return [data.copy(), *ranges_of(xp, *known)]
    scale, *ends = _own_plan(xp, p, data)
    return [nearest(xp, data * scale, dtype), *ends]


def _own_range(dtype: np.dtype[Any]) -> tuple[float, float]:
    return (-LEVELS[INT8], LEVELS[INT8]) if dtype == INT8 else (0.0, LEVELS[UINT8])


_from_any = takes(
    [[FLOAT32, *EIGHT_BITS]],
    lambda p, ins: [ins[0] if p.out_type == "auto" and ins[0] in EIGHT_BITS else output_dtype(p), FLOAT32, FLOAT32],
)


@quantize_v2.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    [data] = ins
    if data in EIGHT_BITS and p.out_type not in ("auto", data.name):
        raise TypeError(
            f"data is {data.name} where float32 or {p.out_type} is needed; eight bits pass as they are: out_type "
            f"{data.name!r}, or 'auto'"
        )
    return _from_any(p, ins, outs)


quantize_v2.shape(with_ranges(1))


@op("_contrib_quantize_asym", outputs="output scale shift", **CALIBRATED, grad=None, calibrates="input")
@silent
def quantize_asym(k: Call, p: Params, data: Array) -> Any:
    """Quantise to uint8 so that the range fills it: ``data * scale + shift``.

    Parameters
    ----------
    data : array
        float32, any shape.
    min_calib_range, max_calib_range : float, optional
        The range; that of the data unless both are given.

    Returns
    -------
    list of arrays
        The whole numbers, and scale and shift of shape (1,).

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_quantize_asym``, which takes three dimensions only on CPUs. A range
    without extent has scale 1.
    """
    xp = k.xp
    low, high = _least_and_greatest(k.xp, p, data)
    scale = scale_of(xp, 255, high - low)
    scale = xp.where(high == low, FLOAT32.type(1), scale)
    shift = -(high * scale) + FLOAT32.type(255)
    return [nearest(xp, data * scale + shift, UINT8), scale, shift]


quantize_asym.shape(with_ranges(1))
quantize_asym.dtype(takes([[FLOAT32]], lambda p, ins: [UINT8, FLOAT32, FLOAT32]))


def _step(xp: Any, dtype: np.dtype[Any], low: Any, high: Any) -> Any:
    """What one step of a dtype stands for in a range."""
    return larger(xp, low, high) / FLOAT32.type(LEVELS[dtype])


@op(
    "_contrib_dequantize",
    inputs="data min_range max_range",
    out_type=Enum("float32", "float32"),
    grad=None,
    helpers={"step": _step},
)
def dequantize(k: Call, p: Params, data: Array, min_range: Array, max_range: Array) -> Array:
    """The numbers that quantised ones stand for.

    Parameters
    ----------
    data : array
        int8 or uint8, any shape.
    min_range, max_range : array
        float32, shape (1,). Only the larger magnitude counts.
    out_type : {'float32'}

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_dequantize``: a step is 1/127.5 of the range, 1/255.5 for uint8.
    """
    return data.astype(FLOAT32) * _step(k.xp, data.dtype, min_range, max_range)


dequantize.shape(with_ranges(1))
dequantize.dtype(takes([EIGHT_BITS], lambda p, ins: [FLOAT32]))


def _requantize_plan(xp: Any, p: Params, data: Any, low: Any, high: Any) -> list[Any]:
    """What the data is multiplied by, and the ends of the range of the result."""
    dtype, top = output_dtype(p), FLOAT32.type(LEVELS[INT32])
    unit = larger(xp, low, high)
    if is_calibrated(p):
        size = larger(xp, *ranges_of(xp, p.min_calib_range, p.max_calib_range))
    elif data.size:
        most = xp.maximum(-data.min().astype(np.float64), data.max().astype(np.float64)).astype(FLOAT32)
        size = most.reshape(1) * unit / top
    else:
        size = ranges_of(xp, 0.0)[0]
    scale = unit / top * scale_of(xp, 127 if dtype == INT8 else 255, size)
    return [scale, -size if dtype == INT8 else xp.zeros_like(size), size]


@op(
    "_contrib_requantize",
    helpers={"plan": _requantize_plan},
    inputs="data min_range max_range",
    outputs=_OUTPUTS,
    out_type=Enum("auto int8 uint8", "int8"),
    **CALIBRATED,
    grad=None,
    calibrates="input",
)
@silent
def requantize(k: Call, p: Params, data: Array, min_range: Array, max_range: Array) -> Any:
    """From int32 to eight bits, by a calibrated range or by that of the numbers that are there.

    Parameters
    ----------
    data : array
        int32, any shape.
    min_range, max_range : array
        float32, shape (1,): what the ends of int32 stand for.
    out_type : {'int8', 'uint8', 'auto'}
        ``auto`` is uint8 if `min_calib_range` is 0 or more; what is negative becomes 0 there.
    min_calib_range, max_calib_range : float, optional
        The range; it counts if both are given.

    Returns
    -------
    list of arrays
        The whole numbers, and their range: symmetric around zero, for uint8 from zero.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_requantize``. Zeros alone give zeros, where MXNet divides by zero.
    """
    scale, *ends = _requantize_plan(k.xp, p, data, min_range, max_range)
    return [nearest(k.xp, data.astype(FLOAT32) * scale, output_dtype(p)), *ends]


requantize.shape(with_ranges(1))
requantize.dtype(takes([[INT32]], lambda p, ins: [output_dtype(p), FLOAT32, FLOAT32]))
