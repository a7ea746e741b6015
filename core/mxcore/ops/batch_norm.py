"""Normalization over the batch: `BatchNorm` and its kin, which keep moving statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.infer import merge_shape
from .._core.op import op
from .._core.state import state
from ..parameters import Bool, Float, Int, Str
from .dense import given, wide
from .floating import floating
from .meeting import expect, meet
from .rules import axis_of, size_of
from .silent import silent

__all__ = ["PLAIN", "batch_family", "standardized_gradients", "with_statistics"]


_BATCH = dict(
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


def with_statistics(p: Any) -> int:
    """Visible outputs: the statistics on demand."""
    return 3 if p.output_mean_var else 1


def _by_channel(p: Any, x: Any) -> Any:
    """The data as (before, channels, after)."""
    axis = axis_of(p.axis, x.ndim)
    return wide(x).reshape(size_of(x.shape[:axis]), x.shape[axis], size_of(x.shape[axis + 1 :]))


def _column(v: Any) -> Any:
    """A vector over channels, to be broadcast over (before, channels, after)."""
    return v.reshape(1, -1, 1)


@op(
    "BatchNorm",
    inputs="data gamma beta moving_mean moving_var",
    labels="outputs",
    outputs="output mean var",
    aux="moving_mean moving_var",
    visible=with_statistics,
    **_BATCH,
    grad=lambda F, p, dy, data, gamma, out_mean, out_var, moving_mean, moving_var, needs: (
        *F._backward_BatchNorm(
            dy, data, gamma, out_mean, out_var, moving_mean, moving_var, wanted=tuple(needs[:3]), **given(p, _BATCH)
        ),
        None,
        None,
    ),
)
@silent
def batch_norm(k, p, data, gamma, beta, moving_mean, moving_var):
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
    x = _by_channel(p, data)
    if k.is_train and not p.use_global_stats:
        n = max(x.shape[0] * x.shape[2], 1)
        mean = x.sum((0, 2)) / n
        d = x - _column(mean)
        inv = 1 / xp.sqrt(xp.square(d).sum((0, 2)) / n + p.eps)
    else:
        mean, inv = moving_mean.copy(), 1 / xp.sqrt(moving_var + p.eps)
        d = x - _column(mean)
    d *= _column(inv if p.fix_gamma else inv * gamma)
    d += _column(beta)
    return d.astype(data.dtype).reshape(data.shape), mean, inv


def _batch_shape(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
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


def _batch_dtype(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[0] or outs[0]
    return [t, *[_single(t)] * (len(ins) - 1)], [t, *[_single(t)] * (len(outs) - 1)]


def standardized_gradients(F: Any, dy: Any, data: Any, gamma: Any, f: Any, eps: float) -> tuple[Any, Any, Any]:
    """Gradients of a normalization, of differentiable operators: by data, gamma (None: it is fixed at 1) and beta.

    `f` tells how the data is seen: ``view``, the ``axes`` to normalize over, the axis ``along`` which gamma and beta
    lie.
    """
    x, dy = _reshaped(F, data, f.view), _reshaped(F, dy, f.view)
    d = F.broadcast_sub(x, F.mean(x, axis=f.axes, keepdims=True))
    inv = F.rsqrt(F.mean(F.square(d), axis=f.axes, keepdims=True) + eps)
    z = F.broadcast_mul(d, inv)
    g = (
        dy
        if gamma is None
        else F.broadcast_mul(dy, _reshaped(F, gamma, [-1 if i == f.along else 1 for i in range(len(f.view))]))
    )
    along = F.broadcast_mul(z, F.mean(g * z, axis=f.axes, keepdims=True))
    dx = F.broadcast_mul(F.broadcast_sub(g, F.mean(g, axis=f.axes, keepdims=True)) - along, inv)
    others = tuple(i for i in range(len(f.view)) if i != f.along)
    return F.Cast(F.Reshape(dx, shape=data.shape), dtype=data.dtype), F.sum(dy * z, axis=others), F.sum(dy, axis=others)


def _reshaped(F: Any, x: Any, shape: Any) -> Any:
    return F.Reshape(F.Cast(x, dtype="float32") if x.dtype == np.float16 else x, shape=shape)


class _Channels:
    """How batch normalization sees data of a shape."""

    axes, along = (0, 2), 1

    def __init__(self, p: Any, shape: tuple[int, ...]) -> None:
        axis = axis_of(p.axis, len(shape))
        self.view = size_of(shape[:axis]), shape[axis], size_of(shape[axis + 1 :])


@batch_norm.higher
def _(F, p, dy, data, gamma, moving_mean, moving_var):
    f, scale = _Channels(p, data.shape), None if p.fix_gamma else gamma
    if state.train and not p.use_global_stats:
        dx, d_gamma, d_beta = standardized_gradients(F, dy, data, scale, f, p.eps)
    else:
        inv = F.rsqrt(moving_var + p.eps)
        x, g = _reshaped(F, data, f.view), _reshaped(F, dy, f.view)
        z = F.broadcast_mul(
            F.broadcast_sub(x, F.Reshape(moving_mean, shape=(1, -1, 1))), F.Reshape(inv, shape=(1, -1, 1))
        )
        d_gamma, d_beta = F.sum(g * z, axis=f.axes), F.sum(g, axis=f.axes)
        dx = F.broadcast_mul(g, F.Reshape(inv if scale is None else inv * scale, shape=(1, -1, 1)))
        dx = F.Cast(F.Reshape(dx, shape=data.shape), dtype=data.dtype)
    return dx, None if p.fix_gamma else d_gamma, d_beta, None, None


batch_norm.shape(_batch_shape)
batch_norm.input_attrs = {"moving_mean": {"__init__": '["zero", {}]'}, "moving_var": {"__init__": '["one", {}]'}}
batch_norm.dtype(floating(_batch_dtype))
batch_norm.cost(lambda p, ins, outs: 4 * size_of(ins[0]))


@op(
    "_backward_BatchNorm",
    inputs="dy data gamma mean var moving_mean moving_var",
    outputs="data gamma beta",
    aux="moving_mean moving_var",
    mutates="moving_mean moving_var",
    **_BATCH,
)
@silent
def backward_batch_norm(k, p, dy_, data, gamma, mean, var, moving_mean, moving_var):
    """Gradients of `BatchNorm` with respect to data, gamma and beta; moves the moving statistics.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data, gamma : array
        The inputs.
    mean, var : array
        What the forward pass used: mean and reciprocal standard deviation.
    moving_mean, moving_var : array
        Updated in training.
    eps, momentum, fix_gamma, use_global_stats, output_mean_var, axis, cudnn_off, min_calib_range, max_calib_range
        As in `BatchNorm`.
    """
    xp, wanted = k.xp, k.wanted or (True,) * 3
    x, dy = _by_channel(p, data), _by_channel(p, dy_)
    batch = k.is_train and not p.use_global_stats
    inv = var if batch or k.is_train else 1 / xp.sqrt(moving_var + p.eps)
    d = x - _column(mean if batch or k.is_train else moving_mean)
    total, along = dy.sum((0, 2)), (dy * d).sum((0, 2))
    scale = inv if p.fix_gamma else inv * gamma
    dx = None
    if wanted[0]:
        if batch:
            n = max(x.shape[0] * x.shape[2], 1)
            d *= _column(-inv * inv * along / n)
            d += dy
            d -= _column(total / n)
            dx = d
        else:
            dx = dy
        dx = (dx * _column(scale)).astype(data.dtype).reshape(data.shape)
    d_gamma = xp.zeros_like(gamma) if p.fix_gamma else along * inv
    if not batch:
        return dx, d_gamma, total, None, None
    keep = p.momentum
    return (
        dx,
        d_gamma,
        total,
        moving_mean * keep + mean * (1 - keep),
        moving_var * keep + (1 / (inv * inv) - p.eps) * (1 - keep),
    )


@backward_batch_norm.shape
def _(p, ins, outs):
    data = merge_shape(merge_shape(ins[0], ins[1]), outs[0])
    channels = -1 if data is None else data[axis_of(p.axis, len(data))]
    return [data, data, *[(channels,)] * 5], [data, (channels,), (channels,)]


def _back_dtype(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    t = ins[1] or ins[0] or outs[0]
    return [t, t, *[_single(t)] * 5], [t, _single(t), _single(t)]


backward_batch_norm.dtype(_back_dtype)
backward_batch_norm.cost(lambda p, ins, outs: 6 * size_of(ins[1]))


@op(
    "_contrib_BatchNormWithReLU",
    inputs="data gamma beta moving_mean moving_var",
    labels="outputs",
    mxnet_outputs=4,
    outputs="output mean var",
    aux="moving_mean moving_var",
    visible=with_statistics,
    **_BATCH,
)
@silent
def batch_norm_relu(k, p, data, gamma, beta, moving_mean, moving_var):
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


@batch_norm_relu.grad
def _(F, p, dy, y, data, gamma, out_mean, out_var, moving_mean, moving_var, needs):
    d = F._backward_Activation(dy, y, act_type="relu")
    return (
        *F._backward_BatchNorm(
            d, data, gamma, out_mean, out_var, moving_mean, moving_var, wanted=tuple(needs[:3]), **given(p, _BATCH)
        ),
        None,
        None,
    )


@batch_norm_relu.higher
def _(F, p, dy, y, data, gamma, moving_mean, moving_var):
    return batch_norm.higher_rule(
        F, p, F._backward_Activation(dy, y, act_type="relu"), data, gamma, moving_mean, moving_var
    )


batch_norm_relu.shape(_batch_shape)
batch_norm_relu.dtype(floating(_batch_dtype))
batch_norm_relu.cost(lambda p, ins, outs: 5 * size_of(ins[0]))
batch_norm_relu.input_attrs = batch_norm.input_attrs


# -- over the batch, with the variance as the last output ------------------------------------------------------------

PLAIN = {n: _BATCH[n] for n in ("eps", "momentum", "fix_gamma", "use_global_stats", "output_mean_var")}
_SYNC = {**PLAIN, "ndev": Int(1, ge=1, le=1024), "key": Str()}


def _columns(data: Any) -> Any:
    """The data as (before, channels, after), channels on the second axis."""
    x = wide(data)
    return x.reshape(x.shape[0], x.shape[1], size_of(x.shape[2:]))


def _together(k: Any, p: Any, stage: str, values: Any) -> Any:
    """Numbers of this context, (rows, channels), from all contexts of one key: (contexts, rows, channels)."""
    if getattr(p, "ndev", 1) == 1:
        return values[None]
    where = (k.ctx.device_type, k.ctx.device_id)
    parts = meet(p.key, stage, p.ndev, where, k.device.to_host(values))
    if any(a.shape != parts[0].shape for a in parts):
        raise ValueError(
            f"key={p.key!r} is used with different numbers of channels: {sorted({a.shape[1] for a in parts})}"
        )
    return k.device.from_host(np.stack(parts), k.ctx.device_id)


@silent
def plain_batch_norm(
    k: Any, p: Any, data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any
) -> tuple[Any, Any, Any]:
    """Output, mean and variance; the statistics of a batch are those of all contexts that share `p.key`."""
    xp, x = k.xp, _columns(data)
    if k.is_train and not p.use_global_stats:
        n = x.shape[0] * x.shape[2]
        mean = x.sum((0, 2)) / max(n, 1)
        spread = xp.square(x - _column(mean)).sum((0, 2))
        if getattr(p, "ndev", 1) == 1:
            var = spread / max(n, 1)
        else:  # means and spreads of the parts, weighted by their sizes: exact for parts of any size
            all_ = _together(k, p, "the forward", xp.stack([xp.full_like(mean, n), mean, spread]))
            counts, means, spreads = all_[:, 0], all_[:, 1], all_[:, 2]
            total = xp.maximum(counts.sum(0), 1)
            mean = (counts * means).sum(0) / total
            var = (spreads + counts * xp.square(means - mean)).sum(0) / total
    else:
        mean, var = moving_mean.copy(), moving_var.copy()
    scale = 1 / xp.sqrt(var + p.eps)
    y = (x - _column(mean)) * _column(scale if p.fix_gamma else scale * gamma)
    y += _column(beta)
    return y.astype(data.dtype).reshape(data.shape), mean, var


@silent
def plain_batch_gradients(
    k: Any, p: Any, dy: Any, data: Any, gamma: Any, mean: Any, var: Any, moving_mean: Any, moving_var: Any
) -> list[Any]:
    """Gradients of data, gamma and beta, then the new moving statistics."""
    xp, wanted = k.xp, k.wanted or (True,) * 3
    x, g = _columns(data), _columns(dy)
    batch = k.is_train and not p.use_global_stats
    inv = 1 / xp.sqrt((var if batch else moving_var) + p.eps)
    d = x - _column(mean if batch else moving_mean)
    total, along = g.sum((0, 2)), (g * d).sum((0, 2))
    scale = _column(inv if p.fix_gamma else inv * gamma)
    dx = None
    if batch:
        # Every context takes part, whether it wants this gradient or not: the others wait for it.
        sums = _together(
            k, p, "the backward", xp.stack([xp.full_like(total, x.shape[0] * x.shape[2]), total, along])
        ).sum(0)
        n = xp.maximum(sums[0], 1)
        dx = (g - _column(sums[1] / n) - d * _column(sums[2] * inv * inv / n)) * scale if wanted[0] else None
    elif wanted[0]:
        dx = g * scale
    found = [
        None if dx is None else dx.astype(data.dtype).reshape(data.shape),
        xp.zeros_like(gamma) if p.fix_gamma else along * inv,
        total,
    ]
    if not batch:
        return [*found, None, None]
    keep = p.momentum
    return [*found, moving_mean * keep + mean * (1 - keep), moving_var * keep + var * (1 - keep)]


def plain_shape(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """The shape rule of operators with statistics along the second axis."""
    data, channels = merge_shape(ins[0], outs[0]), -1
    if data is not None:
        if len(data) < 2:
            raise ValueError(f"data {data} must have batch and channels")
        channels = data[1]
    return [data, *[(channels,)] * 4], [data, (channels,), (channels,)]


def _plain_back_shape(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data = merge_shape(merge_shape(ins[0], ins[1]), outs[0])
    channels = (-1 if data is None else data[1],)
    return [data, data, *[channels] * 5], [data, channels, channels]


def _plain_cost(n: int) -> Any:
    def cost(p, ins, outs):
        if getattr(p, "ndev", 1) == 1:
            return n * size_of(ins[0])
        # Whoever waits for other contexts must do so on a worker of the engine, while the caller goes on to call them.
        expect(p.ndev)
        return 1e12

    return cost


def batch_family(name: str, params: dict[str, Any], doc: str) -> tuple[Any, Any]:
    """A normalization over the batch that returns the variance, and its backward."""

    def rule(F, p, dy, data, gamma, out_mean, out_var, moving_mean, moving_var, needs):
        return (
            *getattr(F, back)(
                dy, data, gamma, out_mean, out_var, moving_mean, moving_var, wanted=tuple(needs[:3]), **given(p, params)
            ),
            None,
            None,
        )

    back = "_backward_" + name.removeprefix("_contrib_")
    forward = op(
        name,
        inputs="data gamma beta moving_mean moving_var",
        outputs="output mean var",
        aux="moving_mean moving_var",
        visible=with_statistics,
        labels="outputs",
        grad=rule,
        doc=doc,
        **params,
    )(plain_batch_norm)
    forward.shape(plain_shape)
    forward.dtype(floating(_batch_dtype))
    forward.cost(_plain_cost(4))
    forward.input_attrs = batch_norm.input_attrs
    backward = op(
        back,
        inputs="dy data gamma mean var moving_mean moving_var",
        outputs="data gamma beta",
        aux="moving_mean moving_var",
        mutates="moving_mean moving_var",
        doc=_PLAIN_BACKWARD_DOC.format(name, ", ".join(params)),
        **params,
    )(plain_batch_gradients)
    backward.shape(_plain_back_shape)
    backward.dtype(_back_dtype)
    backward.cost(_plain_cost(6))
    return forward, backward


_PLAIN_BACKWARD_DOC = """Gradients of `{0}` with respect to data, gamma and beta; moves the moving statistics.

    Parameters
    ----------
    dy : array
        The incoming gradient.
    data, gamma : array
        The inputs.
    mean, var : array
        What the forward pass used.
    moving_mean, moving_var : array
        Updated in training.
    {1}
        As in `{0}`.
    """


SYNC_BATCH_NORM = batch_family(
    "_contrib_SyncBatchNorm",
    _SYNC,
    """Normalize each channel by its mean and variance over the batches of several contexts together, then scale and shift it.

    In training, the executions of one layer on `ndev` contexts of this process wait for each other and normalize by the
    statistics of all their batches, which may differ in size; so do their gradients. Otherwise, or with `use_global_stats`, the
    moving statistics are used and nobody waits. The moving statistics follow in the *backward* pass of training.

    Parameters
    ----------
    data : array
        Shape (N, C, ...).
    gamma, beta : array
        Shape (C,): scale and shift.
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
        Also return the mean and the variance that were used, each of shape (C,).
    ndev : int
        How many contexts take part. With more than one, the operator runs on the engine's worker of its context, so that the caller can go
        on to the next context. Under ``NaiveEngine``, and on devices with a queue of
        their own, there must be a thread for each context. Whoever waits longer than ``MXCORE_SYNC_TIMEOUT`` seconds (60), or in vain,
        raises an error.
    key : str
        A name of the layer that is its own in the process; what has one key belongs together.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.SyncBatchNorm``, which takes all batches to be of one size, waits without end, and does not
    set mean and variance outside of training. Source: Zhang et al., "Context encoding for semantic segmentation", 2018.
    """,
)
