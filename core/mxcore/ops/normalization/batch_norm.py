"""Normalization over the batch: `BatchNorm` and its kin, which keep moving statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Float, Int
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.gradients import given
from ..common.rules import axis_of, floating, size_of

__all__ = [
    "BATCH_NORM_PARAMS",
    "backward_dtypes",
    "batch_norm",
    "batch_norm_dtypes",
    "batch_norm_relu",
    "by_channel",
    "channel_column",
    "with_statistics",
]


BATCH_NORM_PARAMS = dict(
    eps=Float(1e-3, ge=0),
    momentum=Float(0.9),
    fix_gamma=Bool(True),
    use_global_stats=Bool(False),
    output_mean_var=Bool(False),
    axis=Int(1),
    cudnn_off=Bool(False),
    min_calib_range=Float(None),
    max_calib_range=Float(None),
)


def with_statistics(p: Params) -> int:
    """Visible outputs: the statistics on demand."""
    return 3 if p.output_mean_var else 1


def by_channel(p: Params, x: Any) -> Any:
    """The data as (before, channels, after)."""
    axis = axis_of(p.axis, x.ndim)
    return wide(x).reshape(size_of(x.shape[:axis]), x.shape[axis], size_of(x.shape[axis + 1 :]))


def channel_column(v: Any) -> Any:
    """A vector over channels, to be broadcast over (before, channels, after)."""
    return v.reshape(1, -1, 1)


@op(
    "BatchNorm",
    inputs="data gamma beta moving_mean moving_var",
    labels="outputs",
    outputs="output mean var",
    aux="moving_mean moving_var",
    visible=with_statistics,
    **BATCH_NORM_PARAMS,
    grad=lambda F, p, dy, data, gamma, out_mean, out_var, moving_mean, moving_var, needs: (
        *F._backward_BatchNorm(
            dy,
            data,
            gamma,
            out_mean,
            out_var,
            moving_mean,
            moving_var,
            wanted=tuple(needs[:3]),
            **given(p, BATCH_NORM_PARAMS),
        ),
        None,
        None,
    ),
)
@silent
def batch_norm(
    k: Call, p: Params, data: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array
) -> Any:
    """Normalize each channel by its mean and variance over the batch, then scale and shift it.

    In training the statistics are the batch's; otherwise, or with `use_global_stats`, the moving ones. The moving
    statistics follow the batch's in the *backward* pass of training.

    Parameters
    ----------
    data : array
        Any shape with a channel axis.
    gamma, beta : array
        Shape (C,): scale and shift. Float32 where the data is float16, as the moving statistics.
    moving_mean, moving_var : array
        Shape (C,), auxiliary states.
    eps : float
        Added to the variance.
    momentum : float
        Share of the old value in an update of the moving statistics.
    fix_gamma : bool
        Take gamma as 1; its gradient is 0.
    use_global_stats : bool
        Use the moving statistics in training too, and leave them as they are.
    output_mean_var : bool
        Also return the mean and the *reciprocal standard deviation* that were used, each of shape (C,).
    axis : int
        The channel axis.
    cudnn_off, min_calib_range, max_calib_range
        Hints of MXNet's own backends; no effect.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``BatchNorm``, except that `gamma` itself is never overwritten with ones.
    """
    xp = k.xp
    x = by_channel(p, data)
    if k.is_train and not p.use_global_stats:
        n = max(x.shape[0] * x.shape[2], 1)
        mean = x.sum((0, 2)) / n
        d = x - channel_column(mean)
        inv = 1 / xp.sqrt(xp.square(d).sum((0, 2)) / n + p.eps)
    else:
        mean, inv = moving_mean.copy(), 1 / xp.sqrt(moving_var + p.eps)
        d = x - channel_column(mean)
    d *= channel_column(inv if p.fix_gamma else inv * gamma)
    d += channel_column(beta)
    return d.astype(data.dtype).reshape(data.shape), mean, inv


def _batch_shape(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data = merge_shape(ins[0], outs[0])
    if data is None:
        return ins, outs
    if not data:
        raise ValueError("data has no dimensions")
    channels = data[axis_of(p.axis, len(data))]
    return [data, *[(channels,)] * 4], [data, (channels,), (channels,)]


def _single(t: Any) -> Any:
    """The dtype of statistics and parameters beside data of a dtype: half precision is too coarse for them."""
    return np.dtype(np.float32) if t is not None and t.itemsize == 2 else t


def batch_norm_dtypes(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Data and output have one dtype; what there is one of for each channel is single or better."""
    t = ins[0] or outs[0]
    return [t, *[_single(t)] * (len(ins) - 1)], [t, *[_single(t)] * (len(outs) - 1)]


batch_norm.shape(_batch_shape)
batch_norm.input_attrs = {"moving_mean": {"__init__": '["zero", {}]'}, "moving_var": {"__init__": '["one", {}]'}}
batch_norm.dtype(floating(batch_norm_dtypes))
batch_norm.cost(lambda p, ins, outs: 4 * size_of(ins[0]))


def backward_dtypes(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Data and its gradient have one dtype; what there is one of for each channel is single or better."""
    t = ins[1] or ins[0] or outs[0]
    return [t, t, *[_single(t)] * 5], [t, _single(t), _single(t)]


@op(
    "_contrib_BatchNormWithReLU",
    inputs="data gamma beta moving_mean moving_var",
    labels="outputs",
    mxnet_outputs=4,
    outputs="output mean var",
    aux="moving_mean moving_var",
    visible=with_statistics,
    **BATCH_NORM_PARAMS,
)
@silent
def batch_norm_relu(
    k: Call, p: Params, data: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array
) -> Any:
    """`BatchNorm` followed by the positive part.

    Parameters
    ----------
    data : array
        Any shape with a channel axis.
    gamma, beta : array
        Shape (C,): scale and shift.
    moving_mean, moving_var : array
        Shape (C,), auxiliary states.
    eps, momentum, fix_gamma, use_global_stats, output_mean_var, axis, cudnn_off, min_calib_range, max_calib_range
        As in `BatchNorm`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.BatchNormWithReLU``, which runs on four-dimensional float32 data only.
    """
    y, mean, inv = batch_norm.body(k, p, data, gamma, beta, moving_mean, moving_var)  # type: ignore[misc]
    return k.xp.maximum(y, y.dtype.type(0)), mean, inv


batch_norm_relu.shape(_batch_shape)
batch_norm_relu.dtype(floating(batch_norm_dtypes))
batch_norm_relu.cost(lambda p, ins, outs: 5 * size_of(ins[0]))
batch_norm_relu.input_attrs = batch_norm.input_attrs
