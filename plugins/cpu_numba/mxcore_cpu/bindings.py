"""Which kernel computes which operator on the CPU, and when: a row or a few lines each.

All but a few kernels write into given arrays. Where one does not fit (another layout, a dtype that Numba does not know, an array too
small to pay) the operator's reference body over NumPy runs instead.
"""
from __future__ import annotations

import functools
import math

import numpy as np

from mxcore.ops.random import LAWS
from mxcore.ops.rnn_cells import dropout, layout, limits
from mxcore.plugin import KernelSet

from .kernels import (
    attention,
    counting,
    ctc,
    elementwise,
    embedding,
    gemm,
    hawkes,
    many,
    normalization,
    optimizer,
    ordering,
    pick,
    pooling,
    response,
    rnn,
    roi,
    sequence,
    softmax,
    spatial,
    variates,
)
from .kernels import convolution as conv

__all__ = ["cpu"]

cpu = KernelSet("cpu")
_FLOATS = "f4 f8"
#: Elements from which an elementwise kernel beats NumPy.
_MANY = 1 << 14


def _channels_first(p, *specs):
    return p.layout is None or p.layout[1] == "C"


def _axes(value, n, fill):
    return value or (fill,) * n


def _geometry(p, data):
    n = data.ndim - 2
    return dict(stride=_axes(p.stride, n, 1), pad=_axes(p.pad, n, 0), dilate=_axes(p.dilate, n, 1), groups=p.num_group)


@cpu.kernel("Convolution_v1", dtypes=_FLOATS, when=_channels_first, out=True)
@cpu.kernel("Convolution", dtypes=_FLOATS, when=_channels_first, out=True)
def _convolution(k, p, outs, data, weight, bias=None):
    conv.convolution(data, weight, bias, outs[0], **_geometry(p, data))


@cpu.kernel("_backward_Convolution", dtypes=_FLOATS, when=_channels_first, out=True)
def _backward_convolution(k, p, outs, dy, data, weight):
    d_bias = None if p.no_bias else outs[2]
    conv.convolution_backward(dy, data, weight, outs[0], outs[1], d_bias, **_geometry(p, data))


# MXNet gives the target shape of a transposed convolution or lets it follow from pad and adj; only the latter maps here.
def _transposed(p, *specs):
    return _channels_first(p) and not p.target_shape


@cpu.kernel("Deconvolution", dtypes=_FLOATS, when=_transposed, out=True)
def _deconvolution(k, p, outs, data, weight, bias=None):
    conv.deconvolution(data, weight, bias, outs[0], **_geometry(p, data))


@cpu.kernel("_backward_Deconvolution", dtypes=_FLOATS, when=_transposed, out=True)
def _backward_deconvolution(k, p, outs, dy, data, weight):
    d_bias = None if p.no_bias else outs[2]
    conv.deconvolution_backward(dy, data, weight, outs[0], outs[1], d_bias, **_geometry(p, data))


@cpu.kernel("FullyConnected", dtypes=_FLOATS, out=True)
def _fully_connected(k, p, outs, data, weight, bias=None):
    gemm.fully_connected(_rows(p, data), weight, bias, outs[0].reshape(-1, weight.shape[0]))


@cpu.kernel("_backward_FullyConnected", dtypes=_FLOATS, out=True)
def _backward_fully_connected(k, p, outs, dy, data, weight):
    d_data = None if outs[0] is None else _rows(p, outs[0])
    gemm.fully_connected_backward(dy.reshape(-1, weight.shape[0]), _rows(p, data), weight, d_data, outs[1],
                                  None if p.no_bias else outs[2])


def _rows(p, data):
    width = math.prod(data.shape[1:]) if p.flatten else data.shape[-1]
    return data.reshape(data.size // width if width else data.shape[0], width)


def _poolable(p, data, *rest):
    return _channels_first(p) and (p.global_pool or p.pooling_convention != "same") and 3 <= data.ndim <= 5


def _windows(p, data):
    n = data.ndim - 2
    if p.global_pool:
        return dict(window=data.shape[2:], stride=(1,) * n, pad=(0,) * n)
    return dict(window=p.kernel, stride=_axes(p.stride, n, 1), pad=_axes(p.pad, n, 0))


def _average(p):
    return dict(average=p.pool_type == "avg", include_pad=p.count_include_pad is not False)


@cpu.kernel("Pooling", dtypes=_FLOATS, when=_poolable, out=True)
def _pool(k, p, outs, data):
    if p.pool_type == "max":
        pooling.max_pool(data, outs[0], **_windows(p, data))
    elif p.pool_type == "lp":
        pooling.lp_pool(data, outs[0], p=p.p_value, **_windows(p, data))
    else:
        pooling.average_pool(data, outs[0], **_windows(p, data), **_average(p))


@cpu.kernel("_backward_Pooling", dtypes=_FLOATS, when=lambda p, dy, data, out: _poolable(p, data), out=True)
def _backward_pool(k, p, outs, dy, data, out):
    if p.pool_type == "max":
        pooling.max_pool_backward(dy, data, outs[0], **_windows(p, data))
    elif p.pool_type == "lp":
        pooling.lp_pool_backward(dy, data, out, outs[0], p=p.p_value, **_windows(p, data))
    else:
        pooling.average_pool_backward(dy, outs[0], **_windows(p, data), **_average(p))


# -- places in images -------------------------------------------------------------------------------------------------
@cpu.kernel("BilinearSampler", dtypes=_FLOATS, out=True)
def _bilinear_sampler(k, p, outs, data, grid):
    spatial.bilinear_sample(data, grid, outs[0])


@cpu.kernel("_backward_BilinearSampler", dtypes=_FLOATS, out=True)
def _backward_bilinear_sampler(k, p, outs, dy, data, grid):
    spatial.bilinear_sample_backward(dy, data, grid, *outs)


@cpu.kernel("SpatialTransformer", dtypes=_FLOATS, out=True)
def _spatial_transformer(k, p, outs, data, loc):
    spatial.bilinear_sample(data, spatial.affine_grid(loc, p.target_shape), outs[0])


@cpu.kernel("_contrib_BilinearResize2D", dtypes=_FLOATS, out=True)
def _bilinear_resize(k, p, outs, data, *like):
    spatial.bilinear_resize(data, outs[0], align_corners=p.align_corners)


@cpu.kernel("ROIPooling", dtypes=_FLOATS, out=True)
def _roi_pool(k, p, outs, data, rois):
    index = np.empty(outs[0].shape, np.int64) if outs[1] is None else outs[1]
    roi.roi_pool(data, rois, outs[0], index, scale=p.spatial_scale)


@cpu.kernel("_backward_ROIPooling", when=lambda p, dy, *rest: dy.dtype.kind == "f" and dy.dtype.itemsize >= 4, out=True)
def _backward_roi_pool(k, p, outs, dy, like, index, rois):
    roi.roi_pool_backward(dy, rois, index, outs[0])


# -- elementwise ----------------------------------------------------------------------------------------------------
def _large(p, data, *rest):
    return data.size >= _MANY


def _unary(op, name, when=_large):
    @cpu.kernel(op, dtypes=_FLOATS, when=when, out=True)
    def kernel(k, p, outs, data):
        elementwise.unary(name, data, outs[0])


for _op, _name in {n: n for n in "exp expm1 log log1p tanh sigmoid erf softsign relu".split()}.items():
    _unary(_op, _name)
for _op in "erfinv gamma gammaln _digamma".split():  # many passes of NumPy
    _unary(_op, _op.lstrip("_"), None)


for _op, _name in {"_hypot": "hypot", "broadcast_hypot": "hypot", "_mod": "modulo", "broadcast_mod": "modulo"}.items():
    @cpu.kernel(_op, dtypes=_FLOATS, when=lambda p, a, b: a.shape == b.shape, out=True)
    def _binary(k, p, outs, a, b, name=_name):
        elementwise.binary(name, a, b, outs[0])

for _op, _name in {"_hypot_scalar": "hypot", "_mod_scalar": "modulo"}.items():
    @cpu.kernel(_op, dtypes=_FLOATS, when=lambda p, a: a.size >= 1 << 7, out=True)
    def _with_number(k, p, outs, a, name=_name):
        elementwise.binary(name, a, p.scalar, outs[0])


@cpu.kernel("_histogram", dtypes=_FLOATS, when=lambda p, data, *bins: not bins and p.bin_cnt <= 1 << 16, out=True)
def _histogram(k, p, outs, data):
    count, edges = (np.empty(n, t) if o is None else o for o, n, t in zip(outs, (p.bin_cnt, p.bin_cnt + 1), (np.int64, data.dtype)))
    counting.histogram(data, *p.range, p.bin_cnt, count, edges)


#: A call of a kernel costs about what NumPy needs for so many elements: its relu and tanh are fast, its gradients take several passes.
_ACTIVATION_FROM = {"relu": 1 << 12, "tanh": 1 << 12}


@cpu.kernel("Activation", dtypes=_FLOATS, when=lambda p, data: data.size >= _ACTIVATION_FROM.get(p.act_type, 1 << 7), out=True)
def _activation(k, p, outs, data):
    elementwise.activation(p.act_type, data, outs[0])


@cpu.kernel("_backward_Activation", dtypes=_FLOATS, when=lambda p, dy, out: dy.size >= 1 << 8, out=True)
def _backward_activation(k, p, outs, dy, out):
    elementwise.activation_backward(p.act_type, dy, out, outs[0])


# -- normalization and softmax ----------------------------------------------------------------------------------------
@cpu.kernel("BatchNorm", dtypes=_FLOATS, out=True)
def _batch_norm(k, p, outs, data, gamma, beta, moving_mean, moving_var):
    out = outs[0] if outs[0] is not None else np.empty_like(data)
    mean, inv = (np.empty_like(s) if o is None else o for o, s in zip(outs[1:3], (moving_mean, moving_var)))
    how = dict(eps=p.eps, axis=p.axis, fix_gamma=p.fix_gamma)
    if k.is_train and not p.use_global_stats:
        normalization.batch_norm(data, gamma, beta, out, mean, inv, **how)
    else:
        mean[...], inv[...] = moving_mean, moving_var
        normalization.batch_norm_inference(data, gamma, beta, mean, inv, out, **how)
    # The operator's third output is the reciprocal standard deviation.
    np.add(inv, p.eps, out=inv)
    np.sqrt(inv, out=inv)
    np.divide(1, inv, out=inv)


def _one_context(p, *specs):
    return getattr(p, "ndev", 1) == 1


def _plain_batch_norm(k, p, outs, data, gamma, beta, moving_mean, moving_var):
    out = outs[0] if outs[0] is not None else np.empty_like(data)
    mean, var = (np.empty_like(s) if o is None else o for o, s in zip(outs[1:3], (moving_mean, moving_var)))
    if k.is_train and not p.use_global_stats:
        normalization.batch_norm(data, gamma, beta, out, mean, var, eps=p.eps, axis=1, fix_gamma=p.fix_gamma)
    else:
        mean[...], var[...] = moving_mean, moving_var
        normalization.batch_norm_inference(data, gamma, beta, mean, var, out, eps=p.eps, axis=1, fix_gamma=p.fix_gamma)


for _op in ("BatchNorm_v1", "_contrib_SyncBatchNorm"):
    cpu.kernel(_op, dtypes=_FLOATS, when=_one_context, out=True)(_plain_batch_norm)


@cpu.kernel("_contrib_BatchNormWithReLU", dtypes=_FLOATS, out=True)
def _batch_norm_relu(k, p, outs, data, *rest):
    out = outs[0] if outs[0] is not None else np.empty_like(data)
    _batch_norm(k, p, [out, *outs[1:]], data, *rest)
    np.maximum(out, 0, out=out)


@cpu.kernel("_backward_BatchNorm", dtypes=_FLOATS, when=lambda p, *specs: not p.use_global_stats, out=True)
def _backward_batch_norm(k, p, outs, dy, data, gamma, mean, inv, moving_mean, moving_var):
    if not k.is_train:
        mean, var = moving_mean, moving_var
    else:
        var = 1 / (inv * inv) - inv.dtype.type(p.eps)
    normalization.batch_norm_backward(dy, data, gamma, mean, var, *outs[:3], eps=p.eps, axis=p.axis, fix_gamma=p.fix_gamma,
                                      use_global_stats=not k.is_train)
    if k.is_train:
        for moving, new in ((outs[3], mean), (outs[4], var)):
            moving *= moving.dtype.type(p.momentum)
            moving += new * moving.dtype.type(1 - p.momentum)


def _wide_rows(p, data, *rest):
    return data.size >= _MANY


@cpu.kernel("LayerNorm", dtypes=_FLOATS, when=_wide_rows, out=True)
def _layer_norm(k, p, outs, data, gamma, beta):
    stats = [np.empty(s, data.dtype) if o is None else o for o, s in zip(outs[1:], (_stats(p, data),) * 2)]
    out = np.empty_like(data) if outs[0] is None else outs[0]
    normalization.layer_norm(data, gamma, beta, out, *stats, eps=p.eps, axis=p.axis)


@cpu.kernel("_backward_LayerNorm", dtypes=_FLOATS, when=lambda p, dy, data, *rest: data.size >= _MANY, out=True)
def _backward_layer_norm(k, p, outs, dy, data, gamma, mean, std):
    d_data = np.empty_like(data) if outs[0] is None else outs[0]
    normalization.layer_norm_backward(dy, data, gamma, mean, std, d_data, outs[1], outs[2], axis=p.axis)


def _stats(p, data):
    axis = p.axis % data.ndim
    return data.shape[:axis] + (1,) + data.shape[axis + 1:]


def _standardized(k, p, outs, data, gamma, beta):
    stats = (data.shape[0], gamma.size)
    out = np.empty_like(data) if outs[0] is None else outs[0]
    normalization.group_norm(data, gamma, beta, out, *[np.empty(stats, data.dtype) if o is None else o for o in outs[1:]], eps=p.eps)


def _backward_standardized(k, p, outs, dy, data, gamma, mean, std):
    normalization.group_norm_backward(dy, data, gamma, mean, std, *outs)


def _consistent(p, dy, data, gamma, mean, std):
    stats = (data.shape[0], *gamma.shape)
    return data.size > 0 and dy.shape == data.shape and mean.shape == std.shape == stats and data.size % math.prod(stats) == 0


for _op in ("GroupNorm", "InstanceNorm"):
    cpu.kernel(_op, dtypes=_FLOATS, when=lambda p, data, *rest: data.size > 0, out=True)(_standardized)
    cpu.kernel("_backward_" + _op, dtypes=_FLOATS, when=_consistent, out=True)(_backward_standardized)


@cpu.kernel("L2Normalization", dtypes=_FLOATS, when=lambda p, data: p.mode != "channel" and data.size >= 1 << 9, out=True)
def _unit_length(k, p, outs, data):
    normalization.unit_length(data, data.shape[0] * (data.shape[1] if p.mode == "spatial" else 1), p.eps, outs[0])


def _odd(p, *specs):
    return p.nsize % 2 == 1


def _response(p):
    return dict(nsize=p.nsize, alpha=p.alpha, beta=p.beta, knorm=p.knorm)


@cpu.kernel("LRN", dtypes=_FLOATS, when=_odd, out=True)
def _lrn(k, p, outs, data):
    response.local_response(data, outs[0], **_response(p))


@cpu.kernel("_backward_LRN", dtypes=_FLOATS, when=_odd, out=True)
def _backward_lrn(k, p, outs, dy, data):
    response.local_response_backward(dy, data, outs[0], **_response(p))


def _plain_softmax(p, *specs):
    # The kernel takes the largest logit as that of the largest datum.
    return p.dtype is None and (p.temperature is None or p.temperature > 0)


def _softmax_that_fits(p, data, *length):
    return _plain_softmax(p) and data.dtype in (np.float32, np.float64) and all(
        s.dtype.kind in "iu" and p.axis in (-1, data.ndim - 1) for s in length)


@cpu.kernel("softmax", when=_softmax_that_fits, out=True)
def _softmax(k, p, outs, data, length=None):
    if length is None:
        softmax.softmax(data, outs[0], p.axis, p.temperature)
    else:
        softmax.softmax_of_lengths(data, length, outs[0], p.temperature)


@cpu.kernel("softmin", dtypes=_FLOATS, when=_plain_softmax, out=True)
def _softmin(k, p, outs, data):
    softmax.softmax(data, outs[0], p.axis, -(p.temperature or 1.0))


@cpu.kernel("log_softmax", dtypes=_FLOATS, when=_plain_softmax, out=True)
def _log_softmax(k, p, outs, data):
    softmax.log_softmax(data, outs[0], p.axis, p.temperature)


@cpu.kernel("SoftmaxActivation", dtypes=_FLOATS, out=True)
def _softmax_activation(k, p, outs, data):
    softmax.softmax(data, outs[0], 1 if p.mode == "channel" else -1)


for _op in ("softmax", "log_softmax"):
    def _backwards(op=_op):
        backward = getattr(softmax, op + "_backward")

        @cpu.kernel("_backward_" + op, dtypes=_FLOATS, out=True)
        def kernel_backward(k, p, outs, dy, out):
            backward(dy, out, outs[0], p.axis, p.temperature)

    _backwards()


def _class_rows(p, data, *rest):
    return data.ndim == 2 and not p.multi_output


@cpu.kernel("SoftmaxOutput", dtypes=_FLOATS, when=_class_rows, out=True)
def _softmax_output(k, p, outs, data, label):
    softmax.softmax(data, outs[0])


@cpu.kernel("_backward_SoftmaxOutput", dtypes=_FLOATS, out=True,
            when=lambda p, out, label, *dy: _class_rows(p, out) and label.ndim == 1 and not p.out_grad)
def _backward_softmax_output(k, p, outs, out, label):
    softmax.softmax_output_backward(out, label, outs[0], grad_scale=p.grad_scale, use_ignore=p.use_ignore,
                                    ignore_label=p.ignore_label, normalization=p.normalization, smooth_alpha=p.smooth_alpha)


def _alignable(p, *specs):
    """Whether the logits, which follow the gradient in backward, are such as the kernel takes."""
    given = dict(zip(p._sig.inputs, specs))
    data, label = given["data"], given["label"]
    if data.ndim != 3 or label.ndim != 2 or data.dtype not in (np.float32, np.float64):
        return False
    each = [s for name, s in given.items() if name not in ("data", "label")]
    return (data.size > 0 and label.size > 0 and label.shape[0] == data.shape[1] and all(s.shape == (data.shape[1],) for s in each)
            and given.get("dy", data).dtype == data.dtype)


@cpu.kernel("CTCLoss", when=_alignable, out=True)
def _ctc_loss(k, p, outs, *ins):
    given = dict(zip(p._sig.inputs, ins))
    ctc.loss(given["data"], given["label"], given.get("data_lengths"), given.get("label_lengths"), p.blank_label == "first", outs[0])


@cpu.kernel("_backward_ctc_loss", when=_alignable, out=True)
def _backward_ctc_loss(k, p, outs, dy, *ins):
    given = dict(zip(p._sig.inputs[1:], ins))
    ctc.loss_backward(dy, given["data"], given["label"], given.get("data_lengths"), given.get("label_lengths"), p.blank_label == "first", outs[0])


def _table_rows(p, data, weight):
    return weight.ndim == 2 and weight.dtype.kind == "f" and weight.dtype.itemsize >= 4 and data.size * weight.shape[1] >= _MANY


@cpu.kernel("Embedding", when=_table_rows, out=True)
def _embed(k, p, outs, data, weight):
    index = np.clip(data.reshape(-1).astype(np.int64), 0, p.input_dim - 1)
    embedding.take_rows(weight, index, outs[0].reshape(-1, p.output_dim))


@cpu.kernel("_backward_Embedding", out=True, when=lambda p, dy, data, weight: not p.sparse_grad and dy.dtype.kind == "f"
            and dy.dtype.itemsize >= 4)
def _backward_embedding(k, p, outs, dy, data, weight):
    index = np.clip(data.reshape(-1).astype(np.int64), 0, p.input_dim - 1)
    embedding.add_rows(dy.reshape(-1, p.output_dim), index, outs[0])


@cpu.kernel("_backward_take", out=True, when=lambda p, dy, indices, like: (
    p.axis in (0, -len(like.shape)) and p.mode != "raise" and dy.dtype == like.dtype and like.dtype in (np.float32, np.float64) and dy.size > 0))
def _backward_take(k, p, outs, dy, indices, like):
    n = like.shape[0]
    index = indices.reshape(-1)
    embedding.add_rows(dy.reshape(index.size, -1), index.astype(np.int64) % n if p.mode == "wrap" else index, outs[0].reshape(n, -1))


def _last_picked(p, data, index):
    return (p.mode == "clip" and p.axis in (-1, data.ndim - 1) and data.ndim > 1 and data.shape[-1] > 0 and data.dtype in (np.float32, np.float64)
            and index.dtype.kind in "fiu" and index.dtype.itemsize >= 4)


@cpu.kernel("pick", when=_last_picked, out=True)
def _pick(k, p, outs, data, index):
    pick.pick_last(data, index, outs[0])


@cpu.kernel("_backward_pick", when=lambda p, dy, like, index: _last_picked(p, like, index) and dy.dtype == like.dtype, out=True)
def _backward_pick(k, p, outs, dy, like, index):
    pick.place_last(dy, index, outs[0])


@cpu.kernel("batch_take", dtypes="f4 f8 i4 i8", when=lambda p, a, indices: a.dtype.kind == "f" and a.shape[1] > 0, out=True)
def _batch_take(k, p, outs, a, indices):
    pick.pick_last(a, indices, outs[0])


@cpu.kernel("one_hot", out=True)
def _one_hot(k, p, outs, indices):
    pick.one_hot(indices, outs[0], p.on_value, p.off_value)


@cpu.kernel("SequenceMask", when=lambda p, data, *lengths: p.use_sequence_length and data.dtype in (np.float32, np.float64), out=True)
def _sequence_mask(k, p, outs, data, lengths):
    sequence.mask_steps(data, lengths, outs[0], axis=p.axis, value=p.value)


@cpu.kernel("sum", dtypes=_FLOATS, when=lambda p, data: p.axis is None and not p.keepdims)
def _total(k, p, data):
    # What most losses end in. NumPy's ufunc, called at once, warns in this module's name, which is filtered: the reference body's guard against
    # warnings costs as much as a small sum.
    return np.add.reduce(data.reshape(-1), 0, None, None, True)


def _last(p, out):
    """An output with the axis of `topk` last, where the kernel has its rows."""
    return out.reshape(1, -1) if p.axis is None else np.moveaxis(out, p.axis, -1)


#: Rows shorter than this NumPy sorts as fast without keys.
_LONG_ROWS = 16


def _length(p, data):
    return data.size if p.axis is None else data.shape[p.axis]


def _sortable(p, data):
    return data.dtype == np.float32 and _length(p, data) >= _LONG_ROWS and 0 < data.size < 1 << 32


def _place(p, outs, found, shape):
    """Write rows to outputs, of any dtype, that have the axis where the data had it."""
    for out, rows in zip(outs, found):
        if out is not None:
            np.copyto(_last(p, out), rows.reshape(shape), casting="unsafe")


@cpu.kernel("sort", when=_sortable, out=True)
def _sort(k, p, outs, data):
    values, places, lead = ordering.order(data, p.axis, p.is_ascend, outs[0] is not None)
    _place(p, outs, (values, places), (*lead, _length(p, data)))


@cpu.kernel("argsort", when=_sortable, out=True)
def _argsort(k, p, outs, data):
    _, places, lead = ordering.order(data, p.axis, p.is_ascend, False)
    _place(p, outs, (places,), (*lead, _length(p, data)))


@cpu.kernel("topk", dtypes=_FLOATS, when=lambda p, data: data.size > 0 and ordering.few(p.k, _length(p, data)) or _sortable(p, data), out=True)
def _topk(k, p, outs, data):
    n = _length(p, data)
    count = p.k if p.k > 0 else n
    if ordering.few(count, n):
        values, places, lead = ordering.first_in_order(data, count, p.axis, p.is_ascend)
    else:
        values, places, lead = ordering.order(data, p.axis, p.is_ascend)
        values, places = values[:, :count], places[:, :count]
    if p.ret_typ == "mask":
        outs[0].fill(0)
        np.put_along_axis(_last(p, outs[0]), places.reshape(*lead, count), 1, -1)
        return
    _place(p, outs, (places,) if p.ret_typ == "indices" else (values, places), (*lead, count))


# -- random numbers ---------------------------------------------------------------------------------------------------
def _draw_gamma(rng, each, alpha, beta):
    x = variates.gamma(rng, alpha.astype(np.float64), each)
    return x * np.repeat(beta.reshape(-1), each)


def _draw_poisson(rng, each, lam):
    return variates.poisson(rng, lam.astype(np.float64), each)


def _draw_negative_binomial(rng, each, count, p):
    rate = variates.gamma(rng, count.astype(np.float64), each)
    return variates.poisson(rng, rate * np.repeat(((1 - p) / p).reshape(-1), each), 1)


def _draw_generalized(rng, each, mu, alpha):
    alpha = alpha.astype(np.float64)
    plain = alpha == 0
    rate = variates.gamma(rng, 1 / np.where(plain, 1.0, alpha), each) * np.repeat(alpha.reshape(-1), each)
    rate[np.repeat(plain.reshape(-1), each)] = 1.0
    return variates.poisson(rng, rate * np.repeat(mu.reshape(-1), each), 1)


def _wide_floats(p, *specs):
    return all(s.dtype.kind == "f" for s in specs)


for _name, _draw in {"gamma": _draw_gamma, "poisson": _draw_poisson, "negative_binomial": _draw_negative_binomial,
                     "generalized_negative_binomial": _draw_generalized}.items():
    @cpu.kernel("_sample_" + _name, when=_wide_floats, out=True)
    def _sample(k, p, outs, *values, draw=_draw, law=LAWS[_name]):
        law.check_arrays(values)
        wide = np.float64 if outs[0].dtype == np.float64 else np.float32
        with np.errstate(all="ignore"):
            outs[0][...] = draw(k.rng, math.prod(p.shape), *[v.astype(wide) for v in values]).reshape(outs[0].shape)


def _gamma_numbers(k, p, outs, *like):
    values = p.alpha, p.beta
    LAWS["gamma"].check(values)
    outs[0][...] = (variates.gamma(k.rng, np.array([float(p.alpha)]), outs[0].size) * p.beta).reshape(outs[0].shape)


cpu.kernel("_random_gamma", when=lambda p: bool(p.shape) and all(p.shape), out=True)(_gamma_numbers)  # 0: a length that a graph decides
cpu.kernel("_random_gamma_like", when=_wide_floats, out=True)(_gamma_numbers)


@cpu.kernel("_shuffle", when=lambda p, data: data.ndim > 0 and data.dtype.kind in "fiu" and data.dtype.itemsize >= 4 and 0 < data.shape[0] < 1 << 24, out=True)
def _shuffle(k, p, outs, data):
    variates.shuffled(k.rng, data, outs[0])


# -- attention and point processes --------------------------------------------------------------------------------------
@cpu.kernel("_attention_scores", dtypes=_FLOATS, out=True)
def _attention_scores(k, p, outs, a, b):
    attention.scores(a, b, outs[0], p.heads, p.a_slot, p.b_slot, p.scaled)


@cpu.kernel("_attention_sum", dtypes=_FLOATS, out=True)
def _attention_sum(k, p, outs, weights, values):
    attention.weighted_sum(weights, values, outs[0], p.heads, p.slot, p.out_slot, p.transpose, p.scaled)


#: Which of how many projections of their first and last input the operators multiply; whose values they sum up.
for _name, _slots in {"selfatt_qk": ((0, 3), (1, 3)), "encdec_qk": ((0, 1), (0, 2))}.items():
    @cpu.kernel(f"_contrib_interleaved_matmul_{_name}", dtypes=_FLOATS, out=True)
    def _interleaved_scores(k, p, outs, *ins, slots=_slots):
        attention.scores(ins[0], ins[-1], outs[0], p.heads, *slots, True)

for _name, _slot in {"selfatt_valatt": (2, 3), "encdec_valatt": (1, 2)}.items():
    @cpu.kernel(f"_contrib_interleaved_matmul_{_name}", dtypes=_FLOATS, out=True)
    def _interleaved_sum(k, p, outs, values, weights, slot=_slot):
        attention.weighted_sum(weights, values, outs[0], p.heads, slot, (0, 1), False, False)


@cpu.kernel("_backward_interleaved_matmul_selfatt_qk", dtypes=_FLOATS, out=True)
def _backward_selfatt_qk(k, p, outs, dy, data):
    attention.selfatt_qk_backward(dy, data, outs[0], p.heads)


def _hawkes_types(p, *specs):
    return all(s.dtype.str[1:] in ("f4", "f8", "i4") for s in specs)


@cpu.kernel("_contrib_hawkesll", when=_hawkes_types, out=True)
def _hawkesll(k, p, outs, *ins):
    loglike, state = (np.empty(s, ins[0].dtype) if o is None else o for o, s in zip(outs, (ins[7].shape, ins[0].shape)))
    hawkes.hawkes(*ins, loglike, state)


@cpu.kernel("_contrib_backward_hawkesll", when=_hawkes_types, out=True)
def _backward_hawkesll(k, p, outs, *ins):
    hawkes.hawkes_backward(*ins, outs)


# -- recurrent networks -------------------------------------------------------------------------------------------------
@functools.lru_cache(64)
def _layers(mode, inputs, units, layers, both, projected, clip):
    directions = 2 if both else 1
    parts = layout(mode, inputs, units, layers, directions, projected or 0).parts
    return rnn.Network(mode, units, projected or units, layers, directions, tuple(map(tuple, parts)), clip)


def _network(p, data):
    return _layers(p.mode, data.shape[2], p.state_size, p.num_layers, p.bidirectional, p.projection_size, limits(p))


def _sequences(p, *specs):
    arrays = [s for name, s in zip(p._sig.inputs, specs) if name != "sequence_length"]
    return arrays[0].dtype in (np.float32, np.float64) and all(s.dtype == arrays[0].dtype and s.size for s in arrays)


@cpu.kernel("RNN", when=_sequences, out=True)
def _rnn(k, p, outs, *ins):
    given, made = dict(zip(p._sig.inputs, ins)), dict(zip(p._sig.outputs, outs))
    data, net = given["data"], _network(p, given["data"])
    shape = (*data.shape[:2], net.directions * net.width)
    drop = None
    if p.p > 0 and p.num_layers > 1:
        drop, kept = dropout(k, p, (p.num_layers - 1, *shape), data.dtype), made["mask"]
        if kept is not None:
            kept[...] = drop
        drop = drop if k.is_train else None
    out = np.empty(shape, data.dtype) if made["output"] is None else made["output"]
    rnn.forward(net, data, given["parameters"], given["state"], given.get("state_cell"), given.get("sequence_length"), drop, out,
                *(made.get(name) for name in ("state_output", "statecell_output", "gates", "cells", "hidden")))


@cpu.kernel("_backward_RNN", when=_sequences, out=True)
def _backward_rnn(k, p, outs, *ins):
    given, made = dict(zip(p._sig.inputs, ins)), dict(zip(p._sig.outputs, outs))
    rnn.backward(_network(p, given["data"]),
                 *(given.get(name) for name in ("dy", "d_state", "d_cell", "data", "parameters", "state", "state_cell", "sequence_length",
                                                "gates", "cells", "hidden", "mask")),
                 *(made.get(name) for name in ("data", "parameters", "state", "state_cell")))


# -- optimizers ---------------------------------------------------------------------------------------------------------
def _update(name):
    fn, _, defaults = optimizer.UPDATES[name]
    numbers = list(defaults)

    @cpu.kernel(name, dtypes=_FLOATS, when=lambda p, *specs: all(s.stype == "default" for s in specs), out=True)
    def kernel(k, p, outs, weight, grad, *states):
        if outs[0] is not weight:
            np.copyto(outs[0], weight)
        given = p.__dict__
        optimizer.move(fn, [outs[0], grad, *outs[1:]], [given[n] for n in numbers])


for _name in optimizer.UPDATES:
    # AdamW takes its scale as an array, LAMB's first phase writes no weight, AdaGrad's is for sparse gradients: their bodies stay.
    if not _name.startswith(("_adamw", "lamb", "_sparse")):
        _update(_name)


def _lamb_direction(k, p, outs, weight, grad, mean, var):
    fn, _, defaults = optimizer.UPDATES["lamb_update_phase1"]
    optimizer.move(fn, [outs[0], grad, mean, var, weight], [getattr(p, n) for n in defaults])


cpu.kernel("lamb_update_phase1", dtypes=_FLOATS, out=True)(_lamb_direction)


# -- many weights in one call, and weights with a master copy -------------------------------------------------------------
def _movable(mixed, extra=0):
    """Whether all arrays but the last few are such as kernels move."""
    def fits(p, *specs):
        types = [s.dtype for s in specs[:len(specs) - extra]]
        if any(s.stype != "default" for s in specs):
            return False
        if mixed:
            return types[0] == np.float16 and set(types) <= {np.dtype(np.float16), np.dtype(np.float32)} and many.halves()
        return types[0] in (np.float32, np.float64) and len(set(types)) == 1
    return fits


def _groups(outs, data, n):
    """For each weight its arrays, the weight itself replaced by the output, which starts as a copy of it."""
    per = len(data) // n
    groups = []
    for i in range(n):
        old, *rest = data[i * per:(i + 1) * per]
        new = np.empty_like(old) if outs[i] is None else outs[i]
        if new is not old and new.dtype != np.float16:  # that of a weight with a master copy is written only
            np.copyto(new, old)
        groups.append([new, *rest])
    return groups


def _one_each(n, **rates):
    for name, values in rates.items():
        if len(values) != n:
            raise ValueError(f"{name} must hold {n} numbers, got {len(values)}")


def _scaled(array):
    """A factor on gradients given as an array; None where the step is left out."""
    scale = float(array.reshape(-1)[0]) if array.size else 0.0
    return scale if math.isfinite(scale) and scale else None


def _adamw_numbers(p):
    return {n: getattr(p, n) for n in ("beta1", "beta2", "epsilon", "clip_gradient")}


def _still(groups):
    """Weights that stay; one with a master copy is that copy rounded."""
    for weight, *_, last in groups:
        if weight.dtype == np.float16:
            np.copyto(weight, last, casting="same_kind")


def _move_many(name, rule, mixed, last):
    def kernel(k, p, outs, *data):
        n = p.num_weights
        arrays = data[:len(data) - last]
        lrs, wds = data[-2:] if last == 2 else (p.lrs, p.wds)
        _one_each(n, lrs=lrs, wds=wds)
        more = {"momentum": p.momentum, "nesterov": False} if rule == "sgd_mom" else {}
        many.move(rule, _groups(outs[:n], arrays, n), {"lr": lrs, "wd": wds}, rescale_grad=p.rescale_grad, clip_gradient=p.clip_gradient, **more)

    cpu.kernel(name, when=_movable(mixed, last), out=True)(kernel)


def _move_one(name, rule, **more):
    def kernel(k, p, outs, *data):
        numbers = {"momentum": p.momentum, **more} if rule == "sgd_mom" else {}
        many.move(rule, _groups(outs[:1], data, 1), {"lr": [p.lr], "wd": [p.wd]}, rescale_grad=p.rescale_grad, clip_gradient=p.clip_gradient,
                  **numbers)

    cpu.kernel(name, when=_movable(True), out=True)(kernel)


def _move_adamw(name, mixed, several):
    def kernel(k, p, outs, *data):
        *arrays, factor = data
        n = p.num_weights if several else 1
        lrs, wds, etas = (p.lrs, p.wds, p.etas) if several else ([p.lr], [p.wd], [p.eta])
        _one_each(n, lrs=lrs, wds=wds, etas=etas)
        groups, scale = _groups(outs[:n], arrays, n), _scaled(factor)
        if scale is None:
            _still(groups)
        else:
            many.move("adamw", groups, {"lr": lrs, "wd": wds, "eta": etas}, rescale_grad=scale, **_adamw_numbers(p))

    cpu.kernel(name, when=_movable(mixed, 1), out=True)(kernel)


def _move_lamb(name, mixed):
    names = "beta1 beta2 epsilon bias_correction lower_bound upper_bound rescale_grad clip_gradient".split()

    def kernel(k, p, outs, *data):
        n = p.num_tensors
        _one_each(n, learning_rates=p.learning_rates, wds=p.wds, step_count=p.step_count)
        many.lamb(_groups(outs[:n], data, n), p.learning_rates, p.wds, p.step_count, **{m: getattr(p, m) for m in names})

    cpu.kernel(name, when=_movable(mixed), out=True)(kernel)


for _mixed in ("", "mp_"):
    for _rule in ("sgd", "sgd_mom"):
        _move_many(f"multi_{_mixed}{_rule}_update", _rule, bool(_mixed), 0)
        _move_many(f"preloaded_multi_{_mixed}{_rule}_update", _rule, bool(_mixed), 2)
    _move_adamw(f"_{_mixed}adamw_update", bool(_mixed), several=False)
    _move_adamw(f"_multi_{_mixed}adamw_update", bool(_mixed), several=True)
    _move_lamb(f"_multi_{_mixed}lamb_update", bool(_mixed))
_move_one("mp_sgd_update", "sgd")
_move_one("mp_sgd_mom_update", "sgd_mom", nesterov=False)
_move_one("mp_nag_mom_update", "sgd_mom", nesterov=True)


@cpu.kernel("multi_sum_sq", dtypes=_FLOATS, out=True)
def _multi_sum_sq(k, p, outs, *data):
    many.sums_of_squares(data, outs[0])


@cpu.kernel("reset_arrays", out=True)
def _reset_arrays(k, p, outs, *data):
    for a in data:
        a.fill(0)
