"""Normalization to unit length, and across neighbouring channels."""

from __future__ import annotations

from typing import Any

from ..._core.infer import merge_shape
from ..._core.op import op
from ..._core.params import Params
from ...parameters import Enum, Float, Int
from ...typing import Array, Call
from ..common.bodies import silent, wide
from ..common.gradients import given
from ..common.rules import floating, size_of

__all__ = ["L2_MODES", "LRN_PARAMS", "l2_normalization", "lrn", "lrn_base", "neighbour_sums"]


#: mode -> the axes to sum over, as parameters of `sum`.
L2_MODES: dict[str, dict[str, Any]] = {
    "instance": {"axis": (0,), "exclude": True},
    "channel": {"axis": (1,), "exclude": False},
    "spatial": {"axis": (0, 1), "exclude": True},
}


@op(
    "L2Normalization",
    inputs="data",
    labels="inputs gradients outputs",
    mxnet_outputs=2,
    eps=Float(1e-10, ge=0),
    mode=Enum("channel instance spatial", "instance"),
)
@silent
def l2_normalization(k: Call, p: Params, data: Array) -> Array:
    """Divide by the Euclidean length.

    Parameters
    ----------
    data : array
        Shape (N, C, ...).
    eps : float
        Added to the sum of squares.
    mode : {'instance', 'channel', 'spatial'}
        Lengths are taken over each sample, over axis 1, or over all axes after the second.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``L2Normalization``.
    """
    x = wide(data)
    axes = {"instance": tuple(range(1, x.ndim)), "channel": (1,), "spatial": tuple(range(2, x.ndim))}[p.mode]
    return x / k.xp.sqrt((k.xp.square(x).sum(axes, keepdims=True) if axes else k.xp.square(x)) + p.eps)


def _of_rank(least: int, who: str, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """The shape rule of an output like the input, which has at least so many dimensions."""
    data = merge_shape(ins[0], outs[0])
    if data is not None and len(data) < least:
        raise ValueError(f"{who} needs data of at least {least} dimensions, got {data}")
    return [data], [data]


l2_normalization.shape(
    lambda p, ins, outs: _of_rank({"instance": 1, "channel": 2, "spatial": 3}[p.mode], f"mode {p.mode}", ins, outs)
)


def neighbour_sums(xp: Any, x: Any, n: int) -> Any:
    """Sums over `n` neighbouring channels around each."""
    half, c = n // 2, x.shape[1]
    total = x.copy()
    for i in range(1, min(half, c - 1) + 1):
        total[:, i:] += x[:, :-i]
        total[:, :-i] += x[:, i:]
    return total


LRN_PARAMS = dict(alpha=Float(1e-4), beta=Float(0.75), knorm=Float(2.0), nsize=Int(ge=1))


@op(
    "LRN",
    inputs="data",
    labels="inputs outputs",
    mxnet_outputs=2,
    recompute=False,
    **LRN_PARAMS,
    grad=lambda F, p, dy, data: F._backward_LRN(dy, data, **given(p, LRN_PARAMS)),
)
def lrn(k: Call, p: Params, data: Array) -> Array:
    """Local response normalization: divide by a power of the sum of squares of neighbouring channels.

    Parameters
    ----------
    data : array
        Shape (N, C, ...).
    alpha, beta, knorm : float
        ``y = x * (knorm + alpha / nsize * sum(x**2)) ** -beta``.
    nsize : int
        Number of channels in the sum, odd.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``LRN``. Source: Krizhevsky, Sutskever, Hinton, "ImageNet classification", 2012.
    """
    x = wide(data)
    return x * lrn_base(k.xp, p, x) ** -p.beta


@lrn.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if p.nsize % 2 == 0:
        raise ValueError(f"nsize must be odd, got {p.nsize}")
    return _of_rank(2, "the sum over channels", ins, outs)


def lrn_base(xp: Any, p: Params, x: Any) -> Any:
    """What LRN raises to the power of beta: a constant and the mean square of the channels around."""
    return p.knorm + (p.alpha / p.nsize) * neighbour_sums(xp, xp.square(x), p.nsize)


for _op in (l2_normalization, lrn):
    _op.dtype(floating())
for _op in (lrn,):
    _op.cost(lambda p, ins, outs: (p.nsize + 10) * size_of(ins[0]))
