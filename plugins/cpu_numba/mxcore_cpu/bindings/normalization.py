"""Layers that normalize."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mxcore.plugin import Call, Params, Spec

from ..kernels import batch_norm, normalization, response
from ..typing import Array, Outs
from .common import FLOATS, cpu, large


def _batch_norm(
    k: Call,
    p: Params,
    outs: Outs,
    data: Array,
    gamma: Array,
    beta: Array,
    moving_mean: Array,
    moving_var: Array,
    relu: bool = False,
) -> None:
    out = outs[0] if outs[0] is not None else np.empty_like(data)
    mean, inv = (np.empty_like(s) if o is None else o for o, s in zip(outs[1:3], (moving_mean, moving_var)))
    how = dict(eps=p.eps, axis=p.axis, fix_gamma=p.fix_gamma, relu=relu)
    if k.is_train and not p.use_global_stats:
        batch_norm.batch_norm(data, gamma, beta, out, mean, inv, **how)
    else:
        mean[...], inv[...] = moving_mean, moving_var
        batch_norm.batch_norm_inference(data, gamma, beta, mean, inv, out, **how)
    # The operator's third output is the reciprocal standard deviation.
    np.add(inv, p.eps, out=inv)
    np.sqrt(inv, out=inv)
    np.divide(1, inv, out=inv)


cpu.kernel("BatchNorm", dtypes=FLOATS, out=True)(_batch_norm)
cpu.kernel("_contrib_BatchNormWithReLU", dtypes=FLOATS, out=True)(partial(_batch_norm, relu=True))


def _one_context(p: Params, *specs: Spec) -> bool:
    return getattr(p, "ndev", 1) == 1


def _plain_batch_norm(
    k: Call, p: Params, outs: Outs, data: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array
) -> None:
    out = outs[0] if outs[0] is not None else np.empty_like(data)
    mean, var = (np.empty_like(s) if o is None else o for o, s in zip(outs[1:3], (moving_mean, moving_var)))
    if k.is_train and not p.use_global_stats:
        batch_norm.batch_norm(data, gamma, beta, out, mean, var, eps=p.eps, axis=1, fix_gamma=p.fix_gamma)
    else:
        mean[...], var[...] = moving_mean, moving_var
        batch_norm.batch_norm_inference(data, gamma, beta, mean, var, out, eps=p.eps, axis=1, fix_gamma=p.fix_gamma)


for _op in ("BatchNorm_v1", "_contrib_SyncBatchNorm"):
    cpu.kernel(_op, dtypes=FLOATS, when=_one_context, out=True)(_plain_batch_norm)


def _batch_statistics(p: Params, *specs: Spec) -> bool:
    return not p.use_global_stats


@cpu.kernel("_backward_BatchNorm", dtypes=FLOATS, when=_batch_statistics, out=True)
def _backward_batch_norm(
    k: Call,
    p: Params,
    outs: Outs,
    dy: Array,
    data: Array,
    gamma: Array,
    mean: Array,
    inv: Array,
    moving_mean: Array,
    moving_var: Array,
    relu: Array | None = None,
) -> None:
    if not k.is_train:
        mean, var = moving_mean, moving_var
    else:
        var = 1 / (inv * inv) - inv.dtype.type(p.eps)
    batch_norm.batch_norm_backward(
        dy,
        data,
        gamma,
        mean,
        var,
        *outs[:3],
        eps=p.eps,
        axis=p.axis,
        fix_gamma=p.fix_gamma,
        use_global_stats=not k.is_train,
        relu=relu,
    )
    if k.is_train:
        for moving, new in ((outs[3], mean), (outs[4], var)):  # at once: other threads may be predicting by them
            moving[...] = moving * moving.dtype.type(p.momentum) + new * moving.dtype.type(1 - p.momentum)


@cpu.kernel("_backward_contrib_BatchNormWithReLU", dtypes=FLOATS, when=_batch_statistics, out=True)
def _backward_batch_norm_relu(k: Call, p: Params, outs: Outs, dy: Array, out: Array, *rest: Array) -> None:
    _backward_batch_norm(k, p, outs, dy, *rest, relu=out)


@cpu.kernel("LayerNorm", dtypes=FLOATS, when=large, out=True)
def _layer_norm(k: Call, p: Params, outs: Outs, data: Array, gamma: Array, beta: Array) -> None:
    stats = [np.empty(s, data.dtype) if o is None else o for o, s in zip(outs[1:], (_stats(p, data),) * 2)]
    out = np.empty_like(data) if outs[0] is None else outs[0]
    normalization.layer_norm(data, gamma, beta, out, *stats, eps=p.eps, axis=p.axis)


@cpu.kernel("_backward_LayerNorm", dtypes=FLOATS, when=large, out=True)
def _backward_layer_norm(
    k: Call, p: Params, outs: Outs, dy: Array, data: Array, gamma: Array, mean: Array, std: Array
) -> None:
    d_data = np.empty_like(data) if outs[0] is None else outs[0]
    normalization.layer_norm_backward(dy, data, gamma, mean, std, d_data, outs[1], outs[2], axis=p.axis)


def _stats(p: Params, data: Array) -> tuple[int, ...]:
    axis = p.axis % data.ndim
    return (*data.shape[:axis], 1, *data.shape[axis + 1 :])


def _standardized(k: Call, p: Params, outs: Outs, data: Array, gamma: Array, beta: Array) -> None:
    stats = (data.shape[0], gamma.size)
    out = np.empty_like(data) if outs[0] is None else outs[0]
    normalization.group_norm(
        data, gamma, beta, out, *[np.empty(stats, data.dtype) if o is None else o for o in outs[1:]], eps=p.eps
    )


def _backward_standardized(
    k: Call, p: Params, outs: Outs, dy: Array, data: Array, gamma: Array, mean: Array, std: Array
) -> None:
    normalization.group_norm_backward(dy, data, gamma, mean, std, *outs)


for _op in ("GroupNorm", "InstanceNorm"):
    cpu.kernel(_op, dtypes=FLOATS, when=lambda p, data, *rest: data.size > 0, out=True)(_standardized)
    cpu.kernel("_backward_" + _op, dtypes=FLOATS, when=lambda p, dy, data, *rest: data.size > 0, out=True)(
        _backward_standardized
    )


@cpu.kernel(
    "L2Normalization", dtypes=FLOATS, when=lambda p, data: p.mode != "channel" and data.size >= 1 << 9, out=True
)
def _unit_length(k: Call, p: Params, outs: Outs, data: Array) -> None:
    normalization.unit_length(data, data.shape[0] * (data.shape[1] if p.mode == "spatial" else 1), p.eps, outs[0])


def _odd(p: Params, *specs: Spec) -> bool:
    return bool(p.nsize % 2)


def _response(p: Params) -> dict[str, Any]:
    return dict(nsize=p.nsize, alpha=p.alpha, beta=p.beta, knorm=p.knorm)


@cpu.kernel("LRN", dtypes=FLOATS, when=_odd, out=True)
def _lrn(k: Call, p: Params, outs: Outs, data: Array) -> None:
    response.local_response(data, outs[0], **_response(p))


@cpu.kernel("_backward_LRN", dtypes=FLOATS, when=_odd, out=True)
def _backward_lrn(k: Call, p: Params, outs: Outs, dy: Array, data: Array) -> None:
    response.local_response_backward(dy, data, outs[0], **_response(p))
