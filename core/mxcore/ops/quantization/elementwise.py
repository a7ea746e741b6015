"""What changes or joins arrays of eight bits element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Enum, Int
from ...typing import Array, Call
from ..common.bodies import silent
from ..common.rules import axis_of, one, size_of
from ..shape.join import concat
from .ranges import (
    CALIBRATED,
    EIGHT_BITS,
    FLOAT32,
    INT8,
    INT32,
    LEVELS,
    OUTPUTS,
    UINT8,
    is_calibrated,
    larger,
    nearest,
    product_range,
    ranges_of,
    scale_of,
    takes,
    with_ranges,
)

__all__: list[str] = []

_ONE = "data min_data max_data"
_TWO = "lhs rhs lhs_min lhs_max rhs_min rhs_max"


#: Of the arrays that are joined.
_joined_shape: Any = concat.shape_rule


def _as_data(p: Params, ins: list[Any]) -> list[Any]:
    return [ins[0], FLOAT32, FLOAT32]


@op(
    "_contrib_quantized_act",
    inputs=_ONE,
    outputs=OUTPUTS,
    act_type=Enum("relu sigmoid softrelu softsign tanh"),
    grad=None,
)
def quantized_act(k: Call, p: Params, data: Array, min_data: Array, max_data: Array) -> Any:
    """`Activation` over eight bits: what is negative becomes 0.

    Parameters
    ----------
    data : array
        int8 or uint8, any shape.
    min_data, max_data : array
        float32, shape (1,): what it stands for, as the output does.
    act_type : {'relu'}

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_quantized_act``, which reads a uint8 result as int8.
    """
    return [k.xp.maximum(data, data.dtype.type(0)), min_data.copy(), max_data.copy()]


@quantized_act.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    if p.act_type != "relu":
        raise ValueError(f"act_type is {p.act_type}; over eight bits there is relu")
    data = merge_shape(ins[0], outs[0])
    return [data, one, one], [data, one, one]


quantized_act.dtype(takes([EIGHT_BITS], _as_data))


@op("_contrib_quantized_flatten", inputs=_ONE, outputs=OUTPUTS, grad=None)
def quantized_flatten(k: Call, p: Params, data: Array, min_data: Array, max_data: Array) -> Any:
    """`Flatten` over eight bits: all dimensions but the first become one.

    Parameters
    ----------
    data : array
        int8 or uint8.
    min_data, max_data : array
        float32, shape (1,): what it stands for, as the output does.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_quantized_flatten``.
    """
    return [data.reshape(data.shape[0], size_of(data.shape[1:])).copy(), min_data.copy(), max_data.copy()]


@quantized_flatten.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    data = ins[0]
    out = None if data is None else (data[0], -1 if -1 in data[1:] else size_of(data[1:]))
    return [data, one, one], [out, one, one]


quantized_flatten.dtype(takes([EIGHT_BITS], _as_data))


def _joined_names(p: Params) -> list[str]:
    return [f"arg{i}" for i in range(p.num_args)] + [
        f"arg{i}_{end}" for i in range(p.num_args) for end in ("min", "max")
    ]


def _joined_plan(xp: Any, p: Params, data: Any) -> tuple[Any, list[Any], list[Any]]:
    """The dtype, what each array is multiplied by, and the ends of the range of the result."""
    n = p.num_args
    arrays, lows, highs = data[:n], data[n::2], data[n + 1 :: 2]
    low, high = (xp.zeros_like(lows[0]) for _ in range(2))
    for a, b in zip(lows, highs):
        low, high = xp.minimum(low, a), xp.maximum(high, b)
    dtype = _joined_dtype(arrays)
    scale = scale_of(xp, LEVELS[dtype], larger(xp, low, high))
    own = [scale_of(xp, LEVELS[x.dtype], larger(xp, a, b)) for x, a, b in zip(arrays, lows, highs)]
    return dtype, [scale / v for v in own], [low, high]


@op(
    "_contrib_quantized_concat",
    inputs="data*",
    outputs=OUTPUTS,
    num_args=Int(ge=1, le=1 << 16),
    dim=Int(1),
    arg_names=_joined_names,
    grad=None,
    helpers={"plan": _joined_plan},
)
@silent
def quantized_concat(k: Call, p: Params, *data: Array) -> Any:
    """`Concat` over eight bits: all are brought to the widest range; int8 if one of them is, else uint8.

    Parameters
    ----------
    data : arrays
        First the arrays, int8 or uint8, then for each in turn its least and greatest number, float32 of shape (1,).
    num_args : int
        How many arrays, a third of the inputs.
    dim : int
        The axis.

    Returns
    -------
    list of arrays
        The joined array and its range, which has the zero in it.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_quantized_concat``.
    """
    xp = k.xp
    dtype, scales, ends = _joined_plan(xp, p, data)
    parts = [nearest(xp, x.astype(FLOAT32) * scale, dtype) for x, scale in zip(data, scales)]
    return [xp.concatenate(parts, axis_of(p.dim, parts[0].ndim)), *ends]


def _joined_dtype(arrays: Any) -> np.dtype[Any]:
    return INT8 if any(a.dtype == INT8 for a in arrays) else UINT8


@quantized_concat.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    arrays, [out] = _joined_shape(p, ins[: p.num_args], outs[:1])
    return [*arrays, *[one] * (2 * p.num_args)], [out, one, one]


@quantized_concat.dtype
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    n = p.num_args

    def joined(p: Params, found: list[Any]) -> list[Any]:
        known = found[:n]
        out = INT8 if INT8 in known else None if None in known else UINT8
        return [out, FLOAT32, FLOAT32]

    return takes([EIGHT_BITS] * n, joined)(p, ins, outs)


def _sum_dtype(p: Params, ins: list[Any]) -> Any:
    if not is_calibrated(p):
        return INT32
    if None in ins[:2]:
        return None
    return ins[0] if ins[0] == ins[1] else INT8


def _sum_plan(xp: Any, p: Params, dtypes: Any, ranges: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """What arrays of other dtypes than the result are multiplied by first, and all then; the ends of the range."""
    sizes = [larger(xp, *ranges[:2]), larger(xp, *ranges[2:])]
    first: list[Any] = [None, None]
    if is_calibrated(p):
        ends = ranges_of(xp, p.min_calib_range, p.max_calib_range)
        top = scale_of(xp, LEVELS[_sum_dtype(p, dtypes)], larger(xp, *ends))
        scales = [top / scale_of(xp, LEVELS[t], s) for t, s in zip(dtypes, sizes)]
        if dtypes[0] != dtypes[1]:  # the uint8 one becomes int8 first
            i = dtypes.index(UINT8)
            first[i], scales[i] = scales[i], xp.ones_like(top)
        return first, scales, ends
    both = sizes[0] + sizes[1]
    some = xp.where(both == 0, FLOAT32.type(1), both)
    scales = [s * FLOAT32.type(LEVELS[INT32]) / (some * FLOAT32.type(LEVELS[t])) for t, s in zip(dtypes, sizes)]
    return first, scales, [-both, both]


@op(
    "_contrib_quantized_elemwise_add",
    inputs=_TWO,
    outputs=OUTPUTS,
    **CALIBRATED,
    grad=None,
    helpers={"plan": _sum_plan},
)
@silent
def quantized_elemwise_add(
    k: Call, p: Params, lhs: Array, rhs: Array, lhs_min: Array, lhs_max: Array, rhs_min: Array, rhs_max: Array
) -> Any:
    """The sum of two arrays of eight bits: in int32, or in eight bits where its range is known.

    Parameters
    ----------
    lhs, rhs : array
        int8 or uint8, of one shape.
    lhs_min, lhs_max, rhs_min, rhs_max : array
        float32, shape (1,): what they stand for.
    min_calib_range, max_calib_range : float, optional
        The range of the sum; it counts if both are given.

    Returns
    -------
    list of arrays
        The sum and its range: as it was given, or the sum of both.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_quantized_elemwise_add``. The sum of int8 and uint8 in int32 is that of
    what they stand for; MXNet loses the uint8 array.
    """
    xp, dtypes = k.xp, [lhs.dtype, rhs.dtype]
    first, scales, ends = _sum_plan(xp, p, dtypes, (lhs_min, lhs_max, rhs_min, rhs_max))
    arrays = [
        a if scale is None else nearest(xp, a.astype(FLOAT32) * scale, INT8) for a, scale in zip((lhs, rhs), first)
    ]
    total = arrays[0].astype(FLOAT32) * scales[0] + arrays[1].astype(FLOAT32) * scales[1]
    return [nearest(xp, total, _sum_dtype(p, dtypes)), *ends]


quantized_elemwise_add.shape(with_ranges(2))
quantized_elemwise_add.dtype(takes([EIGHT_BITS, EIGHT_BITS], lambda p, ins: [_sum_dtype(p, ins), FLOAT32, FLOAT32]))


def _product_plan(xp: Any, p: Params, ranges: Any) -> tuple[Any, list[Any]]:
    """What products are multiplied by, None for those in int32, and the ends of the range."""
    scales = [scale_of(xp, LEVELS[INT8], larger(xp, *ranges[i : i + 2])) for i in (0, 2)]
    if p.enable_float_output:
        return 1 / scales[0] / scales[1], []
    if not is_calibrated(p):
        return None, product_range(xp, INT8, ranges[:2], ranges[2:])
    ends = ranges_of(xp, p.min_calib_range, p.max_calib_range)
    return scale_of(xp, LEVELS[INT8], larger(xp, *ends)) / scales[0] / scales[1], ends


@op(
    "_contrib_quantized_elemwise_mul",
    inputs=_TWO,
    outputs="output min_output[not enable_float_output] max_output[not enable_float_output]",
    **CALIBRATED,
    enable_float_output=Bool(False),
    grad=None,
    helpers={"plan": _product_plan},
)
@silent
def quantized_elemwise_mul(
    k: Call, p: Params, lhs: Array, rhs: Array, lhs_min: Array, lhs_max: Array, rhs_min: Array, rhs_max: Array
) -> Any:
    """The product of two arrays of int8: exact in int32, in int8 where its range is known, or in float32.

    Parameters
    ----------
    lhs, rhs : array
        int8, of one shape.
    lhs_min, lhs_max, rhs_min, rhs_max : array
        float32, shape (1,): what they stand for.
    min_calib_range, max_calib_range : float, optional
        The range of the product; it counts if both are given.
    enable_float_output : bool
        The product of what they stand for, without a range.

    Returns
    -------
    array, or list of arrays
        The product and its range. In int8 it is cut towards zero.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_quantized_elemwise_mul``, in graphs: called on arrays it fails there. What
    is beyond the range becomes the last number; MXNet wraps around.
    """
    xp = k.xp
    product = lhs.astype(INT32) * rhs.astype(INT32)
    scale, ends = _product_plan(xp, p, (lhs_min, lhs_max, rhs_min, rhs_max))
    if scale is None:
        return [product, *ends]
    scaled = product.astype(FLOAT32) * scale
    return scaled if p.enable_float_output else [nearest(xp, xp.trunc(scaled), INT8), *ends]


@quantized_elemwise_mul.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    both = merge_shape(merge_shape(ins[0], ins[1]), outs[0])
    return [both, both, *[one] * 4], [both, *[one] * (len(outs) - 1)]


def _product_dtypes(p: Params, ins: list[Any]) -> list[Any]:
    if p.enable_float_output:
        return [FLOAT32]
    return [INT8 if is_calibrated(p) else INT32, FLOAT32, FLOAT32]


quantized_elemwise_mul.dtype(takes([[INT8], [INT8]], _product_dtypes))
