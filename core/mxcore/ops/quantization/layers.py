"""Layers over eight bits: sums of products are exact, in int32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool
from ...typing import Array, Call
from ..common.bodies import silent
from ..common.rules import axis_of, one
from ..convolution.operators import CONVOLUTION_PARAMS, convolution, convolution_geometry
from ..convolution.windows import conv_forward
from ..fully_connected.operators import FULLY_CONNECTED_PARAMS, as_matrix, fully_connected, out_shape
from ..indexing.take import EMBEDDING_PARAMS, within
from ..normalization.batch_norm import BATCH_NORM_PARAMS
from ..pooling.operators import POOLING_PARAMS, pooling
from ..recurrent.operators import RNN_PARAMS, Sizes, named_shapes, step_order
from .ranges import (
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

#: Shapes, costs and windows are those of the layers in float.
_LAYERS = {"convolution": convolution, "fully_connected": fully_connected, "pooling": pooling}
_SHAPES: dict[str, Any] = {n: o.shape_rule for n, o in _LAYERS.items()}
_COSTS: dict[str, Any] = {n: o.cost_rule for n, o in _LAYERS.items()}
_pooled: Any = pooling.body
_WEIGHTED = (
    "data weight bias[not no_bias] min_data max_data min_weight max_weight min_bias[not no_bias] max_bias[not no_bias]"
)


def bias_in_steps(xp: Any, dtype: np.dtype[Any], bias: Any, data: Any, weight: Any, own: Any) -> Any:
    """A bias of int8 in steps of sums of products, each range as (least, greatest); towards zero, at most 2**30."""
    scale = scale_of(xp, LEVELS[dtype], larger(xp, *data)) * scale_of(xp, LEVELS[INT8], larger(xp, *weight))
    scale = scale * larger(xp, *own) / FLOAT32.type(LEVELS[INT8])
    steps = xp.trunc(bias.astype(FLOAT32) * scale).astype(np.float64)
    return xp.clip(steps, -(2**30), 2**30).astype(INT32)  # so that no sum with it wraps around


def _parts(p: Params, arrays: Any) -> tuple[Any, Any, Any, list[Any]]:
    """Data, weight, bias or None, and the ranges of each as (least, greatest)."""
    data, weight, *rest = arrays
    bias = None if p.no_bias else rest.pop(0)
    return data, weight, bias, list(zip(rest[::2], rest[1::2]))


def _exact(a: Any) -> Any:
    """In float64, which holds every sum of products that there can be."""
    return a.astype(np.float64)


def _prepared(xp: Any, p: Params, arrays: Any) -> Any:
    """Data, weight, the bias in steps of the sums (int32) or None, and the range of the sums."""
    data, weight, bias, ranges = _parts(p, arrays)
    if bias is not None:
        bias = bias_in_steps(xp, data.dtype, bias, *ranges)
    return data, weight, bias, product_range(xp, data.dtype, *ranges[:2])


def _layer(xp: Any, p: Params, arrays: Any, product: Any, axis: int) -> list[Any]:
    """The outputs of a layer: sums of products of data and weight, the bias along an axis, and their range."""
    data, weight, bias, ends = _prepared(xp, p, arrays)
    out = product(_exact(data), _exact(weight)).astype(np.int64)
    if bias is not None:
        out += bias.astype(np.int64).reshape(*(-1 if i == axis % out.ndim else 1 for i in range(out.ndim)))
    return [out.astype(INT32), *ends]


_weighted_dtypes = takes([EIGHT_BITS, [INT8]], lambda p, ins: [INT32, FLOAT32, FLOAT32])


def _dtypes(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    if p.no_bias:
        return _weighted_dtypes(p, ins, outs)
    return _biased_dtypes(p, ins, outs)


_biased_dtypes = takes([EIGHT_BITS, [INT8], [INT8]], lambda p, ins: [INT32, FLOAT32, FLOAT32])


def _convolution_shape(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    if len(p.kernel) not in (2, 3):
        raise ValueError(f"kernel {p.kernel} has {len(p.kernel)} dimensions; over eight bits there are 2 and 3")
    if p.num_group != 1:
        raise ValueError(f"num_group is {p.num_group}; over eight bits there is one group")
    if p.layout is not None and p.layout[1] != "C":
        raise ValueError(f"layout is {p.layout}; over eight bits channels come first")
    return _SHAPES["convolution"](p, ins, outs)


@op(
    "_contrib_quantized_conv",
    inputs=_WEIGHTED,
    outputs=OUTPUTS,
    **CONVOLUTION_PARAMS,
    grad=None,
    helpers={"prepared": _prepared},
)
def quantized_conv(k: Call, p: Params, *arrays: Array) -> Any:
    """`Convolution` over eight bits, with exact sums in int32.

    Parameters
    ----------
    data : array
        int8 or uint8, shape (N, C, H, W) or (N, C, D, H, W).
    weight : array
        int8, shape (num_filter, C, \\*kernel).
    bias : array
        int8, shape (num_filter,); absent with `no_bias`.
    min_data, max_data, min_weight, max_weight, min_bias, max_bias : array
        float32, shape (1,): what they stand for.
    kernel, stride, dilate, pad, num_filter, workspace, no_bias, cudnn_tune, cudnn_off
        As for `Convolution`; the kernel has two or three dimensions.
    num_group : int
        One only.
    layout : {'NCHW', 'NCDHW'}, optional

    Returns
    -------
    list of arrays
        int32, and what the ends of int32 stand for.

    Notes
    -----
    MXNet 1.9.1 ``_contrib_quantized_conv`` takes uint8 only on CPUs, adds the bias without its scale and gives a range
    that fits int8 (docs/differences.md); here ranges and bias are those of `_contrib_quantized_fully_connected`.
    """
    return _layer(k.xp, p, arrays, lambda x, w: conv_forward(k.xp, x, w, convolution_geometry(p)), 1)


quantized_conv.shape(with_ranges(3, _convolution_shape))
quantized_conv.dtype(_dtypes)
quantized_conv.cost(_COSTS["convolution"])


@op(
    "_contrib_quantized_fully_connected",
    inputs=_WEIGHTED,
    outputs=OUTPUTS,
    **FULLY_CONNECTED_PARAMS,
    grad=None,
    helpers={"prepared": _prepared},
)
def quantized_fully_connected(k: Call, p: Params, *arrays: Array) -> Any:
    """`FullyConnected` over eight bits, with exact sums in int32.

    Parameters
    ----------
    data : array
        int8 or uint8, shape (N, ...).
    weight : array
        int8, shape (num_hidden, inputs).
    bias : array
        int8, shape (num_hidden,); absent with `no_bias`.
    min_data, max_data, min_weight, max_weight, min_bias, max_bias : array
        float32, shape (1,): what they stand for.
    num_hidden, no_bias, flatten
        As for `FullyConnected`.

    Returns
    -------
    list of arrays
        int32, and what the ends of int32 stand for.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_quantized_fully_connected``. On processors without VNNI its sums of two
    products are cut to 16 bits, here they are exact.
    """
    shape = out_shape(p, arrays[0].shape)
    return _layer(k.xp, p, arrays, lambda x, w: k.xp.matmul(as_matrix(p, x), w.T).reshape(shape), -1)


quantized_fully_connected.shape(with_ranges(3, _SHAPES["fully_connected"]))
quantized_fully_connected.dtype(_dtypes)
quantized_fully_connected.cost(_COSTS["fully_connected"])


def _pooling_shape(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    if p.pool_type not in ("max", "avg"):
        raise ValueError(f"pool_type is {p.pool_type}; over eight bits there are max and avg")
    if p.layout is not None and p.layout[1] != "C":
        raise ValueError(f"layout is {p.layout}; over eight bits channels come first")
    if ins[0] is not None and len(ins[0]) not in (4, 5):
        raise ValueError(f"data {ins[0]} must have batch, channels and 2 or 3 spatial dimensions")
    return _SHAPES["pooling"](p, ins, outs)


@op("_contrib_quantized_pooling", inputs="data min_data max_data", outputs=OUTPUTS, **POOLING_PARAMS, grad=None)
def quantized_pooling(k: Call, p: Params, data: Array, min_data: Array, max_data: Array) -> Any:
    """`Pooling` over eight bits: the maximum, or the average to the nearest whole number (halves to even).

    Parameters
    ----------
    data : array
        int8 or uint8, shape (N, C, H, W) or (N, C, D, H, W).
    min_data, max_data : array
        float32, shape (1,): what it stands for, as the output does.
    kernel, global_pool, cudnn_off, pooling_convention, stride, pad, p_value, count_include_pad
        As for `Pooling`.
    pool_type : {'max', 'avg'}
    layout : {'NCHW', 'NCDHW'}, optional

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_quantized_pooling``.
    """
    if p.pool_type == "max":
        out = _pooled(k, p, data)
    else:
        out = nearest(k.xp, _pooled(k, p, data.astype(FLOAT32)), data.dtype)
    return [out, min_data.copy(), max_data.copy()]


quantized_pooling.shape(with_ranges(1, _pooling_shape))
quantized_pooling.dtype(takes([EIGHT_BITS], lambda p, ins: [ins[0], FLOAT32, FLOAT32]))
quantized_pooling.cost(_COSTS["pooling"])


#: From uint8 to int8.
_HALF = FLOAT32.type(LEVELS[INT8] / LEVELS[UINT8])


def _normal_plan(xp: Any, p: Params, statistics: Any, low: Any, high: Any) -> list[Any]:
    """What uint8 is multiplied by first, slope and offset of each channel, and the ends of the range of the result."""
    if not is_calibrated(p):
        raise ValueError(
            "min_calib_range and max_calib_range are needed; quantise with calib_mode 'naive' or 'entropy', "
            "or leave the layer in float (excluded_sym_names)"
        )
    gamma, beta, mean, var = statistics
    ends = ranges_of(xp, p.min_calib_range, p.max_calib_range)
    unit, top = larger(xp, low, high), larger(xp, *ends)
    top = xp.where(top == 0, FLOAT32.type(1), top)
    inv = (1 / xp.sqrt(var.astype(np.float64) + p.eps)).astype(FLOAT32)
    offset = (beta - mean * gamma * inv) * FLOAT32.type(LEVELS[INT8]) / top
    return [_HALF, gamma * inv * unit / top * FLOAT32.type(1 / np.sqrt(1 + p.eps)), offset, *ends]


@op(
    "_contrib_quantized_batch_norm",
    inputs="data gamma beta moving_mean moving_var min_data max_data",
    outputs=OUTPUTS,
    aux="moving_mean moving_var",
    mutates="",
    **BATCH_NORM_PARAMS,
    grad=None,
    calibrates="output",
    helpers={"plan": _normal_plan},
)
@silent
def quantized_batch_norm(
    k: Call,
    p: Params,
    data: Array,
    gamma: Array,
    beta: Array,
    moving_mean: Array,
    moving_var: Array,
    min_data: Array,
    max_data: Array,
) -> Any:
    """`BatchNorm` by the moving statistics, from and to eight bits.

    Parameters
    ----------
    data : array
        int8 or uint8 (which is halved to int8), channels on axis 1.
    gamma, beta : array
        float32, shape (C,). `gamma` counts, whatever `fix_gamma` says.
    moving_mean, moving_var : array
        float32, shape (C,).
    min_data, max_data : array
        float32, shape (1,): what the data stands for.
    eps : float
    axis : int
        1 only.
    min_calib_range, max_calib_range : float
        The range of the output, which must be known.
    momentum, fix_gamma, use_global_stats, output_mean_var, cudnn_off
        Of `BatchNorm`; no effect.

    Returns
    -------
    list of arrays
        int8, and its range as it was given.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_quantized_batch_norm``, which divides the slope by ``sqrt(1 + eps)`` once
    more.
    """
    xp = k.xp
    half, slope, offset, *ends = _normal_plan(xp, p, (gamma, beta, moving_mean, moving_var), min_data, max_data)
    if data.dtype == UINT8:
        data = nearest(xp, data.astype(FLOAT32) * half, INT8)
    column = (1, -1, *(1,) * (data.ndim - 2))
    return [nearest(xp, data.astype(FLOAT32) * slope.reshape(column) + offset.reshape(column), INT8), *ends]


@quantized_batch_norm.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    data = merge_shape(ins[0], outs[0])
    channels = -1
    if data is not None:
        if len(data) < 2 or axis_of(p.axis, len(data)) != 1:
            raise ValueError(f"axis {p.axis} of data {data}: over eight bits channels are on axis 1")
        channels = data[1]
    return [data, *[(channels,)] * 4, one, one], [data, one, one]


quantized_batch_norm.dtype(takes([EIGHT_BITS], lambda p, ins: [INT8, FLOAT32, FLOAT32]))


@op(
    "_contrib_quantized_embedding",
    inputs="data weight min_weight max_weight",
    outputs=OUTPUTS,
    **EMBEDDING_PARAMS,
    grad=None,
)
def quantized_embedding(k: Call, p: Params, data: Array, weight: Array, min_weight: Array, max_weight: Array) -> Any:
    """`Embedding` in a table of int8.

    Parameters
    ----------
    data : array
        Indices, any shape; those out of range count as the nearest valid one.
    weight : array
        int8, shape (input_dim, output_dim).
    min_weight, max_weight : array
        float32, shape (1,): what it stands for, as the output does.
    input_dim, output_dim : int
    dtype, sparse_grad
        Of `Embedding`; no effect.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_quantized_embedding``.
    """
    out = k.xp.take(weight, within(k.xp, data, weight.shape[0], "clip"), 0)
    return [out, min_weight.copy(), max_weight.copy()]


@quantized_embedding.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    data = ins[0]
    if data is None and outs[0] is not None:
        data = outs[0][:-1]
    out = None if data is None else (*data, p.output_dim)
    return [data, (p.input_dim, p.output_dim), one, one], [out, one, one]


quantized_embedding.dtype(takes([[], [INT8]], lambda p, ins: [INT8, FLOAT32, FLOAT32]))


@op(
    "_contrib_quantized_rnn",
    inputs="data parameters state state_cell data_scale data_shift",
    outputs="output state_output[state_outputs] statecell_ouput[state_outputs]",  # as MXNet spells it
    **RNN_PARAMS,
    quantized=Bool(True),
    grad=None,
)
@silent
def quantized_rnn(
    k: Call,
    p: Params,
    data: Array,
    parameters: Array,
    state: Array,
    state_cell: Array,
    data_scale: Array,
    data_shift: Array,
) -> Any:
    """`RNN` of mode ``lstm`` over sequences of eight bits: products are exact, gates and cell states float32.

    Inputs and states count in steps of ``1 / data_scale``; the weights are rounded to int8, each row of a gate by the
    greatest magnitude that it has in any layer.

    Parameters
    ----------
    data : array
        uint8, shape (time, N, inputs): ``data * data_scale + data_shift`` of what it stands for, as
        `_contrib_quantize_asym` gives it.
    parameters : array
        float32, all weights, as for `RNN`.
    state, state_cell : array
        float32, shape (num_layers * directions, N, state_size).
    data_scale, data_shift : array
        float32, shape (1,).
    state_size, num_layers, bidirectional, state_outputs
        As for `RNN`.
    mode : {'lstm'}
    p, projection_size, lstm_state_clip_min, lstm_state_clip_max, lstm_state_clip_nan, use_sequence_length
        Of `RNN`; they must be what they are unless told, but for dropout, which does nothing here.
    quantized : bool
        What MXNet's files say; no effect.

    Returns
    -------
    array, or list of arrays
        float32, as those of `RNN`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``_contrib_quantized_rnn``. On processors without VNNI its sums of two products are
    cut to 16 bits, here they are exact.
    """
    xp, sizes = k.xp, Sizes(p)
    widest = max(data.shape[2], sizes.directions * p.state_size)
    real = FLOAT32 if widest * 255 * 127 < 1 << 24 else np.dtype(np.float64)  # which holds every sum on the way
    plan = sizes.layout(p, data.shape[2])
    weights = [plan.views(parameters, i) for i in range(sizes.rows)]
    rows = None
    for w_x, w_h, *_ in weights:
        most = xp.maximum(*(xp.abs(w).max(1) if w.shape[1] else xp.zeros(w.shape[:1], FLOAT32) for w in (w_x, w_h)))
        rows = most if rows is None else xp.maximum(rows, most)
    scales = scale_of(xp, 127, rows)

    def steps(h: Any) -> Any:
        return nearest(xp, h * data_scale + data_shift, UINT8).astype(real)

    x = data.astype(real)
    last_h, last_c = [], []
    for layer in range(p.num_layers):
        sides = []
        for d in range(sizes.directions):
            i = layer * sizes.directions + d
            w_x, w_h, _, b_x, b_h = weights[i]
            q_x, q_h = (nearest(xp, w * scales[:, None], INT8).astype(real) for w in (w_x, w_h))
            bias = b_x + b_h
            shift = data_shift * (q_x.sum(1) + q_h.sum(1)).astype(FLOAT32)
            h, c = steps(state[i]), state_cell[i]
            time, batch = x.shape[:2]
            found = xp.empty((time, batch, p.state_size), real)
            of_inputs = xp.matmul(x.reshape(time * batch, x.shape[2]), q_x.T).reshape(time, batch, 4 * p.state_size)
            for t in step_order(x.shape[0], d):
                sums = (of_inputs[t] + xp.matmul(h, q_h.T)).astype(FLOAT32)
                z = (sums - shift) / (data_scale * scales) + bias
                n = p.state_size
                in_, forget, new, out = (z[:, j * n : (j + 1) * n] for j in range(4))
                c = _sigmoid(xp, forget) * c + _sigmoid(xp, in_) * xp.tanh(new)
                h = steps(_sigmoid(xp, out) * xp.tanh(c))
                found[t] = h
            sides.append(found)
            last_h.append(h)
            last_c.append(c)
        x = sides[0] if len(sides) == 1 else xp.concatenate(sides, 2)

    def floats(h: Any) -> Any:
        return (h.astype(FLOAT32) - data_shift) / data_scale

    if not p.state_outputs:
        return floats(x)
    return [floats(x), floats(xp.stack(last_h, 0)), xp.stack(last_c, 0)]


def _sigmoid(xp: Any, x: Any) -> Any:
    return 1 / (1 + xp.exp(-x))


@quantized_rnn.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    if p.mode != "lstm":
        raise ValueError(f"mode is {p.mode}; over eight bits there is lstm")
    for name in ("projection_size", "lstm_state_clip_min", "lstm_state_clip_max"):
        if getattr(p, name) is not None:
            raise ValueError(f"{name} is {getattr(p, name)}; over eight bits there is none")
    if p.use_sequence_length:
        raise ValueError("use_sequence_length is set; over eight bits all sequences have all steps")
    s = Sizes(p)
    data = merge_shape(ins[0], (-1, -1, -1))
    y = merge_shape(outs[0], (data[0], data[1], s.directions * s.state))
    state = (s.rows, y[1], s.state)
    for found in (ins[2], ins[3], *outs[1:]):
        state = merge_shape(state, found)
    shapes = {**named_shapes(p, s, y[0], state[1], data[2]), "data_scale": one, "data_shift": one}
    shapes["statecell_ouput"] = shapes["statecell_output"]
    return [shapes[n] for n in p._sig.inputs], [shapes[n] for n in p._sig.outputs]


quantized_rnn.dtype(takes([[UINT8]], lambda p, ins: [FLOAT32] * len(p._sig.outputs)))
