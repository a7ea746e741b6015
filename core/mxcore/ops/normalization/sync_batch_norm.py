"""Normalization over the batches of several contexts, and what it shares with the first version of `BatchNorm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Int, Str
from ...typing import Call, Operand, Operators
from ..common.bodies import silent, wide
from ..common.gradients import given
from ..common.rules import floating, size_of
from .batch_norm import (
    BATCH_NORM_PARAMS,
    backward_dtypes,
    batch_norm,
    batch_norm_dtypes,
    channel_column,
    with_statistics,
)
from .rendezvous import expect, meet

__all__ = ["PLAIN", "batch_family"]


PLAIN = {n: BATCH_NORM_PARAMS[n] for n in ("eps", "momentum", "fix_gamma", "use_global_stats", "output_mean_var")}
_SYNC = {**PLAIN, "ndev": Int(1, ge=1, le=1024), "key": Str()}


def _columns(data: Any) -> Any:
    """The data as (before, channels, after), channels on the second axis."""
    x = wide(data)
    return x.reshape(x.shape[0], x.shape[1], size_of(x.shape[2:]))


def _together(k: Call, p: Params, stage: str, values: Any) -> Any:
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
    k: Call, p: Params, data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any
) -> tuple[Any, Any, Any]:
    """Output, mean and variance; the statistics of a batch are those of all contexts that share `p.key`."""
    xp, x = k.xp, _columns(data)
    if k.is_train and not p.use_global_stats:
        n = x.shape[0] * x.shape[2]
        mean = x.sum((0, 2)) / max(n, 1)
        spread = xp.square(x - channel_column(mean)).sum((0, 2))
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
    y = (x - channel_column(mean)) * channel_column(scale if p.fix_gamma else scale * gamma)
    y += channel_column(beta)
    return y.astype(data.dtype).reshape(data.shape), mean, var


@silent
def plain_batch_gradients(
    k: Call, p: Params, dy: Any, data: Any, gamma: Any, mean: Any, var: Any, moving_mean: Any, moving_var: Any
) -> list[Any]:
    """Gradients of data, gamma and beta, then the new moving statistics."""
    xp, wanted = k.xp, k.wanted or (True,) * 3
    x, g = _columns(data), _columns(dy)
    batch = k.is_train and not p.use_global_stats
    inv = 1 / xp.sqrt((var if batch else moving_var) + p.eps)
    d = x - channel_column(mean if batch else moving_mean)
    total, along = g.sum((0, 2)), (g * d).sum((0, 2))
    scale = channel_column(inv if p.fix_gamma else inv * gamma)
    dx = None
    if batch:
        # Every context takes part, whether it wants this gradient or not: the others wait for it.
        sums = _together(
            k, p, "the backward", xp.stack([xp.full_like(total, x.shape[0] * x.shape[2]), total, along])
        ).sum(0)
        n = xp.maximum(sums[0], 1)
        dx = (
            (g - channel_column(sums[1] / n) - d * channel_column(sums[2] * inv * inv / n)) * scale
            if wanted[0]
            else None
        )
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


def plain_shape(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """The shape rule of operators with statistics along the second axis."""
    data, channels = merge_shape(ins[0], outs[0]), -1
    if data is not None:
        if len(data) < 2:
            raise ValueError(f"data {data} must have batch and channels")
        channels = data[1]
    return [data, *[(channels,)] * 4], [data, (channels,), (channels,)]


def _plain_back_shape(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    data = merge_shape(merge_shape(ins[0], ins[1]), outs[0])
    channels = (-1 if data is None else data[1],)
    return [data, data, *[channels] * 5], [data, channels, channels]


def _plain_cost(n: int) -> Any:
    def cost(p: Params, ins: list[Any], outs: list[Any]) -> Any:
        if getattr(p, "ndev", 1) == 1:
            return n * size_of(ins[0])
        # Whoever waits for other contexts must do so on a worker of the engine, while the caller goes on to call them.
        expect(p.ndev)
        return 1e12

    return cost


def batch_family(name: str, params: dict[str, Any], doc: str) -> tuple[Any, Any]:
    """A normalization over the batch that returns the variance, and its backward."""

    def rule(
        F: Operators,
        p: Params,
        dy: Operand,
        data: Operand,
        gamma: Operand,
        out_mean: Operand,
        out_var: Operand,
        moving_mean: Operand,
        moving_var: Operand,
        needs: Sequence[bool],
    ) -> Any:
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
    forward.dtype(floating(batch_norm_dtypes))
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
    backward.dtype(backward_dtypes)
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
    """Normalize each channel by its mean and variance over the batches of several contexts, then scale and shift it.

    In training, the executions of one layer on `ndev` contexts of this process wait for each other and normalize by the
    statistics of all their batches, which may differ in size; so do their gradients. Otherwise, or with
    `use_global_stats`, the moving statistics are used and nobody waits. The moving statistics follow in the *backward*
    pass of training.

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
        How many contexts take part. With more than one, the operator runs on the engine's worker of its context, so
        that the caller can go on to the next context. Under ``NaiveEngine``, and on devices with a queue of their own,
        there must be a thread for each context. Whoever waits longer than ``MXCORE_SYNC_TIMEOUT`` seconds (60), or in
        vain, raises an error.
    key : str
        A name of the layer that is its own in the process; what has one key belongs together.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.SyncBatchNorm``, which takes all batches to be of one size, waits without
    end, and does not set mean and variance outside of training. Source: Zhang et al., "Context encoding for semantic
    segmentation", 2018.
    """,
)
