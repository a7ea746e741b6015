"""AdamW and LAMB over lists of arrays, as ``mx.nd.contrib`` has them."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from itertools import chain
from typing import Any

from .._core import tables
from ..base import error
from .checks import arrays
from .creation import full
from .ndarray import NDArray

__all__ = [
    "adamw_update",
    "mp_adamw_update",
    "multi_adamw_update",
    "multi_mp_adamw_update",
    "multi_lamb_update",
    "multi_mp_lamb_update",
]


def _scale(rescale_grad: Any, like: NDArray) -> NDArray:
    """The factor on the gradient as an array beside the weight."""
    arrays("adamw_update", weight=like)
    if isinstance(rescale_grad, NDArray):
        return rescale_grad.as_in_context(like.context)
    if not isinstance(rescale_grad, numbers.Real):
        raise error(TypeError, f"adamw_update: rescale_grad must be a number or an NDArray, got {rescale_grad!r}")
    return full((1,), float(rescale_grad), ctx=like.context)


def _flat(*lists: Sequence[NDArray]) -> list[NDArray]:
    """First items of all lists, then the second ones …"""
    for x in lists:
        if not isinstance(x, (list, tuple)) or not x:
            got = "none" if isinstance(x, (list, tuple)) else type(x).__name__
            raise error(TypeError, f"weights, gradients and states must be lists of one NDArray or more, got {got}")
    if len({len(x) for x in lists}) != 1:
        raise error(
            ValueError,
            f"the lists of weights, gradients and states must have one length, got {[len(x) for x in lists]}",
        )
    return list(chain.from_iterable(zip(*lists)))


def adamw_update(
    weight: NDArray,
    grad: NDArray,
    mean: NDArray,
    var: NDArray,
    rescale_grad: Any,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0,
    clip_gradient: float = -1,
    out: Any = None,
    name: Any = None,
    **kwargs: Any,
) -> Any:
    """A step of AdamW, left out where `rescale_grad` is zero or not finite.

    Parameters
    ----------
    weight, grad, mean, var : NDArray
        The weight, its gradient, and the two states, which are written.
    rescale_grad : NDArray or float
        Factor on the gradient.
    lr, eta : float
        Learning rate, and a factor on the whole step.
    beta1, beta2 : float
        What the states keep of what they were.
    epsilon, wd : float
        Added to the denominator; weight decay.
    clip_gradient : float
        Limit of the gradient's absolute values; negative: none.
    out : NDArray
        Where the new weight goes, most often `weight`.
    """
    return tables.ops.get("_adamw_update")(
        weight,
        grad,
        mean,
        var,
        _scale(rescale_grad, weight),
        lr=lr,
        eta=eta,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wd=wd,
        clip_gradient=clip_gradient,
        out=out,
        name=name,
        **kwargs,
    )


def mp_adamw_update(
    weight: NDArray,
    grad: NDArray,
    mean: NDArray,
    var: NDArray,
    weight32: NDArray,
    rescale_grad: Any,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0,
    clip_gradient: float = -1,
    out: Any = None,
    name: Any = None,
    **kwargs: Any,
) -> Any:
    """`adamw_update` for a weight with a float32 master copy, `weight32`."""
    return tables.ops.get("_mp_adamw_update")(
        weight,
        grad,
        mean,
        var,
        weight32,
        _scale(rescale_grad, weight),
        lr=lr,
        eta=eta,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wd=wd,
        clip_gradient=clip_gradient,
        out=out,
        name=name,
        **kwargs,
    )


def multi_adamw_update(
    weights: Any,
    grads: Any,
    mean: Any,
    var: Any,
    rescale_grad: Any,
    lrs: Any,
    wds: Any,
    etas: Any,
    out: Any = None,
    name: Any = None,
    size: int = 0,
    **kwargs: Any,
) -> Any:
    """`adamw_update` for lists of arrays, with one rate, decay and factor for each."""
    return tables.ops.get("_multi_adamw_update")(
        *_flat(weights, grads, mean, var),
        _scale(rescale_grad, weights[0]),
        lrs=lrs,
        wds=wds,
        etas=etas,
        out=out,
        num_weights=size or len(weights),
        **kwargs,
    )


def multi_mp_adamw_update(
    weights: Any,
    grads: Any,
    mean: Any,
    var: Any,
    weights32: Any,
    rescale_grad: Any,
    lrs: Any,
    wds: Any,
    etas: Any,
    out: Any = None,
    name: Any = None,
    size: int = 0,
    **kwargs: Any,
) -> Any:
    """`multi_adamw_update` for weights with float32 master copies, `weights32`."""
    return tables.ops.get("_multi_mp_adamw_update")(
        *_flat(weights, grads, mean, var, weights32),
        _scale(rescale_grad, weights[0]),
        lrs=lrs,
        wds=wds,
        etas=etas,
        out=out,
        num_weights=size or len(weights),
        **kwargs,
    )


def multi_lamb_update(
    weights: Any,
    grads: Any,
    mean: Any,
    var: Any,
    step_count: Any,
    lrs: Any,
    wds: Any,
    out: Any = None,
    num_tensors: int = 0,
    **kwargs: Any,
) -> Any:
    """A step of LAMB for lists of arrays, with one rate, decay and step number for each."""
    return tables.ops.get("_multi_lamb_update")(
        *_flat(weights, grads, mean, var),
        learning_rates=lrs,
        wds=wds,
        step_count=step_count,
        out=out,
        num_tensors=num_tensors or len(weights),
        **kwargs,
    )


def multi_mp_lamb_update(
    weights: Any,
    grads: Any,
    mean: Any,
    var: Any,
    weights32: Any,
    step_count: Any,
    lrs: Any,
    wds: Any,
    out: Any = None,
    num_tensors: int = 0,
    **kwargs: Any,
) -> Any:
    """`multi_lamb_update` for weights with float32 master copies, `weights32`."""
    return tables.ops.get("_multi_mp_lamb_update")(
        *_flat(weights, grads, mean, var, weights32),
        learning_rates=lrs,
        wds=wds,
        step_count=step_count,
        out=out,
        num_tensors=num_tensors or len(weights),
        **kwargs,
    )
